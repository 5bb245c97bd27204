"""Which calls of outlined functions are the same, so that the IPU's compiler makes one function of them.

The ops of a call are in the program as the script's own are: a mark on each says which call it belongs to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.memory_model.computations.fingerprints import AlikeComputations, without_names
from tf_ipu_shim.tf_private.protos import function_pb2


class Place(NamedTuple):
    """Where an instruction is in an outlined function.

    Args:
        content: tells what the function computes, whatever it and its arguments are called.
        number: of the instruction in it.
        call: name of the call.
    """

    content: str
    number: int
    call: str


def calls_in(functions: Iterable[function_pb2.FunctionDef]) -> dict[str, str]:
    """The call that each op of an outlined function belongs to, by the op's name."""
    return {
        node.name: node.attr[vocabulary.OUTLINED_CALL_ATTRIBUTE].s.decode()
        for function in functions
        for node in function.node_def
        if vocabulary.OUTLINED_CALL_ATTRIBUTE in node.attr
    }


def places(by_id: Mapping[int, Any], calls: Mapping[str, str], alike: AlikeComputations) -> dict[int, Place]:
    """Finds the instructions of one computation that belong to calls of outlined functions.

    Calls with side effects, and those that draw random numbers, are a function each and left out.

    Args:
        by_id: the instructions.
        calls: see `calls_in`.
        alike: tells what their loops, branches and sums contain.

    Returns:
        By the instruction's number.
    """
    bodies: dict[str, list[Any]] = {}
    for made in by_id.values() if calls else ():
        call = calls.get(made.metadata.op_name)
        if call is not None:
            bodies.setdefault(call, []).append(made)
    found: dict[int, Place] = {}
    for call, body in bodies.items():
        ordered = _in_order(body, by_id, alike)
        if ordered is not None:
            content = _content(ordered, by_id)
            found.update((made.id, Place(content, number, call)) for number, (_, made) in enumerate(ordered))
    return found


def _in_order(body: list[Any], by_id: Mapping[int, Any], alike: AlikeComputations) -> list[tuple[bytes, Any]] | None:
    """Instructions in an order that does not depend on what else is between them, each after a digest of what it is."""
    known: dict[int, bytes] = {}
    for made in body:
        called = [alike.content(number) for number in made.called_computation_ids]
        if alike.has_effects(made) or None in called:
            return None
        found = hashlib.sha256(_plain(made) + repr(called).encode())
        for operand in made.operand_ids:
            if operand in known:
                found.update(known[operand])
            elif by_id[operand].opcode == "constant":
                found.update(_plain(by_id[operand]))
            else:
                found.update(b"argument" + by_id[operand].shape.SerializeToString(deterministic=True))
        known[made.id] = found.digest()
    return sorted(((known[made.id], made) for made in body), key=lambda pair: (pair[0], pair[1].id))


def _content(ordered: list[tuple[bytes, Any]], by_id: Mapping[int, Any]) -> str:
    """What instructions compute of which arguments."""
    inside = {made.id for _, made in ordered}
    arguments: dict[int, int] = {}
    found = hashlib.sha256()
    for digest, made in ordered:
        found.update(digest)
        for operand in made.operand_ids:
            if operand not in inside and by_id[operand].opcode != "constant":
                found.update(b"%d," % arguments.setdefault(operand, len(arguments)))
    return found.hexdigest()


def _plain(instruction: Any) -> bytes:
    return bytes(without_names(instruction).SerializeToString(deterministic=True))
