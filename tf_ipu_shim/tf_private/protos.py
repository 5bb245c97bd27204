"""Imports protobuf messages of TensorFlow and XLA that `tf.compat.v1` lacks or names differently."""

from __future__ import annotations

from tensorflow.compiler.xla import (
    xla_data_pb2,  # shardings, dtypes of XLA
)
from tensorflow.compiler.xla.service import (
    hlo_pb2,  # HLO modules
)
from tensorflow.core.framework import (
    attr_value_pb2,  # attributes of nodes
    function_pb2,  # FunctionDef has no public name
    graph_pb2,  # graphs
    node_def_pb2,  # nodes of functions and graphs
    tensor_pb2,  # values of constants
    tensor_shape_pb2,  # shapes
    types_pb2,  # dtypes as numbers
)
from tensorflow.core.protobuf import (
    config_pb2,  # options of sessions
    meta_graph_pb2,  # signatures
    rewriter_config_pb2,  # options of Grappler
    saved_model_pb2,  # a SavedModel's file
)
