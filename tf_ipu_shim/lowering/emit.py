"""The functions that run: launches of XLA programs, exchanges between IPUs, ops on the host.

Every node gets an explicit device, loop conditions and counters included: a loop whose parts land on two devices by
accident does not partition.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from tensorflow.core.framework import attr_value_pb2, function_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import tensor_util

from tf_ipu_shim.lowering import feeds, op_types, vocabulary
from tf_ipu_shim.lowering.counters import without_counters
from tf_ipu_shim.lowering.emit_cluster import ClusterFunction
from tf_ipu_shim.lowering.function_graph import Chunks, FunctionGraph, Node
from tf_ipu_shim.lowering.functions import Functions, strip
from tf_ipu_shim.lowering.location import HOST, SEVERAL
from tf_ipu_shim.lowering.phases import clone_reads, clusters_of, phases_of
from tf_ipu_shim.lowering.placement import Placement, Placer
from tf_ipu_shim.lowering.program import Cluster, Exchange
from tf_ipu_shim.lowering.replicas import Replica
from tf_ipu_shim.lowering.variants import loosen

HOST_DEVICE = "/device:CPU:0"
_INTEGERS = frozenset({3, 9})  # DT_INT32, DT_INT64: what shapes, axes and indices are made of
_HANDLES = frozenset({op_types.RESOURCE, op_types.VARIANT})
_ZERO = tensor_util.make_tensor_proto(0, types_pb2.DT_INT32)
_serial = itertools.count()

# Tells which arguments of a function XLA must know when it compiles: (function, number of arguments) -> flags.
ConstantArguments = Callable[[function_pb2.FunctionDef, int], Sequence[bool]]


class Emitter:
    """Emits functions, those of sharded loops and branches included.

    Args:
        graphs: all functions of the program.
        device: of the IPU ops, such as `/device:IPU:0`.
        constant_arguments: asks TensorFlow's analysis.
        replica: for which replica; the emitted IPUs are those of the device. The only one when left out.
        programs: the XLA programs of all replicas by their content: what is the same is compiled once.
        plans: whether loops that run in chunks are emitted for the memory plan besides, with one iteration after the
            other as on a real IPU.

    Attributes:
        functions: what was emitted.
        clusters: the XLA programs.
        exchanges: the exchanges between IPUs.
        compiled: traced function and FunctionDef of each XLA program.
        planned: what was emitted for the memory plan alone; None where that is nothing.
        chunked_loops: for the function that runs a chunk, the loop to plan instead; None where none is planned.
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
        self._programs = {} if programs is None else programs
        self._serial = itertools.count()
        self.functions: list[function_pb2.FunctionDef] = []
        self.clusters: list[Cluster] = []
        self.exchanges: list[Exchange] = []
        self.compiled: list[tuple[str, function_pb2.FunctionDef]] = []
        self.planned = Emitter(graphs, device, constant_arguments, replica) if plans else None
        self.chunked_loops: dict[str, node_def_pb2.NodeDef | None] = {}

    def emit(
        self, name: str, placement: Placement, argument_ipus: Mapping[str, int], loops: bool = False
    ) -> tuple[str, list[int | None]]:
        """Emits one function.

        Args:
            name: the traced function.
            placement: where its ops run.
            argument_ipus: the IPU that holds a value when the function starts; arguments from the host are not in it.
            loops: whether it runs in each iteration of a loop.

        Returns:
            The emitted function's name, and the IPU that holds each result (None for the host or several).
        """
        graph = self.graphs[name]
        placement = loosen(graph, placement)
        if loops:
            placement = without_counters(graph, placement)
        return _FunctionEmitter(self, graph, placement, argument_ipus).run()

    def shared(self, definition: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
        """The XLA program, or that of another replica which is the same."""
        if self.replica.count > 1:
            name = definition.signature.name
            definition.signature.name = ""
            content = definition.SerializeToString(deterministic=True)
            definition.signature.name = name
            definition = self._programs.setdefault(content, definition)
        return definition

    def specialise(self, proto: node_def_pb2.NodeDef) -> None:
        """Makes an emitted op the one of this replica."""
        self.replica.specialise(proto, next(self._serial))


class _FunctionEmitter:
    """The state of emitting one function."""

    def __init__(
        self, emitter: Emitter, graph: FunctionGraph, placement: Placement, argument_ipus: Mapping[str, int]
    ) -> None:
        self._all = emitter
        self._graph = graph
        self._placement = placement
        self._phases = phases_of(graph, placement)
        self._reads = clone_reads(graph, placement, self._phases)
        self._reads_in: dict[int, set[Node]] = {}  # the same by phase
        for read, phases in self._reads.items():
            for phase in phases:
                self._reads_in.setdefault(phase, set()).add(read)
        self._result_order = {text: index for index, text in enumerate(dict.fromkeys(graph.returns))}
        self._results_of: dict[Node, list[str]] = {}
        for text in self._result_order:
            producer = graph.producer(text)
            if producer is not None:
                self._results_of.setdefault(producer, []).append(text)
        self._clusters = clusters_of(placement, self._phases)
        self._serial = next(_serial)
        self._function = function_pb2.FunctionDef()
        self._names: dict[str, str] = {}  # tensor of the traced function -> tensor of the emitted one
        # Tensor of the traced function -> the IPU that holds it. What the host feeds goes to its first user.
        self._ipus: dict[str, int] = {**_first_users(graph, placement), **argument_ipus}
        self._units: dict[Node, str] = {}  # node of the traced function -> node of the emitted one
        self._copies: dict[tuple[str, int], str] = {}
        self._cloned: dict[tuple[Node, str], str] = {}
        self._last_on: dict[int, str] = {}

    def run(self) -> tuple[str, list[int | None]]:
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
        emitted: set[tuple[int, int]] = set()
        for node in sorted(self._placement.locations, key=lambda node: (self._phases[node], node.index)):
            key = cluster_of.get(node)
            if key is None:
                self._emit_node(node)
            elif key not in emitted:
                emitted.add(key)
                self._emit_cluster(*key)
        for result in graph.results:
            function.signature.output_arg.add(name=result.name, type=result.type)
            function.ret[result.name] = self._tensor(result.tensor, None, self._all.device)
        for unit in dict.fromkeys(self._unit(node) for node in graph.control_returns):
            if unit is not None:
                function.signature.control_output.append(unit)
                function.control_ret[unit] = unit
        self._all.functions.append(function)
        return function.signature.name, [self._ipus.get(tensor) for tensor in graph.returns]

    def _emit_cluster(self, ipu: int, phase: int) -> None:
        nodes = self._clusters[ipu, phase]
        own = set(nodes)
        reads = self._reads_in.get(phase, set())
        cut = ClusterFunction(self._graph, nodes, self._placement.constants, reads, self._all.graphs.outside)
        outputs = self._outputs_of(own, phase)
        name = f"{self._graph.name}_ipu{ipu}_phase{phase}_{self._serial}"
        order = cut.input_order({})
        definition = cut.definition(name, order, outputs)
        constants = 0
        if any(cut.inputs[tensor] in _INTEGERS for tensor in order):
            flags = dict(zip(order, self._all.constant_arguments(definition, len(order))))
            flags = {tensor: flag and self._may_be_constant(cut, nodes, tensor) for tensor, flag in flags.items()}
            constants = sum(flags.values())
            if constants:
                order = cut.input_order(flags)
                definition = cut.definition(f"{name}_ordered", order, outputs)
        definition = self._all.shared(definition)
        self._all.functions.append(definition)
        self._all.compiled.append((self._graph.traced, definition))

        launch = self._function.node_def.add(name=f"ipu{ipu}_phase{phase}", op=vocabulary.LAUNCH)
        launch.device = self._all.device
        launch.attr[vocabulary.CHIP_ATTRIBUTE].i = self._all.replica.chip(ipu)
        launch.input.extend(self._tensor(tensor, ipu, self._all.device) for tensor in order)
        types = [cut.inputs[tensor] for tensor in order]
        resources = types.count(op_types.RESOURCE)
        launch.attr["Tconstants"].list.type.extend(types[:constants])
        launch.attr["Targs"].list.type.extend(types[constants : len(types) - resources])
        launch.attr["Nresources"].i = resources
        launch.attr["Tresults"].list.type.extend(self._graph.type_of(tensor) for tensor in outputs)
        launch.attr["function"].func.name = definition.signature.name
        # One IPU runs its programs one after the other, whether or not data connects them.
        before = {self._last_on[ipu]} if ipu in self._last_on else set()
        before |= {unit for control in cut.outside_controls if (unit := self._unit(control)) is not None}
        launch.input.extend(f"^{unit}" for unit in sorted(before))
        self._last_on[ipu] = launch.name
        for index, tensor in enumerate(outputs):
            self._names[tensor] = f"{launch.name}:results:{index}"
            self._ipus[tensor] = ipu
        self._units.update(dict.fromkeys(nodes, launch.name))
        self._all.clusters.append(
            Cluster(
                self._all.replica.chip(ipu),
                phase,
                definition.signature.name,
                order,
                types,
                outputs,
                constants,
                self._graph.traced,
            )
        )

    @staticmethod
    def _may_be_constant(cut: ClusterFunction, nodes: Sequence[Node], tensor: str) -> bool:
        """Whether XLA can want to know an input beforehand.

        TensorFlow's analysis takes all inputs of a call for constants, weights and data of a Keras LSTM among them: XLA
        would compile again for each value. So of what only calls use, integers alone count; variables never do.
        """
        kind = cut.inputs[tensor]
        if kind in _INTEGERS or kind in _HANDLES:
            return kind in _INTEGERS
        return any(node.op not in vocabulary.FUNCTION_ATTRIBUTES for node in nodes if tensor in node.inputs)

    def _outputs_of(self, own: set[Node], phase: int) -> list[str]:
        """Tensors that a cluster makes and others use: results first, in their order."""
        used: set[str] = set()
        for node in own:
            used.update(self._results_of.get(node, ()))
            for user in node.users:
                if user in own:
                    continue
                if node in self._reads and self._placement.locations.get(user) is self._placement.locations[node]:
                    if self._phases[user] in self._reads[node]:
                        continue  # that program reads the variable itself
                used.update(text for text, producer in zip(user.inputs, user.producers) if producer is node)
        last = len(self._result_order)
        return sorted(used, key=lambda text: (self._result_order.get(text, last), text))

    def _emit_node(self, node: Node) -> None:
        """An op of its own: on the host, alone on an IPU, or control flow over several IPUs."""
        if feeds.is_only_named(node):
            return
        location = self._placement.locations[node]
        device = HOST_DEVICE if location is HOST and not feeds.runs_on_device(node) else self._all.device
        ipu = location.ipu
        proto = self._function.node_def.add()
        proto.CopyFrom(node.proto)
        strip(proto, (lambda name: name) if location is SEVERAL else self._all.graphs.outside)
        proto.device = device
        if ipu is not None:
            proto.attr[vocabulary.CHIP_ATTRIBUTE].i = self._all.replica.chip(ipu)
        inputs = node.inputs
        if node.op in vocabulary.INFEEDS and feeds.as_dequeue(proto, node, self._taker_of(node)):
            inputs = []
        self._all.specialise(proto)
        del proto.input[:]
        proto.input.extend(self._tensor(text, ipu, device) for text in inputs)
        proto.input.extend(
            f"^{unit}" for unit in dict.fromkeys(self._unit(control) for control in node.controls) if unit is not None
        )
        self._units[node] = node.name
        results: Sequence[int | None] = self._emit_control_flow(node, proto) if location is SEVERAL else []
        added = 0 if node.chunks is None else 1  # a loop over chunks has a counter in front
        outputs = op_types.output_types(node.proto).items()
        tensors = [(name, index) for name, types in outputs for index in range(len(types))]
        for position, (name, index) in enumerate(tensors):
            tensor = f"{node.name}:{name}:{index}"
            self._names[tensor] = f"{node.name}:{name}:{index + added}"
            held = results[position + added] if position + added < len(results) else ipu
            if held is not None:
                self._ipus[tensor] = held

    def _taker_of(self, node: Node) -> int:
        """The IPU that takes what an infeed gives."""
        users = (self._placement.locations.get(user, HOST).ipu for user in node.users)
        return self._all.replica.chip(next((ipu for ipu in users if ipu is not None), 0))

    def _emit_control_flow(self, node: Node, proto: node_def_pb2.NodeDef) -> Sequence[int | None]:
        """Emits the functions of a loop, branch or call, and has the node run them. Returns where results are."""
        values = [self._ipus.get(text) for text in Placer.call_inputs(node)]
        if node.chunks is None:
            return self._emit_functions(self._all, proto, values)
        single = node_def_pb2.NodeDef()
        single.CopyFrom(proto)
        self._over_chunks(proto, node.chunks)
        results = self._emit_functions(self._all, proto, [None, *values])
        if self._all.planned is not None:
            self._emit_functions(self._all.planned, single, values)
        self._all.chunked_loops[proto.attr["body"].func.name] = single if self._all.planned is not None else None
        return results

    def _over_chunks(self, proto: node_def_pb2.NodeDef, chunks: Chunks) -> None:
        """Makes a loop one over chunks, which counts the iterations that are done in its first loop variable."""
        start = self._function.node_def.add(name=f"{proto.name}/ipu_chunks_done", op="Const", device=self._all.device)
        start.attr["dtype"].type = types_pb2.DT_INT32
        start.attr["value"].tensor.CopyFrom(_ZERO)
        proto.input.insert(0, f"{start.name}:output:0")
        proto.attr["T"].list.type.insert(0, types_pb2.DT_INT32)
        proto.attr["cond"].func.name, proto.attr["body"].func.name = chunks
        for of_single_iterations in ("output_shapes", "_num_original_outputs"):
            if of_single_iterations in proto.attr:
                del proto.attr[of_single_iterations]

    def _emit_functions(
        self, emitter: Emitter, proto: node_def_pb2.NodeDef, values: Sequence[int | None]
    ) -> Sequence[int | None]:
        """Emits the functions that an op runs on values on these IPUs. Returns where results are."""
        body = proto.attr["body"].func.name if proto.op in vocabulary.LOOPS else None
        if body is not None:
            # What a loop carries is where its body leaves it, from the second iteration on.
            values = self._carried(body, values)
        results: Sequence[int | None] = []
        emitted: dict[str, str] = {}
        for called in dict.fromkeys(op_types.called_functions(proto)):
            arguments = self._graph_of(called).arguments
            held = {name: ipu for name, ipu in zip(arguments, values) if ipu is not None}
            inside = self._placement.functions[called]
            emitted[called], left = emitter.emit(called, inside, held, body is not None)
            if body is None or called == body:
                results = left
        for _, function in op_types.function_values(proto):
            function.name = emitted[function.name]
        if proto.op not in vocabulary.CALLS:
            # Only loops and branches that are taken apart can have parts on several devices.
            proto.attr["_lower_using_switch_merge"].CopyFrom(attr_value_pb2.AttrValue(b=True))
        return results

    def _carried(self, body: str, initial: Sequence[int | None]) -> list[int | None]:
        graph, placement = self._graph_of(body), self._placement.functions[body]
        carried: list[int | None] = []
        for start, tensor in zip(initial, graph.returns):
            producer = graph.producer(tensor)
            carried.append(start if producer is None else placement.locations.get(producer, HOST).ipu)
        return carried

    def _graph_of(self, name: str) -> FunctionGraph:
        return self._all.graphs[name]

    def _tensor(self, text: str, ipu: int | None, device: str) -> str:
        """The name under which a tensor is to be had on an IPU (None: anywhere), exchanged where it is elsewhere."""
        producer = self._graph.producer(text)
        if producer is not None and producer in self._placement.constants:
            return self._clone_constant(producer, device) + text[len(producer.name) :]
        name = self._names[text]
        source = self._ipus.get(text)
        if ipu is None or source is None or source == ipu or self._graph.type_of(text) in _HANDLES:
            return name
        if (text, ipu) not in self._copies:
            copy = self._function.node_def.add(
                name=f"exchange_{len(self._copies)}", op=vocabulary.INTER_COPY, device=self._all.device, input=[name]
            )
            copy.attr["T"].type = self._graph.type_of(text)
            ends = self._all.replica.chip(source), self._all.replica.chip(ipu)
            copy.attr["source"].i, copy.attr["destination"].i = ends
            copy.attr[vocabulary.CHIP_ATTRIBUTE].i = ends[0]
            self._copies[text, ipu] = f"{copy.name}:output:0"
            self._all.exchanges.append(Exchange(text, *ends, self._graph.traced))
        return self._copies[text, ipu]

    def _clone_constant(self, node: Node, device: str) -> str:
        """A constant expression that an op outside the XLA programs needs; returns the clone's name."""
        key = (node, device)
        if key not in self._cloned:
            inputs = [self._tensor(text, None, device) for text in node.inputs]
            proto = self._function.node_def.add()
            proto.CopyFrom(node.proto)
            strip(proto, lambda name: name)
            proto.device = device
            proto.name = f"constant_{len(self._cloned)}"
            del proto.input[:]
            proto.input.extend(inputs)
            self._cloned[key] = proto.name
        return self._cloned[key]

    def _unit(self, node: Node) -> str | None:
        """The emitted node that stands for a node; None for a constant, which nothing has to wait for."""
        return None if node in self._placement.constants else self._units.get(node)


def _first_users(graph: FunctionGraph, placement: Placement) -> dict[str, int]:
    """For each argument the IPU of the first op that takes it, in topological order."""
    first: dict[str, int] = {}
    for node, location in placement.locations.items():
        if location.ipu is not None and location.is_in_program:
            for text, producer in zip(node.inputs, node.producers):
                if producer is None:
                    first.setdefault(text, location.ipu)
    return first
