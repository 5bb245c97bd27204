"""A location for every op: an IPU, the host, or several IPUs for control flow whose body is sharded.

Marked ops stay where the script put them. The others follow Graphcore's sharding pass (docs/facts.md, section
"Sharding"): the first user that has a shard, else the first operand that has one, else shard 0. Two things differ in
form: a gradient op follows its forward op first (Graphcore's gradient tapes mark them when they are made), and all ops
on one variable go to one IPU, where the variable lives.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tensorflow.python.framework import errors_impl

from tf_ipu_shim.lowering import marks, op_types, vocabulary
from tf_ipu_shim.lowering.constants import constant_nodes
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node
from tf_ipu_shim.lowering.location import ALL_IPUS, ALONE, HOST, SEVERAL, Location, alone_on, on_ipu

_GRADIENT_NAME = re.compile(r"(?:^|.*/)gradients?(?:_\d+)?/(.+?)_grad(?:_\d+)?/|(?:^|.*/)gradient_tape/(.+)/[^/]+$")
_FIRST = on_ipu(0)
_NOWHERE = frozenset[Location]()
_ON_HOST = frozenset({HOST})


def forward_name(name: str) -> str | None:
    """The name of the op whose gradient an op of this name computes; None where the name does not say."""
    match = _GRADIENT_NAME.match(name)
    return None if match is None else match.group(1) or match.group(2)


@dataclasses.dataclass
class Placement:
    """Where a function's ops run.

    Args:
        locations: of each node; constants are not in it.
        constants: nodes that are cloned to wherever they are needed.
        variable_homes: resource argument to the location where it lives; None for one that no IPU uses.
        functions: for nodes that run functions on several IPUs: function name to its placement.
    """

    locations: dict[Node, Location]
    constants: set[Node]
    variable_homes: dict[str, Location | None]
    functions: dict[str, Placement]


class Placer:
    """Places functions, and the functions they run.

    Args:
        graphs: all functions of the program by name.
        num_ipus: how many IPUs a replica has.
        host_ops: types of the ops that always run on the host.
        apart_ops: types of the ops that run on their IPU, but in no XLA program.
    """

    def __init__(
        self,
        graphs: Mapping[str, FunctionGraph],
        num_ipus: int,
        host_ops: frozenset[str] = vocabulary.HOST_OPS,
        apart_ops: frozenset[str] = vocabulary.COLLECTIVES,
    ) -> None:
        self._graphs = graphs
        self._num_ipus = num_ipus
        self._host_ops = host_ops
        self._apart_ops = apart_ops
        self._marked: dict[str, frozenset[Location]] = {}
        self._placed: dict[Any, Placement] = {}

    def place(self, name: str, homes: Mapping[str, Location | None] | None = None) -> Placement:
        """Places one function.

        Args:
            name: the function.
            homes: for resource arguments that live on an IPU already.

        Raises:
            InvalidArgumentError: a mark names an IPU that the device has not.
        """
        key = (name, frozenset((homes or {}).items()))
        if key not in self._placed:
            self._placed[key] = self._place(name, homes or {})
        return self._placed[key]

    def _place(self, name: str, homes: Mapping[str, Location | None]) -> Placement:
        graph = self._graphs[name]
        constants = constant_nodes(graph)
        fixed = self._fixed(graph, constants)
        locations = self._propagate(graph, constants, fixed)
        variable_homes = self._settle_variables(graph, locations, fixed, homes)
        functions: dict[str, Placement] = {}
        for node, location in locations.items():
            if location is SEVERAL:
                for called in op_types.called_functions(node.proto):
                    homes_inside = self._homes_inside(node, called, variable_homes)
                    functions[called] = self.place(called, homes_inside)
                for called in node.chunks or ():  # whose arguments have the names of those of the loop's body
                    functions[called] = self.place(called, homes_inside)
            elif location.ipu is not None and node.op in self._apart_ops:
                locations[node] = alone_on(location.ipu)
        return Placement(locations, constants, variable_homes, functions)

    def marks_of(self, name: str) -> frozenset[Location]:
        """What the ops of a function, and of those it runs, are marked for.

        `HOST` stands for ops on the host, `ALONE` for those that are in no XLA program.
        """
        if name not in self._marked:
            self._marked[name] = _NOWHERE  # for recursive functions
            graph = self._graphs[name]
            self._marked[name] = _NOWHERE.union(*{self.marks_at(graph, node) for node in graph.nodes})
        return self._marked[name]

    def marks_at(self, graph: FunctionGraph, node: Node) -> frozenset[Location]:
        """The same for one op of a function."""
        if self._is_on_host(node):
            return _ON_HOST
        inside = self._marks_inside(node)
        mark = graph.marks.get(node.name)
        if mark is not None and not inside:
            inside = frozenset({mark})
        return inside | {ALONE} if node.op in self._apart_ops else inside

    def _marks_inside(self, node: Node) -> frozenset[Location]:
        if node.op not in vocabulary.FUNCTION_ATTRIBUTES:
            return _NOWHERE
        return _NOWHERE.union(*map(self.marks_of, op_types.called_functions(node.proto)))

    def _is_on_host(self, node: Node) -> bool:
        return node.op in self._host_ops or marks.is_on_host(node.proto)

    def _fixed(self, graph: FunctionGraph, constants: set[Node]) -> dict[Node, Location]:
        """Locations that marks decide."""
        fixed: dict[Node, Location] = {}
        # Also of ops that no result needs, such as a loss of which only gradients are.
        by_name = {name: mark for name, mark in graph.marks.items() if self._is_there(mark)}
        for node in graph.nodes:
            location = self._marked_location(graph, node)
            if location is not None and (location.ipu is None or node not in constants):
                fixed[node] = location
                if location.ipu is not None:
                    by_name[node.name] = location
        for node in graph.nodes:
            if node not in fixed and node not in constants:
                forward = forward_name(node.name)
                if forward in by_name:
                    fixed[node] = by_name[forward]
        return fixed

    def _marked_location(self, graph: FunctionGraph, node: Node) -> Location | None:
        """Where an op's mark, and those of the functions it runs, want it; None where there are none."""
        if self._is_on_host(node):
            return HOST
        mark, inside = graph.marks.get(node.name), self._marks_inside(node)
        if mark is not None and mark is not ALL_IPUS:
            self._check(node, mark)
        wanted = inside.union(() if mark is None else {mark})
        elsewhere = wanted - {ALL_IPUS}
        if not elsewhere:
            return _FIRST if wanted else None
        if len(elsewhere) > 1 or not elsewhere.isdisjoint((HOST, ALONE)):
            return SEVERAL
        (location,) = elsewhere
        self._check(node, location)
        return location

    def _is_there(self, location: Location) -> bool:
        return location.ipu is not None and 0 <= location.ipu < self._num_ipus

    def _check(self, node: Node, location: Location) -> None:
        if not self._is_there(location):
            raise errors_impl.InvalidArgumentError(
                None,
                None,
                f"Op {node.name} ({node.op}) is placed on shard {location.ipu}, but the device has {self._num_ipus} "
                f"IPU{'s' if self._num_ipus > 1 else ''} (shards 0 to {self._num_ipus - 1}). Select more IPUs with "
                "IPUConfig.auto_select_ipus, or use a smaller index in ipu_shard.",
            )

    def _propagate(
        self, graph: FunctionGraph, constants: set[Node], fixed: Mapping[Node, Location]
    ) -> dict[Node, Location]:
        """Gives the unmarked ops an IPU. Sweeps in both directions reach every op in time linear in the graph."""
        found = dict(fixed)
        waiting = [node for node in graph.nodes if node not in found and node not in constants]
        while waiting:
            before = len(waiting)
            for ordered in (waiting, list(reversed(waiting))):
                for node in ordered:
                    if node not in found:
                        location = self._from_neighbours(node, found)
                        if location is not None:
                            found[node] = location
            waiting = [node for node in waiting if node not in found]
            if len(waiting) == before:  # what is left hangs together with no sharded op
                found.update(dict.fromkeys(waiting, _FIRST))
                break
        return {node: found[node] for node in graph.nodes if node in found}

    def _from_neighbours(self, node: Node, found: Mapping[Node, Location]) -> Location | None:
        if node.op not in vocabulary.SHAPE_QUERIES:
            for user in node.users:
                location = found.get(user)
                if location is not None and location.ipu is not None and node in user.producers:
                    return location
        for text, producer in zip(node.inputs, node.producers):
            location = None if producer is None else found.get(producer)
            if producer is not None and location is SEVERAL:
                location = self._result_location(producer, text)
            if location is not None and location.ipu is not None:
                return location
        return None

    def _result_location(self, node: Node, tensor: str) -> Location | None:
        """Where a result of a loop, branch or call over several IPUs is left: on the IPU that its function makes it."""
        called = op_types.called_functions(node.proto)[-1]  # a loop's body, not its condition
        graph, index = self._graphs[called], int(tensor.rsplit(":", 1)[1])
        producer = graph.producer(graph.returns[index])
        location = None if producer is None else self.place(called).locations.get(producer)
        if producer is not None and location is SEVERAL:
            return self._result_location(producer, graph.returns[index])
        return None if location is None or location.ipu is None else on_ipu(location.ipu)

    def _settle_variables(
        self,
        graph: FunctionGraph,
        locations: dict[Node, Location],
        fixed: Mapping[Node, Location],
        homes: Mapping[str, Location | None],
    ) -> dict[str, Location | None]:
        """Moves all ops on a variable to one IPU: variables that one op updates together share theirs."""
        users, groups = _variable_users(graph, locations)
        settled: dict[str, Location | None] = {}
        for members in groups:
            uses = [(name, node) for name in members for node in users[name]]
            home = next(self._wanted_homes(members, uses, locations, fixed, homes), None)
            settled.update(dict.fromkeys(members, home))
            if home is not None:
                locations.update((node, home) for _, node in uses if _on_one_ipu(node, locations))
        return settled

    def _wanted_homes(
        self,
        members: Sequence[str],
        uses: Sequence[tuple[str, Node]],
        locations: Mapping[Node, Location],
        fixed: Mapping[Node, Location],
        homes: Mapping[str, Location | None],
    ) -> Iterator[Location]:
        """Where variables that share an IPU should live, the weightiest reason first.

        They are somewhere already; one of their ops is marked; a function they are handed to keeps them somewhere; an
        op on them happens to be somewhere.
        """
        for name in members:
            inherited = homes.get(name)
            if inherited is not None:
                yield inherited
        on_ipus = [node for _, node in uses if _on_one_ipu(node, locations)]
        yield from (fixed[node] for node in on_ipus if _on_one_ipu(node, fixed))
        for name, node in uses:
            if locations.get(node) is SEVERAL:
                yield from self._homes_of_use(node, name)
        yield from (locations[node] for node in on_ipus)

    def _homes_of_use(self, node: Node, resource: str) -> Iterator[Location]:
        """Where the functions of a loop, branch or call would keep a variable that is handed to them."""
        for called in op_types.called_functions(node.proto):
            inner = self._argument_of(node, called, resource)
            home = None if inner is None else self.place(called).variable_homes.get(inner)
            if home is not None:
                yield home

    def _argument_of(self, node: Node, called: str, resource: str) -> str | None:
        for outer, inner in zip(self.call_inputs(node), self._graphs[called].arguments):
            if outer == resource:
                return inner
        return None

    def _homes_inside(
        self, node: Node, called: str, homes: Mapping[str, Location | None]
    ) -> dict[str, Location | None]:
        arguments = self._graphs[called].arguments
        return {inner: homes[outer] for outer, inner in zip(self.call_inputs(node), arguments) if outer in homes}

    @staticmethod
    def call_inputs(node: Node) -> list[str]:
        """The inputs of a loop, branch or call that its functions receive: a branch keeps its first to itself."""
        return node.inputs[1:] if node.op in vocabulary.BRANCHES else node.inputs


def _on_one_ipu(node: Node, locations: Mapping[Node, Location]) -> bool:
    location = locations.get(node)
    return location is not None and location.ipu is not None


def _variable_users(
    graph: FunctionGraph, locations: Mapping[Node, Location]
) -> tuple[dict[str, list[Node]], Iterable[list[str]]]:
    """The ops that take each variable, and the groups of variables that an op on an IPU takes together."""
    resources = [name for name, kind in graph.arguments.items() if kind == op_types.RESOURCE]
    users: dict[str, list[Node]] = {name: [] for name in resources}
    groups = _Groups(resources)
    if resources:
        for node in graph.nodes:
            taken = [text for text in node.inputs if text in users]
            for text in taken:
                users[text].append(node)
            if len(taken) > 1 and _on_one_ipu(node, locations):
                groups.join(taken)
    return users, groups.all()


class _Groups:
    """Union-find over names, in the order in which they were given."""

    def __init__(self, names: Sequence[str]) -> None:
        self._parent = {name: name for name in names}

    def _root(self, name: str) -> str:
        while self._parent[name] != name:
            self._parent[name] = self._parent[self._parent[name]]
            name = self._parent[name]
        return name

    def join(self, names: Sequence[str]) -> None:
        for name in names[1:]:
            self._parent[self._root(name)] = self._root(names[0])

    def all(self) -> list[list[str]]:
        groups: dict[str, list[str]] = {}
        for name in self._parent:
            groups.setdefault(self._root(name), []).append(name)
        return list(groups.values())
