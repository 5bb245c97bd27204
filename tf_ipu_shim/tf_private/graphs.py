"""Graphs, their operations and the library of functions in them."""

from __future__ import annotations

from tensorflow.python.framework import (
    auto_control_deps,  # the control dependencies that tf.function adds
    auto_control_deps_utils,  # which resources an op reads or writes
    convert_to_constants,  # freezes the variables of a session's graph
    device,  # device names as TensorFlow merges and prints them
    device_spec,  # DeviceSpecV2, where `tf` may be TensorFlow 1
    func_graph,  # FuncGraph: the graph that a program is traced into
    function,  # _FuncGraph: functions of TensorFlow 1, which tracing tells apart
    graph_to_function_def,  # the FunctionDef of a graph that is no FuncGraph
    importer,  # import_graph_def with the names of functions kept
    kernels,  # which ops have a kernel on CPU
    op_def_registry,  # the OpDef of an op by its type
    ops,  # Operation, Graph and their classes, init_scope
    random_seed,  # the graph's seed, set as TensorFlow 1 does
)
from tensorflow.python.grappler import (
    tf_optimizer,  # Grappler's passes on a graph of our own
)
from tensorflow.python.ops import (
    handle_data_util,  # dtype and shape behind a resource handle
)
from tensorflow.python.profiler.internal import (
    flops_registry,  # registers the statistics that count flops
)
