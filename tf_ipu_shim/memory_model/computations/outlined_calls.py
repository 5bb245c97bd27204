"""Identifies the HLO instructions of calls of outlined functions: identical calls become one function.

The ops of a call are in the program as the script's own are: a mark on each says which call it belongs to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.memory_model.computations.fingerprints import ComputationFingerprints, without_names
from tf_ipu_shim.tf_private.protos import function_pb2


class OutlinedInstruction(NamedTuple):
    """The position of an instruction in an outlined function.

    Args:
        fingerprint: identifies the function's computation, independent of its name and its arguments' names.
    """

    fingerprint: str
    position: int
    call: str


def outlined_calls_of(functions: Iterable[function_pb2.FunctionDef]) -> dict[str, str]:
    """Maps each op of an outlined function to its call."""
    return {
        node.name: node.attr[vocabulary.OUTLINED_CALL_ATTRIBUTE].s.decode()
        for function in functions
        for node in function.node_def
        if vocabulary.OUTLINED_CALL_ATTRIBUTE in node.attr
    }


def find_outlined(
    by_id: Mapping[int, Any], calls: Mapping[str, str], fingerprints: ComputationFingerprints
) -> dict[int, OutlinedInstruction]:
    """Returns the instructions of one computation that belong to calls of outlined functions.

    Calls with side effects, or that draw random numbers, are a function each and left out.
    """
    bodies: dict[str, list[Any]] = {}
    for instruction in by_id.values() if calls else ():
        call = calls.get(instruction.metadata.op_name)
        if call is not None:
            bodies.setdefault(call, []).append(instruction)
    found: dict[int, OutlinedInstruction] = {}
    for call, body in bodies.items():
        ordered = _in_order(body, by_id, fingerprints)
        if ordered is not None:
            content = _fingerprint(ordered, by_id)
            found.update(
                (instruction.id, OutlinedInstruction(content, position, call))
                for position, (_, instruction) in enumerate(ordered)
            )
    return found


def _in_order(
    body: list[Any], by_id: Mapping[int, Any], fingerprints: ComputationFingerprints
) -> list[tuple[bytes, Any]] | None:
    """Returns instructions in an order independent of unrelated ones between them, each with a digest."""
    known: dict[int, bytes] = {}
    for instruction in body:
        called = [fingerprints.fingerprint(computation_id) for computation_id in instruction.called_computation_ids]
        if fingerprints.has_effects(instruction) or None in called:
            return None
        found = hashlib.sha256(_plain(instruction) + repr(called).encode())
        for operand in instruction.operand_ids:
            if operand in known:
                found.update(known[operand])
            elif by_id[operand].opcode == "constant":
                found.update(_plain(by_id[operand]))
            else:
                found.update(b"argument" + by_id[operand].shape.SerializeToString(deterministic=True))
        known[instruction.id] = found.digest()
    return sorted(
        ((known[instruction.id], instruction) for instruction in body), key=lambda pair: (pair[0], pair[1].id)
    )


def _fingerprint(ordered: list[tuple[bytes, Any]], by_id: Mapping[int, Any]) -> str:
    """Returns a digest of a computation and its arguments."""
    inside = {instruction.id for _, instruction in ordered}
    arguments: dict[int, int] = {}
    found = hashlib.sha256()
    for digest, instruction in ordered:
        found.update(digest)
        for operand in instruction.operand_ids:
            if operand not in inside and by_id[operand].opcode != "constant":
                found.update(b"%d," % arguments.setdefault(operand, len(arguments)))
    return found.hexdigest()


def _plain(instruction: Any) -> bytes:
    return bytes(without_names(instruction).SerializeToString(deterministic=True))
