"""Moves identical ops that TensorFlow is slow to convert to HLO into functions, so that each is converted once.

TensorFlow builds the ops of `SLOW` with its own compiler (MLIR), at several milliseconds each. It keeps the result of a
function for arguments of the same shapes. A large model has some hundred of them and a dozen of different ones. In the
resulting HLO, each call is put back in place. Its operand identifies the op: TensorFlow leaves calls without a name, so
the first operand of each passes through an op with the name.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.memory_model.hlo.function_copies import rename, without_ops
from tf_ipu_shim.tf_private.protos import function_pb2, hlo_pb2, node_def_pb2

SLOW = frozenset({"Einsum", "LogSoftmax", "Softmax"})
_PREFIX = "ipu_called_op_"
_NAMES_THE_CALL = "Neg"
_ARGUMENTS, _RESULTS = "XLA_Args", "XLA_Retvals"  # XLA's own names for what these go through
_serial = itertools.count()


class OutlinedFunctions(NamedTuple):
    """Functions with calls instead of ops."""

    functions: list[function_pb2.FunctionDef]
    ops: frozenset[str]


def outline(functions: Sequence[function_pb2.FunctionDef]) -> OutlinedFunctions | None:
    """Returns equivalent functions with a call instead of each op that occurs several times."""
    alike = Counter(_op_key(node) for function in functions for node in function.node_def if node.op in SLOW)
    built_functions: dict[bytes, function_pb2.FunctionDef] = {}
    for content, count in alike.items():
        if count > 1:
            built_functions[content] = _function_of(
                node_def_pb2.NodeDef.FromString(content), f"{_PREFIX}{next(_serial)}"
            )
    if not built_functions:
        return None
    ops = frozenset(node.name for each in functions for node in each.node_def if node.op in SLOW)
    return OutlinedFunctions(
        [*(_calling(function, built_functions) for function in functions), *built_functions.values()], ops
    )


def inline(module: hlo_pb2.HloModuleProto, ops: frozenset[str]) -> bool:
    """Inlines the calls of `outline` in the converted module; returns whether it could."""
    called = {candidate.id: candidate for candidate in module.computations if candidate.name.startswith(_PREFIX)}
    callers = [candidate for candidate in module.computations if candidate.id not in called]
    return all(_inline(computation, called, ops) for computation in callers)


def _op_key(node: node_def_pb2.NodeDef) -> bytes:
    """Returns a key of an op without its name, inputs and annotations."""
    bare = node_def_pb2.NodeDef(op=node.op)
    for name, value in node.attr.items():
        if not name.startswith("_"):
            bare.attr[name].CopyFrom(value)
    return bare.SerializeToString(deterministic=True)


def _function_of(op: node_def_pb2.NodeDef, name: str) -> function_pb2.FunctionDef:
    function = function_pb2.FunctionDef()
    function.signature.name = name
    function.attr["_noinline"].b = True
    op.name = "op"
    for index, kind in enumerate(op_types.input_types(op)):
        function.signature.input_arg.add(name=f"input_{index}", type=kind)
        op.input.append(f"input_{index}")
    ((output, (kind,)),) = op_types.output_types(op).items()
    function.signature.output_arg.add(name="result", type=kind)
    function.ret["result"] = f"{op.name}:{output}:0"
    function.node_def.append(op)
    return function


def _calling(
    function: function_pb2.FunctionDef, functions: Mapping[bytes, function_pb2.FunctionDef]
) -> function_pb2.FunctionDef:
    contents = {node.name: _op_key(node) for node in function.node_def if node.op in SLOW}
    replaced = {name: functions[content] for name, content in contents.items() if content in functions}
    if not replaced:
        return function
    copy = without_ops(function)
    renamed: dict[str, str] = {}
    for node in function.node_def:
        if node.name not in replaced:
            copy.node_def.append(node)
            continue
        called = replaced[node.name]
        _add_call(copy, node, called)
        (output,) = op_types.output_types(node)
        renamed[f"{node.name}:{output}:0"] = f"{_call(node.name)}:output:0"
    rename(copy, renamed)
    return copy


def _call(name: str) -> str:
    return f"{name}/called_op"


def _add_call(function: function_pb2.FunctionDef, node: node_def_pb2.NodeDef, called: function_pb2.FunctionDef) -> None:
    first, *others = node.input
    named = function.node_def.add(name=node.name, op=_NAMES_THE_CALL, input=[first])
    named.attr["T"].type = called.signature.input_arg[0].type
    call = function.node_def.add(name=_call(node.name), op="PartitionedCall", input=[f"{node.name}:y:0", *others])
    call.attr["f"].func.name = called.signature.name
    call.attr["Tin"].list.type.extend(argument.type for argument in called.signature.input_arg)
    call.attr["Tout"].list.type.extend(argument.type for argument in called.signature.output_arg)


def _inline(computation: Any, called: Mapping[int, Any], ops: frozenset[str]) -> bool:
    instructions = list(computation.instructions)
    calls = {one.id: one for one in instructions if one.opcode == "call" and one.called_computation_ids[0] in called}
    if not calls:
        return True
    names = _names(instructions, calls, ops)
    if names is None:
        return False
    placed: list[Any] = []
    for instruction in instructions:
        call = _called_by(instruction, calls)
        if call is not None:
            inner = called[call.called_computation_ids[0]]
            placed.extend(_inner(inner, call, names[call.operand_ids[0]], instruction.id))
        elif instruction.id not in names and instruction.id not in calls:
            placed.append(instruction)
    del computation.instructions[:]
    computation.instructions.extend(placed)
    return True


def _names(instructions: Sequence[Any], calls: Mapping[int, Any], ops: frozenset[str]) -> dict[int, Any] | None:
    """Returns the instructions that name each call; None if one is missing or a result is unused."""
    operands = {operand_id for call in calls.values() for operand_id in call.operand_ids[:1]}
    names = {
        instruction.id: instruction
        for instruction in instructions
        if instruction.id in operands and instruction.metadata.op_name in ops
    }
    call_ids = [call.id for instruction in instructions if (call := _called_by(instruction, calls)) is not None]
    return names if len(names) == len(calls) == len(call_ids) == len(set(call_ids)) else None


def _called_by(instruction: Any, calls: Mapping[int, Any]) -> Any:
    """Returns the call whose result an instruction extracts, or None."""
    return calls.get(instruction.operand_ids[0]) if instruction.opcode == "get-tuple-element" else None


def _inner(computation: Any, call: Any, named: Any, result: int) -> Iterator[Any]:
    """Yields the instructions a call runs, renamed to its op; the last is `result`."""
    operands = [named.operand_ids[0], *list(call.operand_ids)[1:]]
    outer_ids = {
        inner.id: operands[inner.parameter_number] for inner in computation.instructions if inner.opcode == "parameter"
    }
    inside = [inner for inner in computation.instructions if inner.metadata.op_name not in (_ARGUMENTS, _RESULTS)]
    handed_on = [
        inner for inner in computation.instructions if inner.metadata.op_name == _RESULTS and inner.opcode != "tuple"
    ]
    outer_ids[handed_on[0].operand_ids[0]] = result
    for instruction in inside:
        instruction.id = outer_ids.get(instruction.id, instruction.id)
        instruction.operand_ids[:] = [outer_ids.get(operand_id, operand_id) for operand_id in instruction.operand_ids]
        instruction.metadata.op_name = named.metadata.op_name
        yield instruction
