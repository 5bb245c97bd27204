"""Replaces host transfers by synthetic data if `TF_POPLAR_FLAGS` requests it.

Infeeds and seeds become values made on the IPU, outfeeds send nothing, as on IPUs. Content that Graphcore leaves
undefined is zeros here. Parameters, the program's arguments and variables, keep the script's values:
the device's values would be undefined as well, until an initializer is set.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim import errors
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import control_inputs
from tf_ipu_shim.compiler.passes import unused_handles
from tf_ipu_shim.machine.environment.flags import PoplarFlags
from tf_ipu_shim.tf_private.graphs import graph_to_function_def, ops
from tf_ipu_shim.tf_private.operations import array_ops, gen_stateless_random_ops, math_ops
from tf_ipu_shim.tf_private.protos import node_def_pb2
from tf_ipu_shim.tf_private.tensors import constant_op, tensor_shape

# As literals: NumPy's `finfo` warns in TensorFlow's threads, where subnormal numbers are zero.
_MAXIMUM = {
    dtypes.float16: 65504.0,
    dtypes.bfloat16: (2 - 2**-7) * 2.0**127,
    dtypes.float32: (2 - 2**-23) * 2.0**127,
    dtypes.float64: (2 - 2**-52) * 2.0**1023,
}
_FULL_RANGE = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)


def synthesize(initializer: str, kind: dtypes.DType, shape: Any, name: str) -> Any:
    """Returns a tensor of synthetic data, the same in each run."""
    kind = dtypes.as_dtype(kind)
    if not (kind in _MAXIMUM or kind.is_integer or kind.is_bool):
        raise errors.UnsupportedError(
            f"No synthetic data of dtype {kind.name} can be created for {name}. Leave its category out of "
            "--synthetic_data_categories, or feed numbers."
        )
    if initializer in ("uniform", "random", "normal"):
        return _random(initializer, kind, shape, [zlib.crc32(name.encode()) & 0x7FFF_FFFF, 0])
    value = constant_op.constant(int(initializer or 0), dtypes.int64)
    return math_ops.cast(array_ops.fill(shape, value), kind)


def _random(initializer: str, kind: dtypes.DType, shape: Any, seed: Sequence[int]) -> Any:
    if initializer == "normal":
        if not kind.is_floating:
            return math_ops.cast(array_ops.fill(shape, constant_op.constant(1)), kind)
        return math_ops.cast(gen_stateless_random_ops.stateless_random_normal(shape, seed), kind)
    if kind.is_floating:
        # The width of the range overflows its dtype: the draw is scaled from [-1, 1].
        drawn = gen_stateless_random_ops.stateless_random_uniform(shape, seed) * 2 - 1
        return math_ops.cast(drawn, kind) * constant_op.constant(_MAXIMUM[kind], kind)
    full = gen_stateless_random_ops.stateless_random_uniform_full_int(
        shape, seed, dtype=kind if kind in _FULL_RANGE else dtypes.int32
    )
    return math_ops.cast(full % 2 if kind.is_bool else full, kind)


def use_synthetic_data(functions: Functions, flags: PoplarFlags) -> None:
    """Replaces feeds and seeds by synthetic data if the flags request it.

    Source: docs/reference/facts.md, section "TF_POPLAR_FLAGS".
    """
    replaced = frozenset(op for op, category in _CATEGORIES.items() if flags.is_synthetic(category))
    for name in functions.reached() if replaced else ():
        if not functions[name].ops.isdisjoint(replaced):
            _replace_transfers(functions, functions[name], replaced, flags.synthetic_data_initializer)
    if not replaced.isdisjoint(vocabulary.INFEEDS):
        unused_handles.replace_unused_handles(functions)


_CATEGORIES = {
    **dict.fromkeys(vocabulary.INFEEDS, "infeed"),
    vocabulary.OUTFEED_ENQUEUE: "outfeed",
    vocabulary.RANDOM_SEED: "seed",
}


def _replace_transfers(functions: Functions, graph: FunctionGraph, replaced: frozenset[str], initializer: str) -> None:
    renamed = {
        tensor_name: f"{node.name}:output:{index}"
        for node in graph.nodes
        if node.op in replaced
        for index, tensor_name in enumerate(op_types.output_names(node.proto))
    }

    def replace(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        if node.op not in replaced:
            return None
        if node.op == vocabulary.OUTFEED_ENQUEUE:
            return [_no_op(node)]
        return [_call(functions, node.name, initializer, *_types_and_shapes(node))]

    graph.rewrite(replace, renamed=renamed)
    graph.drop_unused(vocabulary.ITERATOR)


def _no_op(node: Node) -> node_def_pb2.NodeDef:
    """Returns the op that replaces a discarded outfeed enqueue."""
    return node_def_pb2.NodeDef(name=node.name, op="NoOp", input=control_inputs(node.proto))


def _call(
    functions: Functions,
    name: str,
    initializer: str,
    element_types: Sequence[dtypes.DType],
    shapes: Sequence[tensor_shape.TensorShape],
) -> node_def_pb2.NodeDef:
    """Returns a call of a new function that synthesises data."""
    with ops.Graph().as_default() as graph:
        tensors = [
            synthesize(initializer, kind, shape.as_list(), f"{name}/{index}")
            for index, (kind, shape) in enumerate(zip(element_types, shapes))
        ]
        definition = graph_to_function_def.graph_to_function_def(graph, graph.get_operations(), [], tensors)
    definition.signature.name = functions.fresh_name("synthetic_data")
    function = FunctionGraph.parse(definition)
    functions.add(function)
    call = node_def_pb2.NodeDef(name=name, op="PartitionedCall")
    call.attr["f"].func.name = function.name
    call.attr["Tin"].list.SetInParent()
    call.attr["Tout"].list.type.extend(kind.as_datatype_enum for kind in element_types)
    return call


def _types_and_shapes(node: Node) -> tuple[list[dtypes.DType], list[tensor_shape.TensorShape]]:
    """Returns the dtypes and shapes that an op transfers."""
    if node.op == vocabulary.RANDOM_SEED:
        return [dtypes.int32], [tensor_shape.TensorShape([2])]
    element_types = [dtypes.as_dtype(kind) for kind in node.proto.attr["output_types"].list.type]
    shapes = [tensor_shape.TensorShape(shape) for shape in node.proto.attr["output_shapes"].list.shape]
    if len(shapes) != len(element_types) or not all(shape.is_fully_defined() for shape in shapes):
        raise errors.UnsupportedError(
            f"No synthetic data can be created for {node.name}: the shapes {[str(shape) for shape in shapes]} are not "
            f"fully defined. Leave {_CATEGORIES[node.op]} out of --synthetic_data_categories, or give the program "
            "static shapes."
        )
    return element_types, shapes
