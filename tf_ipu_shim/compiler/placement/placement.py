"""Assigns a location to every op: a shard, the host, or several shards for sharded control flow.

Marked ops stay where the script put them. XLA drops ops like `Identity` and `NoOp`, so they are where their operand is.
The others follow Graphcore's sharding pass (docs/reference/facts.md, section "Sharding"). They get the shard of the
first user that has one, else of the first operand that has one, else shard 0. Two things differ. A gradient op follows
its forward op first, which Graphcore's gradient tapes annotate. All ops on one variable are on one IPU, where the
variable is stored.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import op_types, sharding_annotations, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.location import ALL_IPUS, HOST, MULTI_SHARD, UNCLUSTERED, Location, on_shard, uncompiled_on
from tf_ipu_shim.compiler.ir.node_defs import result_index
from tf_ipu_shim.compiler.placement.cloned_constants import constant_nodes
from tf_ipu_shim.compiler.placement.variable_placement import Home, VariablePlacer
from tf_ipu_shim.runtime import devices

_GRADIENT_NAME = re.compile(r"(?:^|.*/)gradients?(?:_\d+)?/(.+?)_grad(?:_\d+)?/|(?:^|.*/)gradient_tape/(.+)/[^/]+$")
_FIRST = on_shard(0)
_NO_LOCATION = frozenset[Location]()
_ON_HOST = frozenset({HOST})


def forward_name(name: str) -> str | None:
    """Returns the name of the op whose gradient this op computes, judging by its name, or None."""
    match = _GRADIENT_NAME.match(name)
    return None if match is None else match.group(1) or match.group(2)


@dataclasses.dataclass
class Placement:
    """The locations of a function's ops.

    Args:
        constants: nodes that are cloned to wherever they are needed.
        variable_homes: resource argument to its location; None if no IPU uses it.
        functions: for nodes that run functions on several IPUs: function name to its placement.
    """

    locations: dict[Node, Location]
    constants: set[Node]
    variable_homes: dict[str, Home]
    functions: dict[str, Placement]


class Placer:
    """Places functions and the functions they run.

    Args:
        num_shards: how many IPUs a replica has.
        host_ops: types of the ops that always run on the host.
        apart_ops: types of the ops that run on their IPU, but in no XLA program.
        line_of: returns the script's line of an op in a function, see `Diagnostics.user_line`.
    """

    def __init__(
        self,
        graphs: Mapping[str, FunctionGraph],
        num_shards: int,
        host_ops: frozenset[str] = vocabulary.HOST_OPS,
        apart_ops: frozenset[str] = vocabulary.COLLECTIVES,
        line_of: Callable[[str, str], str | None] = lambda function, node: None,
    ) -> None:
        self._graphs = graphs
        self._num_shards = num_shards
        self._host_ops = host_ops
        self._apart_ops = apart_ops
        self._line_of = line_of
        self._marked: dict[str, frozenset[Location]] = {}
        self._placed: dict[Any, Placement] = {}
        self._homes = VariablePlacer(graphs, lambda name: self.place(name).variable_homes)

    def place(self, name: str, homes: Mapping[str, Home] | None = None) -> Placement:
        """Places one function."""
        key = (name, frozenset((homes or {}).items()))
        if key not in self._placed:
            self._placed[key] = self._place(name, homes or {})
        return self._placed[key]

    def _place(self, name: str, homes: Mapping[str, Home]) -> Placement:
        graph = self._graphs[name]
        constants = constant_nodes(graph)
        fixed = self._annotated_locations(graph, constants)
        locations = self._propagate(graph, constants, fixed)
        variable_homes = self._homes.assign(graph, locations, fixed, homes)
        functions: dict[str, Placement] = {}
        for node, location in locations.items():
            if location is MULTI_SHARD:
                for called in op_types.called_functions(node.proto):
                    homes_inside = self._homes.inside(node, called, variable_homes)
                    functions[called] = self.place(called, homes_inside)
                # The arguments of a loop's chunks have the names of those of its body.
                for called in node.chunks.functions if node.chunks is not None else ():
                    functions[called] = self.place(called, homes_inside)
            elif location.shard is not None and node.op in self._apart_ops:
                locations[node] = uncompiled_on(location.shard)
        return Placement(locations, constants, variable_homes, functions)

    def annotations_of(self, name: str) -> frozenset[Location]:
        """Returns the locations that ops of a function, and of functions it runs, are annotated with.

        `HOST` denotes ops on the host, `UNCLUSTERED` ops outside XLA programs.
        """
        if name not in self._marked:
            self._marked[name] = _NO_LOCATION  # for recursive functions
            graph = self._graphs[name]
            self._marked[name] = _NO_LOCATION.union(*{self.annotations_at(graph, node) for node in graph.nodes})
        return self._marked[name]

    def annotations_at(self, graph: FunctionGraph, node: Node) -> frozenset[Location]:
        """Returns the same for one op of a function."""
        if self._is_on_host(node):
            return _ON_HOST
        inside = self._annotations_inside(node)
        annotation = graph.annotations.get(node.name)
        if annotation is not None and not inside:
            inside = frozenset({annotation})
        return inside | {UNCLUSTERED} if node.op in self._apart_ops else inside

    def _annotations_inside(self, node: Node) -> frozenset[Location]:
        if node.op not in vocabulary.FUNCTION_ATTRIBUTES:
            return _NO_LOCATION
        return _NO_LOCATION.union(*map(self.annotations_of, op_types.called_functions(node.proto)))

    def _is_on_host(self, node: Node) -> bool:
        return node.op in self._host_ops or sharding_annotations.is_on_host(node.proto)

    def _annotated_locations(self, graph: FunctionGraph, constants: set[Node]) -> dict[Node, Location]:
        """Returns the locations that annotations decide."""
        fixed: dict[Node, Location] = {}
        # Also of ops that no result needs, such as a loss of which only gradients are.
        annotated = {name: annotation for name, annotation in graph.annotations.items() if self._exists(annotation)}
        for node in graph.nodes:
            location = self._annotated_location(graph, node)
            if location is not None and (location.shard is None or node not in constants):
                fixed[node] = location
                if location.shard is not None:
                    annotated[node.name] = location
        for node in graph.nodes:
            if node not in fixed and node not in constants:
                forward = forward_name(node.name)
                if forward in annotated:
                    fixed[node] = annotated[forward]
        _follow_operands(graph, fixed)
        return fixed

    def _annotated_location(self, graph: FunctionGraph, node: Node) -> Location | None:
        """Returns the location in annotations of an op, or of functions it runs, or None."""
        if self._is_on_host(node):
            return HOST
        annotation, inside = graph.annotations.get(node.name), self._annotations_inside(node)
        if annotation is not None and annotation is not ALL_IPUS:
            self._check(graph, node, annotation)
        locations = inside.union(() if annotation is None else {annotation})
        elsewhere = locations - {ALL_IPUS}
        if not elsewhere:
            return _FIRST if locations else None
        if len(elsewhere) > 1 or not elsewhere.isdisjoint((HOST, UNCLUSTERED)):
            return MULTI_SHARD
        (location,) = elsewhere
        self._check(graph, node, location)
        return location

    def _exists(self, location: Location) -> bool:
        return location.shard is not None and 0 <= location.shard < self._num_shards

    def _check(self, graph: FunctionGraph, node: Node, location: Location) -> None:
        if not self._exists(location):
            function, node = self._annotated_op(graph, node, location)
            ipus = f"{self._num_shards} IPU{'s' if self._num_shards > 1 else ''}"
            stage, other = "", ", or use a smaller index in ipu_shard or in the device_mapping of the pipeline"
            if vocabulary.STAGE_ATTRIBUTE in node.proto.attr:
                stage = f" of pipeline stage {node.proto.attr[vocabulary.STAGE_ATTRIBUTE].i}"
                other = ", or put several stages on one IPU with the pipeline's device_mapping"
            if devices.configured() is None:
                other = (
                    ", and call its configure_ipu_system() before the program runs: no IPU system is configured, so "
                    "there is only one IPU"
                )
            line = self._line_of(function, node.name)
            raise errors_impl.InternalError(
                None,
                None,
                f"Trying to compile a graph for {ipus} that needs more: op {node.name} ({node.op}){stage} is placed on "
                f"shard {location.shard}{f' at {line}' if line else ''}, but the device has {ipus} (shards 0 to "
                f"{self._num_shards - 1}). Select more IPUs with IPUConfig.auto_select_ipus{other}.",
            )

    def _annotated_op(
        self, graph: FunctionGraph, node: Node, location: Location, above: frozenset[str] = frozenset()
    ) -> tuple[str, Node]:
        """Returns the first op with an annotation, and its function, inside functions an op runs."""
        marked = (
            (self._graphs[called], inner)
            for called in op_types.called_functions(node.proto)
            if called not in above
            for inner in self._graphs[called].nodes
            if location in self.annotations_at(self._graphs[called], inner)
        )
        for function, inner in marked:
            return self._annotated_op(function, inner, location, above | {function.name})
        return graph.name, node

    def _propagate(
        self, graph: FunctionGraph, constants: set[Node], fixed: Mapping[Node, Location]
    ) -> dict[Node, Location]:
        """Assigns shards to ops without annotation by forward and backward sweeps, in linear time."""
        locations = dict(fixed)
        waiting = [node for node in graph.nodes if node not in locations and node not in constants]
        while waiting:
            before = len(waiting)
            for ordered in (waiting, list(reversed(waiting))):
                for node in ordered:
                    if node not in locations:
                        location = self._from_neighbours(node, locations)
                        if location is not None:
                            locations[node] = location
            waiting = [node for node in waiting if node not in locations]
            if len(waiting) == before:  # what is left hangs together with no sharded op
                locations.update(dict.fromkeys(waiting, _FIRST))
                break
        return {node: locations[node] for node in graph.nodes if node in locations}

    def _from_neighbours(self, node: Node, locations: Mapping[Node, Location]) -> Location | None:
        if node.op not in vocabulary.SHAPE_QUERIES:
            for user in node.users:
                location = locations.get(user)
                if location is not None and location.shard is not None and node in user.producers:
                    return location
        for tensor_name, producer in zip(node.inputs, node.producers):
            location = None if producer is None else locations.get(producer)
            if producer is not None and location is MULTI_SHARD:
                location = self._result_location(producer, tensor_name)
            if location is not None and location.shard is not None:
                return location
        return None

    def _result_location(self, node: Node, tensor: str) -> Location | None:
        """Returns the shard that computes a result of sharded control flow."""
        called = op_types.called_functions(node.proto)[-1]  # a loop's body, not its condition
        graph, index = self._graphs[called], result_index(tensor)
        producer = graph.producer(graph.returns[index])
        location = None if producer is None else self.place(called).locations.get(producer)
        if producer is not None and location is MULTI_SHARD:
            return self._result_location(producer, graph.returns[index])
        return None if location is None or location.shard is None else on_shard(location.shard)


def _follow_operands(graph: FunctionGraph, fixed: dict[Node, Location]) -> None:
    """Moves marked ops that compute nothing to where their operands are."""
    for node in graph.nodes:
        if node in fixed and node.op in vocabulary.PASS_ON:
            before = {None if other is None else fixed.get(other) for other in node.producers or node.controls}
            location = before.pop() if len(before) == 1 else None
            if location is not None and location.shard is not None:
                fixed[node] = location
