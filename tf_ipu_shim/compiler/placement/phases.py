"""Groups the ops of each IPU into phases; each phase becomes one XLA program.

An IPU's ops are divided into phases: between two of them data has to arrive from another location. The phase of an op
is the largest number of crossings on a way to it. Programs of one IPU run in order of phase; programs of different IPUs
run at the same time wherever no exchange orders them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.location import Location
from tf_ipu_shim.compiler.ir.vocabulary import READ_VARIABLE
from tf_ipu_shim.compiler.placement.placement import Placement
from tf_ipu_shim.machine.ids import Shard


def assign_phases(graph: FunctionGraph, placement: Placement) -> dict[Node, int]:
    """Returns the phase of every placed node; other nodes get a position in the same order.

    Invariant: a unit is an IPU's phase or a single other node. Edges never go to a lower phase, and edges from or to an
    IPU go to a higher one. So units never wait for each other in a circle.
    """
    locations = placement.locations
    phases: dict[Node, int] = {}
    for node, location in locations.items():
        phase = 0
        for before in node.predecessors():
            if before in placement.constants:
                continue
            source_location = locations[before]
            crossing = source_location is not location and (source_location.is_in_program or location.is_in_program)
            phase = max(phase, phases[before] + crossing)
        phases[node] = phase
    _delay_lists(locations, phases)
    return phases


def _delay_lists(locations: Mapping[Node, Location], phases: dict[Node, int]) -> None:
    """Moves TensorList creation, and ops that only it needs, to the phase that first uses the list.

    A list cannot go from one XLA program to another. The list that a loop fills often exists from the beginning, while
    the loop waits for an infeed element.
    """
    last = max(phases.values(), default=0)
    delayed: set[Node] = set()
    for node in reversed(phases):
        location = locations[node]
        if phases[node] == last or not location.is_in_program or not node.users or op_types.is_stateful(node.op):
            continue
        if delayed.issuperset(node.users) or _returns_list(node):
            needed = min(phases[user] - (locations[user] is not location) for user in node.users)
            if needed > phases[node]:
                phases[node] = needed
                delayed.add(node)


def _returns_list(node: Node) -> bool:
    return any(op_types.VARIANT in types for types in op_types.output_types(node.proto).values())


def clone_reads(graph: FunctionGraph, placement: Placement, phases: dict[Node, int]) -> dict[Node, frozenset[int]]:
    """Maps each plain variable read to the phases that read the variable themselves.

    Reading again costs nothing, passing the value from phase to phase would copy it. A read is repeated only up to
    the phase of the variable's first write.
    """
    first_write = _first_writes(graph, phases)
    reads: dict[Node, frozenset[int]] = {}
    for node, phase in phases.items():
        location = placement.locations[node]
        if location.is_in_program and _is_plain_read(node):
            last = first_write.get(node.inputs[0])
            reading_phases = {phases[user] for user in node.users if placement.locations.get(user) is location}
            reads[node] = frozenset(at for at in reading_phases if at > phase and (last is None or at <= last))
    return reads


def unneeded_reads(
    graph: FunctionGraph, placement: Placement, phases: Mapping[Node, int], reads: Mapping[Node, frozenset[int]]
) -> set[Node]:
    """Returns reads whose own phase does not need them because all consumers clone them.

    A control dependency on a read has no effect.
    """
    locations = placement.locations
    needed = set(map(graph.producer, graph.returns))
    return {
        read
        for read, repeated in reads.items()
        if repeated
        and read not in needed
        and all(
            locations.get(user) is locations[read] and (phases[user] in repeated or read not in user.producers)
            for user in read.users  # who waits for it waits for the programs that repeat it
        )
    }


def _first_writes(graph: FunctionGraph, phases: dict[Node, int]) -> dict[str, int]:
    """Maps each variable to the phase of the first op that may write it."""
    first: dict[str, int] = {}
    for node, phase in phases.items():
        if node.op != READ_VARIABLE and op_types.is_stateful(node.op):
            for tensor_name in node.inputs:
                if ":" not in tensor_name and graph.arguments.get(tensor_name) == op_types.RESOURCE:
                    first[tensor_name] = min(phase, first.get(tensor_name, phase))
    return first


def _is_plain_read(node: Node) -> bool:
    """Returns whether an op reads a variable argument and waits for nothing."""
    return node.op == READ_VARIABLE and not node.controls and node.producers[0] is None


def group_clusters(
    placement: Placement, phases: dict[Node, int], left_out: Container[Node] = ()
) -> dict[tuple[Shard, int], list[Node]]:
    """Returns the nodes of each XLA program by (shard, phase), in a possible execution order."""
    clusters: dict[tuple[Shard, int], list[Node]] = defaultdict(list)
    for node, location in placement.locations.items():
        if location.shard is not None and location.is_in_program and node not in left_out:
            clusters[location.shard, phases[node]].append(node)
    return {key: clusters[key] for key in sorted(clusters, key=lambda key: (key[1], key[0]))}
