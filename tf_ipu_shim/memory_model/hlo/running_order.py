"""Orders nodes and HLO instructions for execution, and groups inter-IPU copies into exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.node_defs import producer_name
from tf_ipu_shim.tf_private.protos import node_def_pb2

Unit = tuple[node_def_pb2.NodeDef, ...]
_Key = TypeVar("_Key", str, int)


def execution_order(nodes: Iterable[node_def_pb2.NodeDef]) -> Iterator[Unit]:
    """Yields nodes in execution order, with the exchanges of a phase together.

    A node's phase is the largest number of exchanges on a way to it, as in the lowering. Exchanges of one phase whose
    IPUs are connected by them are one exchange: Poplar's compiler merges copies that wait for nothing between them.
    They are executed as soon as all participants can send. Otherwise an IPU that waits for one transfer would also wait
    for the sender's work between the two.
    """
    by_name = {node.name: node for node in nodes}
    units = {name: (node,) for name, node in by_name.items() if node.op != vocabulary.INTER_COPY}
    unit_of = {name: name for name in units}
    for copies in _exchanges(by_name):
        units[copies[0].name] = copies
        unit_of.update((copy.name, copies[0].name) for copy in copies)
    needs = {name: [unit_of[other] for other in _before(unit) if other in unit_of] for name, unit in units.items()}
    sends: dict[str, list[str]] = {}
    for name, unit in units.items():
        if unit[0].op == vocabulary.INTER_COPY:
            for source in dict.fromkeys(needs[name]):
                sends.setdefault(source, []).append(name)
    for name in _sorted([unit_of[name] for name in by_name], needs, sends):
        yield units[name]


def post_order(computation: Any) -> list[Any]:
    """Returns the instructions of a computation in post-order.

    Unused nodes keep their order; an instruction's operands are visited in order.

    Source: XLA's `HloComputation::MakeInstructionPostOrder`.
    """
    needs = {instruction.id: list(instruction.operand_ids) for instruction in computation.instructions}
    by_id = {instruction.id: instruction for instruction in computation.instructions}
    used = {operand for operands in needs.values() for operand in operands}
    return [
        by_id[instruction_id]
        for instruction_id in _sorted(
            [instruction_id for instruction_id in needs if instruction_id not in used], needs, {}
        )
    ]


def _sorted(
    names: Iterable[_Key], needs: Mapping[_Key, Sequence[_Key]], then: Mapping[_Key, Sequence[_Key]]
) -> Iterator[_Key]:
    """Yields names in topological order, followed at once by the names tied to them."""
    done: set[_Key] = set()
    for first in names:
        stack = [first]
        while stack:
            name = stack[-1]
            before = () if name in done else [other for other in needs[name] if other not in done]
            if before:
                stack.extend(reversed(before))
                continue
            stack.pop()
            if name not in done:
                done.add(name)
                yield name
                stack.extend(reversed(then.get(name, ())))


def _exchanges(nodes: Mapping[str, node_def_pb2.NodeDef]) -> Iterator[Unit]:
    """Yields copies between IPUs, grouped into exchanges."""
    if not any(node.op == vocabulary.INTER_COPY for node in nodes.values()):
        return
    needs = {name: [other for other in _before((node,)) if other in nodes] for name, node in nodes.items()}
    phases: dict[str, int] = {}
    of_phase: dict[int, list[node_def_pb2.NodeDef]] = {}
    for name in _sorted(nodes, needs, {}):
        phase = max((phases[other] + (nodes[other].op == vocabulary.INTER_COPY) for other in needs[name]), default=0)
        phases[name] = phase
        if nodes[name].op == vocabulary.INTER_COPY:
            of_phase.setdefault(phase, []).append(nodes[name])
    for copies in of_phase.values():
        yield from _connected(copies)


def _connected(copies: Iterable[node_def_pb2.NodeDef]) -> list[Unit]:
    """Groups copies that share IPUs."""
    groups: list[tuple[set[int], list[node_def_pb2.NodeDef]]] = []
    for copy in copies:
        ipus = {copy.attr["source"].i, copy.attr["destination"].i}
        touched = [group for group in groups if ipus & group[0]]
        if not touched:
            groups.append((ipus, [copy]))
            continue
        merged, *others = touched
        for group in others:
            merged[0].update(group[0])
            merged[1].extend(group[1])
            groups.remove(group)
        merged[0].update(ipus)
        merged[1].append(copy)
    return [tuple(members) for _, members in groups]


def _before(unit: Unit) -> list[str]:
    return [producer_name(tensor_name) for node in unit for tensor_name in node.input]
