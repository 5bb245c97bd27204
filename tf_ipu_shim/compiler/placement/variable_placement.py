"""Assigns each variable to the shard of the ops that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.location import MULTI_SHARD, Location

Home = Location | None  # None for a variable that no IPU uses


class VariablePlacer:
    """Assigns variables to shards.

    Args:
        homes_of: returns the locations of a function's resource arguments, for a function placed separately.
    """

    def __init__(self, graphs: Mapping[str, FunctionGraph], homes_of: Callable[[str], Mapping[str, Home]]) -> None:
        self._graphs = graphs
        self._homes_of = homes_of
        self._received: dict[tuple[Node, str], dict[str, str]] = {}

    def assign(
        self,
        graph: FunctionGraph,
        locations: dict[Node, Location],
        fixed: Mapping[Node, Location],
        homes: Mapping[str, Home],
    ) -> dict[str, Home]:
        """Moves all ops on a variable to one shard; variables updated by one op share theirs."""
        self._received = {}  # passes may have changed what loops are handed
        users, groups = _variable_users(graph, locations)
        settled: dict[str, Home] = {}
        for members in groups:
            uses = [(name, node) for name in members for node in users[name]]
            home = next(self._preferred(members, uses, locations, fixed, homes), None)
            settled.update(dict.fromkeys(members, home))
            if home is not None:
                locations.update((node, home) for _, node in uses if _on_one_ipu(node, locations))
        return settled

    def _preferred(
        self,
        members: Sequence[str],
        uses: Sequence[tuple[str, Node]],
        locations: Mapping[Node, Location],
        fixed: Mapping[Node, Location],
        homes: Mapping[str, Home],
    ) -> Iterator[Location]:
        """Yields preferred shards for variables that share one, strongest reason first.

        The first that applies: their own place, an annotated op of theirs, a function that receives them, or the place
        of an op on them.
        """
        for name in members:
            inherited = homes.get(name)
            if inherited is not None:
                yield inherited
        on_ipus = [node for _, node in uses if _on_one_ipu(node, locations)]
        yield from (fixed[node] for node in on_ipus if _on_one_ipu(node, fixed))
        for name, node in uses:
            if locations.get(node) is MULTI_SHARD:
                yield from self._preferred_inside(node, name)
        yield from (locations[node] for node in on_ipus)

    def _preferred_inside(self, node: Node, resource: str) -> Iterator[Location]:
        """Yields the locations where functions of control flow would store a variable passed to them."""
        for called in op_types.called_functions(node.proto):
            inner = self._argument_of(node, called, resource)
            home = None if inner is None else self._homes_of(called).get(inner)
            if home is not None:
                yield home

    def _argument_of(self, node: Node, called: str, resource: str) -> str | None:
        """Returns the name of the first argument to which a function receives a variable."""
        key = (node, called)
        if key not in self._received:  # one look for all variables of a loop: there may be hundreds
            pairs = list(zip(node.function_inputs, self._graphs[called].arguments))
            self._received[key] = dict(reversed(pairs))
        return self._received[key].get(resource)

    def inside(self, node: Node, called: str, homes: Mapping[str, Home]) -> dict[str, Home]:
        """Returns the variable homes of a called function, by its arguments."""
        arguments = self._graphs[called].arguments
        return {inner: homes[outer] for outer, inner in zip(node.function_inputs, arguments) if outer in homes}


def _on_one_ipu(node: Node, locations: Mapping[Node, Location]) -> bool:
    location = locations.get(node)
    return location is not None and location.shard is not None


def _variable_users(
    graph: FunctionGraph, locations: Mapping[Node, Location]
) -> tuple[dict[str, list[Node]], Iterable[list[str]]]:
    """Returns the ops that use each variable, and groups of variables that one op uses together."""
    resources = [name for name, kind in graph.arguments.items() if kind == op_types.RESOURCE]
    users: dict[str, list[Node]] = {name: [] for name in resources}
    groups = _UnionFind(resources)
    if resources:
        for node in graph.nodes:
            operands = [tensor_name for tensor_name in node.inputs if tensor_name in users]
            for tensor_name in operands:
                users[tensor_name].append(node)
            if len(operands) > 1 and _on_one_ipu(node, locations):
                groups.join(operands)
    return users, groups.all()


class _UnionFind:
    """Union-find over names, in insertion order."""

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
