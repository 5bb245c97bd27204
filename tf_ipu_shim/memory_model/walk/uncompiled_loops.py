"""Models the computation of loops and calls outside XLA programs, which pass TensorLists.

Forward loops push values to such lists, and backward loops pop them. XLA has no separate HLO of such a loop, so its ops
are analysed one by one, in new memory that is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import data_inputs
from tf_ipu_shim.cycle_model import Computation, MatmulOptions, SyncPoint
from tf_ipu_shim.cycle_model.sizes import (
    CastSizes,
    ElementwiseSizes,
    GatherSizes,
    MatmulSizes,
    ReduceSizes,
    UpdateSizes,
)
from tf_ipu_shim.machine.memory import Block, Step
from tf_ipu_shim.memory_model.computations.kinds import alternating_axes
from tf_ipu_shim.memory_model.computations.operations import operation_of_op
from tf_ipu_shim.memory_model.computations.planner_options import Marks, merged_options
from tf_ipu_shim.memory_model.computations.work import UNKNOWN_TRIPS
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec
from tf_ipu_shim.memory_model.shapes.tensor_lists import infer, iteration_specs
from tf_ipu_shim.memory_model.walk.analysis_context import AnalysisContext
from tf_ipu_shim.memory_model.walk.block_writer import VIEWS
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2"})
_SUMS = frozenset({"BiasAddGrad", "Max", "Mean", "Min", "Prod", "Sum"})
_ADDING_SUMS = frozenset({"BiasAddGrad", "Mean", "Sum"})
_LOOKUPS = frozenset({"GatherV2", "Slice", "StridedSlice", "TensorListGetItem", "TensorListPopBack"})
_WRITES = frozenset({"TensorListPushBack", "TensorListSetItem"})
_HANDLES_LISTS = _WRITES | {"TensorListGetItem", "TensorListPopBack"}
# Constants and views, and what the compiler knows.
_FREE = (
    VIEWS
    | vocabulary.SHAPE_QUERIES
    | {"Const", "NoOp", "Pack", "TensorListElementShape", "TensorListReserve", "VarHandleOp"}
)


def loop_block(
    context: AnalysisContext,
    node: node_def_pb2.NodeDef,
    argument_specs: Sequence[TensorSpec],
    enclosing: Marks | None = None,
) -> tuple[Block, SyncPoint]:
    """Returns the computation of one iteration of a loop, and its trip count."""
    body = context.library[node.attr["body"].func.name]
    block = Block(node.name)
    _add_function(
        context,
        body,
        iteration_specs(body, argument_specs, context.library),
        block,
        merged_options(node, enclosing or {}),
    )
    trips = node.attr[vocabulary.TRIPS_ATTRIBUTE].i if vocabulary.TRIPS_ATTRIBUTE in node.attr else None
    if trips is None:
        trips = _elements_of_lists(body, argument_specs)
    times = UNKNOWN_TRIPS if trips is None else trips
    return block, SyncPoint(context.new_key(), times, (1,), counted=trips is not None, condition=0)


def call_block(context: AnalysisContext, node: node_def_pb2.NodeDef, argument_specs: Sequence[TensorSpec]) -> Block:
    """Returns the computation of a call."""
    block = Block(node.name)
    _add_function(
        context, context.library[op_types.called_functions(node)[0]], argument_specs, block, merged_options(node, {})
    )
    return block


def _elements_of_lists(body: function_pb2.FunctionDef, argument_specs: Sequence[TensorSpec]) -> int | None:
    """Returns the trip count of a loop that reads or writes one list element per iteration, or None."""
    lists = {argument.name: spec.listed for argument, spec in zip(body.signature.input_arg, argument_specs)}
    handled = (lists.get(node.input[0]) for node in body.node_def if node.op in _HANDLES_LISTS)
    return max(
        (listed.capacity for listed in handled if listed is not None and listed.capacity is not None), default=None
    )


def _add_function(
    context: AnalysisContext,
    function: function_pb2.FunctionDef,
    argument_specs: Sequence[TensorSpec],
    block: Block,
    enclosing: Marks,
) -> None:
    spec = dict(zip((argument.name for argument in function.signature.input_arg), argument_specs))
    spec.update(infer(function.node_def, spec, context.library))
    for node in function.node_def:
        operands = [spec[tensor_name] for tensor_name in data_inputs(node)]
        called = op_types.called_functions(node)
        if node.op in vocabulary.CALLS and called:
            _add_function(context, context.library[called[0]], operands, block, merged_options(node, enclosing))
        elif node.op in vocabulary.LOOPS:
            inside, sync_point = loop_block(context, node, operands, enclosing)
            block.steps.append(Step(node.name, (), (), (inside,), True, sync_point))
        elif node.op not in _FREE:
            outputs = [tensor_name for tensor_name in spec if tensor_name.startswith(f"{node.name}:")]
            planning = context.options.planner_options.of("dot", merged_options(node, enclosing))
            work = _computation(node, operands, [spec[tensor_name] for tensor_name in outputs], planning)
            block.steps.append(Step(node.name, (), (), work=work))


def _computation(
    node: node_def_pb2.NodeDef, operands: Sequence[TensorSpec], results: Sequence[TensorSpec], planning: MatmulOptions
) -> Computation:
    size, op = max((_elements(result) for result in results), default=1), node.op
    bytes_ = max(
        (dtypes.as_dtype(result.type).size or 4 for result in results if result.type != types_pb2.DT_VARIANT), default=4
    )
    if op in _PRODUCTS and all(operand.shape for operand in operands[:2]):
        return Computation("product", node.name, _matmul_sizes(node.attr, operands), bytes_, planning)
    if op in _SUMS:
        return Computation(
            "reduce",
            node.name,
            ReduceSizes(
                _elements(operands[0]), size, tuple(_axes(node, operands)), _dtype(operands[0]), op in _ADDING_SUMS
            ),
            bytes_,
        )
    if op in _LOOKUPS:
        table = max(size, _elements(operands[0]))
        return Computation("gather", node.name, GatherSizes(size, table, is_slice=op != "GatherV2"), bytes_)
    if op in _WRITES:
        return Computation("update", node.name, UpdateSizes(_elements(operands[-1]), is_slice=True), bytes_)
    if op == "Cast":
        return Computation("cast", node.name, CastSizes(size, _dtype(operands[0]), _dtype(results[0])), bytes_)
    dtype = _dtype(operands[-1]) if operands else "float32"
    sizes = ElementwiseSizes(size, max(1, len(operands)), operation_of_op(op), dtype)
    return Computation("elementwise", node.name, sizes, bytes_)


def _dtype(spec: TensorSpec) -> str:
    """Returns NumPy's name of a tensor's dtype."""
    return str(dtypes.as_dtype(spec.type).base_dtype.name)


def _matmul_sizes(attributes: Any, operands: Sequence[TensorSpec]) -> MatmulSizes:
    lhs, right = (operand.shape or () for operand in operands[:2])
    is_turned = any(name in attributes and attributes[name].b for name in ("transpose_a", "adj_x"))
    inner = lhs[-2] if is_turned else lhs[-1]
    groups = math.prod(lhs[:-2])
    rows, columns = math.prod(lhs) // max(1, groups * inner), math.prod(right[-2:]) // max(1, inner)
    return MatmulSizes(groups, rows, inner, columns)


def _axes(node: node_def_pb2.NodeDef, operands: Sequence[TensorSpec]) -> list[int]:
    """Returns the lengths of a reduction's axes (see `alternating_axes`); empty if unknown."""
    shape = operands[0].shape or ()
    if node.op == "BiasAddGrad":
        channel_axis = 1 if node.attr["data_format"].s == b"NCHW" else len(shape) - 1
        return alternating_axes(shape, [axis for axis in range(len(shape)) if axis != channel_axis])
    literal = operands[1].literal
    if literal is None:
        return []
    axes = tensor_util.MakeNdarray(literal).reshape(-1)
    return alternating_axes(shape, {int(axis) % len(shape) for axis in axes} if shape else ())


def _elements(spec: TensorSpec) -> int:
    return math.prod(spec.shape) if spec.shape is not None else 1
