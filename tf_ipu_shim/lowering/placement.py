"""A location for every op: an IPU, the host, or several IPUs for control flow whose body is sharded.

Marked ops stay where the script put them. The others follow Graphcore's sharding pass (`hardware/FACTS.md` section 4,
from its `sharding_pass.cc`): the first user that has a shard, else the first operand that has one, else shard 0. Two
things differ in form: a gradient op follows its forward op first (Graphcore's gradient tapes mark them when they
are made), and all ops on one variable go to one IPU, where the variable lives.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tf_ipu_shim.lowering import marks, op_types
from tf_ipu_shim.lowering.constants import constant_nodes
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node

HOST = -1
SEVERAL = -2  # a loop, branch or call whose functions run on more than one IPU, or on an IPU and the host
LOOSE = -3  # an op on one IPU that is in no XLA program (see `variants`)
_APART = -4  # as a mark of a function: it has ops that are in no XLA program
ALL_IPUS = -1  # as a mark: on every IPU

_GRADIENT_NAME = re.compile(r"(?:^|.*/)gradients?(?:_\d+)?/(.+?)_grad(?:_\d+)?/|(?:^|.*/)gradient_tape/(.+)/[^/]+$")


def forward_name(name: str) -> str | None:
    """The name of the op whose gradient an op of this name computes; None where the name does not say."""
    match = _GRADIENT_NAME.match(name)
    return None if match is None else match.group(1) or match.group(2)


@dataclasses.dataclass
class Placement:
    """Where a function's ops run.

    Args:
        locations: for each node an IPU (0 and up), `HOST`, `SEVERAL` or `LOOSE`; constants are in no dictionary.
        constants: nodes that are cloned to wherever they are needed.
        variable_homes: resource argument to the IPU it lives on; None for one that no IPU uses.
        functions: for nodes that run functions on several IPUs: function name to its placement.
        loose_ipus: the IPUs of `LOOSE` ops.
    """

    locations: dict[Node, int]
    constants: set[Node]
    variable_homes: dict[str, int | None]
    functions: dict[str, Placement]
    loose_ipus: dict[Node, int] = dataclasses.field(default_factory=dict)


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
        host_ops: frozenset[str],
        apart_ops: frozenset[str] = frozenset(),
    ) -> None:
        self._graphs = graphs
        self._num_ipus = num_ipus
        self._host_ops = host_ops
        self._apart_ops = apart_ops
        self._marked: dict[str, frozenset[int | None]] = {}
        self._placed: dict[Any, Placement] = {}

    def place(self, name: str, default: int = 0, homes: Mapping[str, int | None] | None = None) -> Placement:
        """Places one function.

        Args:
            name: the function.
            default: the shard for what no rule places.
            homes: for resource arguments that live on an IPU already.

        Raises:
            InvalidArgumentError: a mark names an IPU that the device has not.
        """
        key = (name, default, tuple(sorted((homes or {}).items(), key=repr)))
        if key not in self._placed:
            self._placed[key] = self._place(name, default, homes or {})
        return self._placed[key]

    def _place(self, name: str, default: int, homes: Mapping[str, int | None]) -> Placement:
        graph = self._graphs[name]
        constants = constant_nodes(graph)
        fixed = self._fixed(graph, constants)
        shards = self._propagate(graph, constants, fixed, default)
        variable_homes = self._settle_variables(graph, constants, shards, fixed, homes)
        functions: dict[str, Placement] = {}
        for node, location in shards.items():
            if location == SEVERAL:
                for called in op_types.called_functions(node.proto):
                    functions[called] = self.place(called, default, self._homes_inside(node, called, variable_homes))
        loose = {node: shard for node, shard in shards.items() if node.op in self._apart_ops and shard >= 0}
        shards.update(dict.fromkeys(loose, LOOSE))
        return Placement(shards, constants, variable_homes, functions, loose)

    def shards_of(self, name: str) -> frozenset[int | None]:
        """What the ops of a function, and of those it runs, are marked for; `HOST` for ops on the host."""
        if name not in self._marked:
            self._marked[name] = frozenset()  # for recursive functions
            found: set[int | None] = set()
            for node in self._graphs[name].nodes:
                found |= self.places_of(node)
            self._marked[name] = frozenset(found)
        return self._marked[name]

    def places_of(self, node: Node) -> frozenset[int | None]:
        """The same for one op."""
        if self._is_on_host(node):
            return frozenset({HOST})
        shard = marks.shard_of(node.proto)
        inside = frozenset[int | None]().union(
            *(self.shards_of(called) for called in op_types.called_functions(node.proto))
        )
        apart = frozenset({_APART} if node.op in self._apart_ops else ())
        return apart | (inside or frozenset(() if shard is None else {shard}))

    def _is_on_host(self, node: Node) -> bool:
        return node.op in self._host_ops or marks.is_on_host(node.proto)

    def _fixed(self, graph: FunctionGraph, constants: set[Node]) -> dict[Node, int]:
        """Locations that marks decide."""
        fixed: dict[Node, int] = {}
        by_name = self._marked_names(graph)
        for node in graph.nodes:
            if self._is_on_host(node):
                fixed[node] = HOST
                continue
            shard = self._checked(node, marks.shard_of(node.proto))
            inside = frozenset[int | None]().union(
                *(self.shards_of(called) for called in op_types.called_functions(node.proto))
            )
            if (
                HOST in inside
                or _APART in inside
                or len(inside) > 1
                or (inside and shard is not None and inside != {shard})
            ):
                fixed[node] = SEVERAL
                continue
            if shard is None and inside:
                shard = self._checked(node, next(iter(inside)))
            if shard is not None and node not in constants:
                fixed[node] = by_name[node.name] = shard
        for node in graph.nodes:
            if node not in fixed and node not in constants:
                forward = self._forward_shard(node.name, by_name)
                if forward is not None:
                    fixed[node] = forward
        return fixed

    def _marked_names(self, graph: FunctionGraph) -> dict[str, int]:
        """Shards by name of the op: also of ops that no result needs, such as a loss of which only gradients are."""
        shards = ((proto.name, marks.shard_of(proto)) for proto in graph.definition.node_def)
        return {name: shard for name, shard in shards if shard is not None and 0 <= shard < self._num_ipus}

    @staticmethod
    def _forward_shard(name: str, by_name: Mapping[str, int]) -> int | None:
        forward = forward_name(name)
        return None if forward is None else by_name.get(forward)

    def _checked(self, node: Node, shard: int | None) -> int | None:
        if shard is None or shard == ALL_IPUS:
            return None if shard is None else 0
        if not 0 <= shard < self._num_ipus:
            from tensorflow.python.framework import errors_impl

            raise errors_impl.InvalidArgumentError(
                None,
                None,
                f"Op {node.name} ({node.op}) is placed on shard {shard}, but the device has {self._num_ipus} "
                f"IPU{'s' if self._num_ipus > 1 else ''} (shards 0 to {self._num_ipus - 1}). Select more IPUs with "
                "IPUConfig.auto_select_ipus, or use a smaller index in ipu_shard.",
            )
        return shard

    def _propagate(
        self, graph: FunctionGraph, constants: set[Node], fixed: Mapping[Node, int], default: int
    ) -> dict[Node, int]:
        """Gives the unmarked ops a shard. Sweeps in both directions reach every op in time linear in the graph."""
        shards = dict(fixed)
        waiting = [node for node in graph.nodes if node not in shards and node not in constants]
        while waiting:
            before = len(waiting)
            for ordered in (waiting, list(reversed(waiting))):
                for node in ordered:
                    if node not in shards:
                        shard = self._from_neighbours(node, shards)
                        if shard is not None:
                            shards[node] = shard
            waiting = [node for node in waiting if node not in shards]
            if len(waiting) == before:  # what is left hangs together with no sharded op
                shards.update(dict.fromkeys(waiting, default))
                break
        return {node: shards[node] for node in graph.nodes if node in shards}

    def _from_neighbours(self, node: Node, shards: Mapping[Node, int]) -> int | None:
        if node.op not in op_types.SHAPE_QUERIES:
            for user in node.users:
                if shards.get(user, HOST) >= 0 and node in user.producers:
                    return shards[user]
        for text, producer in zip(node.inputs, node.producers):
            if producer is None:
                continue
            shard = shards.get(producer, HOST)
            if shard == SEVERAL:
                shard = self._result_shard(producer, text)
            if shard >= 0:
                return shard
        return None

    def _result_shard(self, node: Node, tensor: str) -> int:
        """Where a result of a loop, branch or call over several IPUs is left: on the IPU that its function makes it."""
        called = op_types.called_functions(node.proto)[-1]  # a loop's body, not its condition
        graph, index = self._graphs[called], int(tensor.rsplit(":", 1)[1])
        producer = graph.producer(graph.returns[index])
        if producer is None:
            return HOST
        placement = self.place(called)
        shard = placement.locations.get(producer, HOST)
        if shard == SEVERAL:
            return self._result_shard(producer, graph.returns[index])
        return placement.loose_ipus.get(producer, shard)

    def _settle_variables(
        self,
        graph: FunctionGraph,
        constants: set[Node],
        shards: dict[Node, int],
        fixed: Mapping[Node, int],
        homes: Mapping[str, int | None],
    ) -> dict[str, int | None]:
        """Moves all ops on a variable to one IPU: variables that one op updates together share theirs."""
        resources = [name for name, kind in graph.arguments.items() if kind == op_types.RESOURCE]
        groups = _Groups(resources)
        users: dict[str, list[Node]] = {name: [] for name in resources}
        for node in graph.nodes:
            taken = [text for text in node.inputs if text in users]
            for text in taken:
                users[text].append(node)
            if shards.get(node, HOST) >= 0:
                groups.join(taken)
        settled: dict[str, int | None] = {}
        for members in groups.all():
            on_ipu = [node for name in members for node in users[name] if shards.get(node, HOST) >= 0]
            inherited = [homes[name] for name in members if homes.get(name) is not None]
            inside = [
                home
                for name in members
                for node in users[name]
                if shards.get(node) == SEVERAL
                for home in self._homes_of_use(node, name, shards)
            ]
            marked = [fixed[node] for node in on_ipu if fixed.get(node, HOST) >= 0]
            found: Sequence[int | None] = inherited or marked or inside or [shards[node] for node in on_ipu]
            home = found[0] if found else None
            for name in members:
                settled[name] = home
            if home is not None:
                for node in on_ipu:
                    shards[node] = home
        return settled

    def _homes_of_use(self, node: Node, resource: str, shards: Mapping[Node, int]) -> list[int]:
        """Where the functions of a loop, branch or call would keep a variable that is handed to them."""
        found = []
        for called in op_types.called_functions(node.proto):
            inner = self._argument_of(node, called, resource)
            if inner is not None:
                home = self.place(called).variable_homes.get(inner)
                if home is not None:
                    found.append(home)
        return found

    def _argument_of(self, node: Node, called: str, resource: str) -> str | None:
        for outer, inner in zip(self.call_inputs(node), self._graphs[called].arguments):
            if outer == resource:
                return inner
        return None

    def _homes_inside(self, node: Node, called: str, homes: Mapping[str, int | None]) -> dict[str, int | None]:
        arguments = self._graphs[called].arguments
        return {inner: homes[outer] for outer, inner in zip(self.call_inputs(node), arguments) if outer in homes}

    @staticmethod
    def call_inputs(node: Node) -> list[str]:
        """The inputs of a loop, branch or call that its functions receive: a branch keeps its first to itself."""
        return node.inputs[1:] if node.op in op_types.BRANCHES else node.inputs


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
