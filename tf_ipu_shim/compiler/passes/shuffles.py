"""Replaces `tf.random.shuffle` by a sort of random keys, so that it follows the device's seed."""

from __future__ import annotations

from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_functions
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.tf_private.operations import array_ops, math_ops, nn_ops, random_ops
from tf_ipu_shim.tf_private.protos import node_def_pb2


def replace_shuffles(functions: Functions) -> None:
    """Replaces the shuffles of a program."""
    op_functions.replace_ops(functions, {"RandomShuffle": _shuffle})


def _shuffle(node: Node) -> op_functions.Replacement:
    """Returns the replacement of a shuffle."""
    seeds = node.proto.attr["seed"].i, node.proto.attr["seed2"].i

    def seed(inner: node_def_pb2.NodeDef) -> None:
        if "seed2" in inner.attr:
            inner.attr["seed"].i, inner.attr["seed2"].i = seeds

    return op_functions.Replacement(lambda _, value: [_shuffled(value)], finish=seed)


def _shuffled(value: Any) -> Any:
    """Returns a tensor's rows in uniformly random order; a scalar is its only row."""
    shape = array_ops.shape(value)
    count = math_ops.reduce_prod(shape[:1])
    keys = random_ops.random_uniform([count], dtypes.int32.min, dtypes.int32.max, dtypes.int32)
    order = nn_ops.top_k(keys, count).indices
    rows = array_ops.reshape(value, array_ops.concat([[count], shape[1:]], 0))
    return array_ops.reshape(array_ops.gather(rows, order), shape)
