"""Disables fusion for in-place slice updates that XLA of TensorFlow 2.15 miscompiles (read after write).

It makes one loop of `v[1:].assign((v * 0.5)[:-1])` that writes to the memory that it reads. Programs that may have such
an update are compiled without such loops: each op is a separate one.
"""

from __future__ import annotations

import dataclasses

from tensorflow.compat.v2 import version as versions

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.custom_calls import callees
from tf_ipu_shim.compiler.ir.node_defs import copy_function, copy_node, data_inputs, producer_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.ir.reachable import reachable
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

# Ops that write a part of their first operand, and which of their inputs is what they write.
_UPDATES = {
    "ResourceStridedSliceAssign": 4,
    "TensorStridedSliceUpdate": 4,
    "TensorListSetItem": 2,
    "XlaDynamicUpdateSlice": 1,
}
# Ops that read elements of a tensor at other places.
_MOVES = frozenset(
    "StridedSlice Slice GatherV2 GatherNd Gather Transpose ReverseV2 Reverse Pad PadV2 ConcatV2 Split SplitV Roll "
    "MirrorPad Reshape XlaDynamicSlice Unpack MatrixDiagPartV3 MatrixDiagPart Tile BroadcastTo ResourceGather "
    "ResourceGatherNd SpaceToBatchND BatchToSpaceND TensorListGetItem TensorListGather Diag DiagPart".split()
)
# A tensor in separate memory.
_READS = frozenset({vocabulary.READ_VARIABLE, "TensorListStack"})
_FIXED_SINCE = (2, 18)


def disable_fusion(program: LoweredProgram) -> LoweredProgram:
    """Returns the program with affected launches marked to be compiled without fusion."""
    if tuple(map(int, versions.VERSION.split(".")[:2])) >= _FIXED_SINCE:
        return program
    functions = {function.signature.name: function for function in program.functions}
    marked = {name for name in program.programs if name in functions and _may_overlap(name, functions)}
    if not marked:
        return program
    node = copy_node(program.node)
    _mark(node, marked)
    return dataclasses.replace(
        program, node=node, functions=[_with_marks(definition, marked) for definition in program.functions]
    )


def _may_overlap(name: str, functions: dict[str, function_pb2.FunctionDef]) -> bool:
    names = reachable(
        [name], lambda function_name: (called for called in callees(functions[function_name]) if called in functions)
    )
    called = {
        callee.name
        for function_name in names
        for node in functions[function_name].node_def
        if node.op in vocabulary.CALLS
        for _, callee in op_types.function_values(node)
    }
    return any(
        node.op in _UPDATES and _reads_moved_elements(node, functions[function_name], function_name in called)
        for function_name in names
        for node in functions[function_name].node_def
    )


def _reads_moved_elements(update: node_def_pb2.NodeDef, function: function_pb2.FunctionDef, is_called: bool) -> bool:
    """Returns whether an update writes elements computed from other positions of the same tensor.

    XLA itself separates updates that first move the tensor's own elements.
    """
    nodes = {node.name: node for node in function.node_def}
    base = update.input[0]
    # A tensor, whether its elements are moved on the way to the update, and whether its consumer moves them.
    pending = [(update.input[_UPDATES[update.op]], False, False)]
    seen = set(pending)
    while pending:
        tensor_name, moved, at_once = pending.pop()
        node = nodes.get(producer_name(tensor_name))
        if _has_elements_of(base, tensor_name, node):
            if moved and not at_once:
                return True
        elif node is None or node.op in vocabulary.CALLS:
            if node is not None or is_called:
                return True  # what a function takes or returns may come from anywhere
        else:
            moves = node.op in _MOVES
            step = (moved or moves, at_once if node.op in vocabulary.IDENTITIES else moves)
            unseen = {(operand, *step) for operand in data_inputs(node)} - seen
            seen |= unseen
            pending.extend(unseen)
    return False


def _has_elements_of(base: str, tensor_name: str, node: node_def_pb2.NodeDef | None) -> bool:
    return tensor_name == base or (node is not None and node.op in _READS and node.input[0] == base)


def _with_marks(function: function_pb2.FunctionDef, marked: set[str]) -> function_pb2.FunctionDef:
    if all(node.op != vocabulary.LAUNCH for node in function.node_def):
        return function
    copy = copy_function(function)
    for node in copy.node_def:
        _mark(node, marked)
    return copy


def _mark(node: node_def_pb2.NodeDef, marked: set[str]) -> None:
    if node.op == vocabulary.LAUNCH and node.attr["function"].func.name in marked:
        node.attr[vocabulary.UNFUSED_ATTRIBUTE].b = True
