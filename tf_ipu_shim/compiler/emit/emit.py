"""Emits the functions that run: XLA launches, exchanges between IPUs, host ops and control flow.

Every node gets an explicit device, loop conditions and counters included: a loop whose parts land on two devices by
accident does not partition.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

from tf_ipu_shim.compiler.checks import host_ops
from tf_ipu_shim.compiler.emit.cluster import ClusterFunction, ConstantArguments
from tf_ipu_shim.compiler.emit.control_flow import CHUNK_COUNTERS, emit_functions, loop_over_chunks
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions, strip_attributes
from tf_ipu_shim.compiler.ir.location import HOST, MULTI_SHARD, Location
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.ir.program import Cluster, Exchange
from tf_ipu_shim.compiler.loops.trip_count import trip_count
from tf_ipu_shim.compiler.placement.loop_counters import move_counters_to_host
from tf_ipu_shim.compiler.placement.phases import assign_phases, clone_reads, group_clusters, unneeded_reads
from tf_ipu_shim.compiler.placement.placement import Placement
from tf_ipu_shim.compiler.placement.variants import uncompile_variants
from tf_ipu_shim.compiler.replicas.replicas import Replica
from tf_ipu_shim.machine.ids import Chip, Shard
from tf_ipu_shim.runtime import interrupts
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

HOST_DEVICE = "/device:CPU:0"
_serial = itertools.count()


class Emitter:
    """Emits a program's functions, including sharded loops and branches.

    Args:
        device: the device of the IPU ops, such as `/device:IPU:0`.
        constant_arguments: asks TensorFlow's analysis.
        replica: the replica whose shards become chips of the device. The only one when left out.
        programs: the XLA programs of all replicas by their content: equal ones are compiled once.
        plans: whether loops that run in chunks are emitted for the memory plan besides, with one iteration after the
            other as on a real IPU.

    Attributes:
        fed: names of traced functions that consume elements from the host.
        compiled: traced function and FunctionDef of each XLA program.
        planned: the program emitted only for the memory plan; None if there is none.
        chunked_loops: for the function that runs a chunk, the loop to plan instead; None if none is
            planned.
    """

    def __init__(
        self,
        graphs: Functions,
        device: str,
        constant_arguments: ConstantArguments,
        replica: Replica | None = None,
        programs: dict[bytes, function_pb2.FunctionDef] | None = None,
        plans: bool = False,
    ) -> None:
        self.graphs = graphs
        self.device = device
        self.constant_arguments = constant_arguments
        self.replica = replica or Replica()
        self.fed = graphs.with_ops(vocabulary.INFEEDS)
        self._programs = {} if programs is None else programs
        self._serial = itertools.count()
        self.functions: list[function_pb2.FunctionDef] = []
        self.clusters: list[Cluster] = []
        self.exchanges: list[Exchange] = []
        self.compiled: list[tuple[str, function_pb2.FunctionDef]] = []
        self.planned = Emitter(graphs, device, constant_arguments, replica) if plans else None
        self.chunked_loops: dict[str, node_def_pb2.NodeDef | None] = {}

    def emit(
        self, name: str, placement: Placement, argument_shards: Mapping[str, Shard], loops: bool = False
    ) -> tuple[str, list[Shard | None]]:
        """Emits one function."""
        graph = self.graphs[name]
        placement = uncompile_variants(graph, placement)
        if loops:
            placement = move_counters_to_host(graph, placement)
        return _FunctionEmitter(self, graph, placement, argument_shards, loops).run()

    def deduplicate(self, definition: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
        """Returns the XLA program, or an identical one of another replica."""
        if self.replica.count > 1:
            name = definition.signature.name
            definition.signature.name = ""
            content = definition.SerializeToString(deterministic=True)
            definition.signature.name = name
            definition = self._programs.setdefault(content, definition)
        return definition

    def specialise(self, proto: node_def_pb2.NodeDef) -> None:
        """Sets the replica-specific attributes of an emitted op."""
        self.replica.specialise(proto, next(self._serial))


class _FunctionEmitter:
    """Emits one function."""

    def __init__(
        self,
        emitter: Emitter,
        graph: FunctionGraph,
        placement: Placement,
        argument_shards: Mapping[str, Shard],
        loops: bool,
    ) -> None:
        self._all = emitter
        self._graph = graph
        self._placement = placement
        self._phases = assign_phases(graph, placement)
        self._reads = clone_reads(graph, placement, self._phases)
        self._reads_in: dict[tuple[Shard | None, int], set[Node]] = {}  # the same by shard and phase
        for read, phases in self._reads.items():
            for phase in phases:
                self._reads_in.setdefault((placement.locations[read].shard, phase), set()).add(read)
        self._result_order = {tensor_name: index for index, tensor_name in enumerate(dict.fromkeys(graph.returns))}
        self._results_of: dict[Node, list[str]] = {}
        for tensor_name in self._result_order:
            producer = graph.producer(tensor_name)
            if producer is not None:
                self._results_of.setdefault(producer, []).append(tensor_name)
        self._left_out = unneeded_reads(graph, placement, self._phases, self._reads)
        self._clusters = group_clusters(placement, self._phases, self._left_out)
        # Ops that take elements from the host, and wait for no program: no program has an effect without an element.
        # Those of an iteration may be taken by loops within it.
        self._elements = {
            node.name
            for node in graph.nodes
            if not self._phases.get(node, 1) and (node.op in vocabulary.INFEEDS or (loops and self._dequeues(node)))
        }
        self._serial = next(_serial)
        self._function = function_pb2.FunctionDef()
        self._names: dict[str, str] = {}  # tensor of the traced function -> tensor of the emitted one
        # Tensor of the traced function -> the shard that holds it. Fed data goes to its first user.
        self._shards: dict[str, Shard] = {**_first_consumers(graph, placement), **argument_shards}
        self._units: dict[Node, str] = {}  # node of the traced function -> node of the emitted one
        self._copies: dict[tuple[str, Shard], str] = {}
        self._cloned: dict[tuple[Node, str], str] = {}
        self._last_on: dict[Shard, str] = {}

    def _dequeues(self, node: Node) -> bool:
        """Returns whether a call, or a loop over several IPUs, dequeues elements from the host."""
        if self._placement.locations.get(node) is not MULTI_SHARD:
            return False
        return not self._all.fed.isdisjoint(op_types.called_functions(node.proto))

    def run(self) -> tuple[str, list[Shard | None]]:
        """Emits the function."""
        graph, function = self._graph, self._function
        function.signature.name = f"{graph.name}_lowered_{self._serial}"
        function.signature.is_stateful = True
        for argument, kind in graph.arguments.items():
            function.signature.input_arg.add(name=argument, type=kind)
        for index, attributes in graph.argument_attributes.items():
            function.arg_attr[index].CopyFrom(attributes)
        self._names.update((argument, argument) for argument in graph.arguments)
        cluster_of = {node: key for key, nodes in self._clusters.items() for node in nodes}
        emitted: set[tuple[Shard, int]] = set()
        for node in sorted(self._placement.locations, key=lambda node: (self._phases[node], node.index)):
            if node in self._left_out:
                continue
            key = cluster_of.get(node)
            if key is None:
                self._emit_node(node)
            elif key not in emitted:
                emitted.add(key)
                self._emit_cluster(*key)
        for result in graph.results:
            function.signature.output_arg.add(name=result.name, type=result.type)
            function.ret[result.name] = self._tensor(result.tensor, None, self._all.device)
        for unit in self._emitted_names(graph.control_returns):
            function.signature.control_output.append(unit)
            function.control_ret[unit] = unit
        self._all.functions.append(function)
        return function.signature.name, [self._shards.get(tensor) for tensor in graph.returns]

    def _emit_cluster(self, shard: Shard, phase: int) -> None:
        """Emits the ops of a shard's phase as an XLA program and its launch."""
        interrupts.check()
        nodes = self._clusters[shard, phase]
        reads = self._reads_in.get((shard, phase), set())
        cut = ClusterFunction(self._graph, nodes, self._placement.constants, reads, self._all.graphs.external_name)
        outputs = self._outputs_of(set(nodes), phase)
        name = f"{self._graph.name}_ipu{shard}_phase{phase}_{self._serial}"
        function = cut.in_launch_order(name, outputs, self._all.constant_arguments)
        definition = self._all.deduplicate(function.definition)
        self._all.functions.append(definition)
        self._all.compiled.append((self._graph.traced, definition))
        types = [cut.inputs[tensor] for tensor in function.inputs]
        launch = self._launch(f"ipu{shard}_phase{phase}", shard, types, function.constants)
        launch.attr["Tresults"].list.type.extend(self._graph.type_of(tensor) for tensor in outputs)
        launch.attr["function"].func.name = definition.signature.name
        if shapes := cut.shape_variables(function.inputs):
            launch.attr[vocabulary.SHAPES_ATTRIBUTE].list.i.extend(shapes)
        launch.input.extend(self._tensor(tensor, shard, self._all.device) for tensor in function.inputs)
        # One IPU runs its programs one after the other, whether or not data connects them.
        before = {self._last_on[shard]} if shard in self._last_on else set(self._elements)
        before.update(self._emitted_names(cut.outside_controls))
        launch.input.extend(f"^{unit}" for unit in sorted(before))
        self._last_on[shard] = launch.name
        for index, tensor in enumerate(outputs):
            self._names[tensor] = f"{launch.name}:results:{index}"
            self._shards[tensor] = shard
        self._units.update(dict.fromkeys(nodes, launch.name))
        chip, traced = self._all.replica.chip(shard), self._graph.traced
        inputs, constants = function.inputs, function.constants
        self._all.clusters.append(
            Cluster(chip, phase, definition.signature.name, inputs, types, outputs, constants, traced)
        )

    def _launch(self, name: str, shard: Shard, types: Sequence[int], constants: int) -> node_def_pb2.NodeDef:
        """Adds the launch of an XLA program with arguments of these types."""
        launch = self._function.node_def.add(name=name, op=vocabulary.LAUNCH, device=self._all.device)
        launch.attr[vocabulary.CHIP_ATTRIBUTE].i = self._all.replica.chip(shard)
        resources = types.count(op_types.RESOURCE)
        launch.attr["Tconstants"].list.type.extend(types[:constants])
        launch.attr["Targs"].list.type.extend(types[constants : len(types) - resources])
        launch.attr["Nresources"].i = resources
        if resources:
            launch.attr[vocabulary.IN_PLACE_ATTRIBUTE].b = True
        return launch

    def _outputs_of(self, members: set[Node], phase: int) -> list[str]:
        """Returns the tensors that a cluster computes and other ops use, function results first."""
        used: set[str] = set()
        for node in members:
            used.update(self._results_of.get(node, ()))
            for user in node.users:
                if user in members:
                    continue
                if node in self._reads and self._placement.locations.get(user) is self._placement.locations[node]:
                    if self._phases[user] in self._reads[node]:
                        continue  # that program reads the variable itself
                used.update(
                    tensor_name for tensor_name, producer in zip(user.inputs, user.producers) if producer is node
                )
        last = len(self._result_order)
        return sorted(used, key=lambda tensor_name: (self._result_order.get(tensor_name, last), tensor_name))

    def _emit_node(self, node: Node) -> None:
        """Emits an op outside XLA programs: on the host, on an IPU, or control flow over several IPUs."""
        if host_ops.is_named_iterator(node):
            return
        location = self._placement.locations[node]
        device = HOST_DEVICE if location is HOST and not host_ops.runs_on_device(node) else self._all.device
        proto = self._copy_node(node, location, device)
        inputs = node.inputs
        if node.op in vocabulary.INFEEDS and host_ops.to_infeed_dequeue(proto, node, self._consumer_of(node)):
            inputs = []
        self._all.specialise(proto)
        del proto.input[:]
        proto.input.extend(self._tensor(tensor_name, location.shard, device) for tensor_name in inputs)
        proto.input.extend(f"^{unit}" for unit in self._emitted_names(node.controls))
        self._units[node] = node.name
        if location is MULTI_SHARD:
            self._record_results(node, self._emit_control_flow(node, proto))
        else:
            if node.op in vocabulary.LOOPS:
                self._note_trip_count(node, proto)
            self._record_results(node, itertools.repeat(location.shard))

    def _note_trip_count(self, node: Node, proto: node_def_pb2.NodeDef) -> None:
        """Stores the trip count of a loop in its attributes, if it is known."""
        trips = trip_count(self._graph, node, self._all.graphs)
        if trips is not None:
            proto.attr[vocabulary.TRIPS_ATTRIBUTE].i = trips

    def _copy_node(self, node: Node, location: Location, device: str) -> node_def_pb2.NodeDef:
        """Adds a copy of an op to the emitted function, without annotations of the script or a placer."""
        proto = self._function.node_def.add()
        proto.CopyFrom(node.proto)
        # Functions over several IPUs are emitted, and then named; all others are called as they stand.
        strip_attributes(proto, (lambda name: name) if location is MULTI_SHARD else self._all.graphs.external_name)
        proto.device = device
        if location.shard is not None:
            proto.attr[vocabulary.CHIP_ATTRIBUTE].i = self._all.replica.chip(location.shard)
        return proto

    def _record_results(self, node: Node, shards: Iterable[Shard | None]) -> None:
        """Records the names of an op's results and which shards hold them (None for the host or several)."""
        added = 0 if node.chunks is None else CHUNK_COUNTERS
        held_shards = itertools.islice(shards, added, None)
        for name, types in op_types.output_types(node.proto).items():
            for index in range(len(types)):
                tensor = f"{node.name}:{name}:{index}"
                self._names[tensor] = f"{node.name}:{name}:{index + added}"
                shard = next(held_shards, None)
                if shard is not None:
                    self._shards[tensor] = shard

    def _consumer_of(self, node: Node) -> Chip:
        """Returns the chip that consumes an infeed's elements."""
        users = (self._placement.locations.get(user, HOST).shard for user in node.users)
        return self._all.replica.chip(next((shard for shard in users if shard is not None), Shard(0)))

    def _emit_control_flow(self, node: Node, proto: node_def_pb2.NodeDef) -> Sequence[Shard | None]:
        """Emits the functions of a loop, branch or call; returns the locations of the results."""
        values = [self._shards.get(tensor_name) for tensor_name in node.function_inputs]
        emitting = self._all
        if node.op in vocabulary.LOOPS:
            self._note_trip_count(node, proto)
            self._function.node_def.extend(
                host_ops.move_iterators_to_device(node, proto, emitting.graphs, emitting.device)
            )
        if node.chunks is None:
            return emit_functions(proto, self._placement, values, emitting.graphs, emitting.emit)
        single = copy_node(proto)
        self._function.node_def.extend(loop_over_chunks(proto, node.chunks))
        counters = [None] * CHUNK_COUNTERS
        results = emit_functions(proto, self._placement, [*counters, *values], emitting.graphs, emitting.emit)
        planned = emitting.planned
        if planned is not None:
            emit_functions(single, self._placement, values, planned.graphs, planned.emit)
        emitting.chunked_loops[proto.attr["body"].func.name] = None if planned is None else single
        return results

    def _tensor(self, tensor_name: str, shard: Shard | None, device: str) -> str:
        """Returns a tensor's name on a shard (None: anywhere), adding an exchange if it is elsewhere."""
        producer = self._graph.producer(tensor_name)
        if producer is not None and producer in self._placement.constants:
            return self._clone_constant(producer, device) + tensor_name[len(producer.name) :]
        name = self._names[tensor_name]
        source = self._shards.get(tensor_name)
        if shard is None or source is None or source == shard or self._graph.type_of(tensor_name) in op_types.HANDLES:
            return name
        if (tensor_name, shard) not in self._copies:
            copy = self._function.node_def.add(
                name=f"exchange_{len(self._copies)}", op=vocabulary.INTER_COPY, device=self._all.device, input=[name]
            )
            copy.attr["T"].type = self._graph.type_of(tensor_name)
            ends = self._all.replica.chip(source), self._all.replica.chip(shard)
            copy.attr["source"].i, copy.attr["destination"].i = ends
            copy.attr[vocabulary.CHIP_ATTRIBUTE].i = ends[0]
            self._copies[tensor_name, shard] = f"{copy.name}:output:0"
            self._all.exchanges.append(Exchange(tensor_name, *ends, self._graph.traced))
        return self._copies[tensor_name, shard]

    def _clone_constant(self, node: Node, device: str) -> str:
        """Clones a constant expression for an op outside XLA programs; returns the clone's name."""
        key = (node, device)
        if key not in self._cloned:
            inputs = [self._tensor(tensor_name, None, device) for tensor_name in node.inputs]
            proto = self._function.node_def.add()
            proto.CopyFrom(node.proto)
            strip_attributes(proto, lambda name: name)
            proto.device = device
            proto.name = f"constant_{len(self._cloned)}"
            del proto.input[:]
            proto.input.extend(inputs)
            self._cloned[key] = proto.name
        return self._cloned[key]

    def _emitted_names(self, nodes: Iterable[Node]) -> list[str]:
        """Returns the emitted nodes of these nodes, each once; constants have none and need no waiting."""
        units: dict[str, None] = {}
        pending, seen = list(nodes)[::-1], set()
        while pending:
            node = pending.pop()
            if node in seen or node in self._placement.constants:
                continue
            seen.add(node)
            if node in self._units:
                units[self._units[node]] = None
            elif host_ops.is_named_iterator(node):  # it does not run: what it would have waited for comes before
                pending.extend(reversed(node.controls))
        return list(units)


def _first_consumers(graph: FunctionGraph, placement: Placement) -> dict[str, Shard]:
    """Maps each argument to the shard of the first op, in topological order, that consumes it."""
    first: dict[str, Shard] = {}
    for node, location in placement.locations.items():
        if location.shard is not None and location.is_in_program:
            for tensor_name, producer in zip(node.inputs, node.producers):
                if producer is None:
                    first.setdefault(tensor_name, location.shard)
    return first
