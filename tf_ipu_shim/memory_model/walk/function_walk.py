"""Analyses one function of a lowered program: its XLA programs, exchanges, loops and host ops."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import NamedTuple

from tf_ipu_shim.compiler.emit.control_flow import CHUNK_COUNTERS
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import data_inputs
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.compiler.placement import cloned_constants
from tf_ipu_shim.cycle_model import Computation, SyncPoint, matmul_of
from tf_ipu_shim.cycle_model.sizes import ElementCount, ExchangeSizes, HostSizes, Move
from tf_ipu_shim.machine.memory import Block, LoopResults, Mode, Step, Value
from tf_ipu_shim.memory_model.computations.matmul_passes import FORWARD
from tf_ipu_shim.memory_model.computations.work import UNKNOWN_TRIPS
from tf_ipu_shim.memory_model.hlo.running_order import execution_order
from tf_ipu_shim.memory_model.hlo.trees import is_same
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec
from tf_ipu_shim.memory_model.shapes.tensor_lists import forwarded_inputs, infer
from tf_ipu_shim.memory_model.walk import cluster_walk, uncompiled_loops
from tf_ipu_shim.memory_model.walk.analysis_context import Feed
from tf_ipu_shim.memory_model.walk.block_writer import BlockWriter, TensorState
from tf_ipu_shim.memory_model.walk.emitted_counters import find_counters
from tf_ipu_shim.memory_model.walk.recomputation import interleaves, recompute
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_shape

_FEEDS = vocabulary.INFEEDS | {vocabulary.INFEED_DEQUEUE}


class _CalledFunction(NamedTuple):
    """A function that a loop or conditional calls."""

    analyzer: FunctionAnalyzer
    arguments: list[TensorState]
    results: list[TensorState]


class FunctionAnalyzer(BlockWriter):
    """Analyses one emitted function, or the program's single node."""

    def function(self, name: str, arguments: Sequence[TensorState]) -> list[TensorState]:
        """Analyses a function; returns its results."""
        definition = self.context.library[name]
        tensors = {argument.name: state for argument, state in zip(definition.signature.input_arg, arguments)}
        for unit in execution_order(definition.node_def):
            inputs = [data_inputs(node) for node in unit]
            if unit[0].op == vocabulary.INTER_COPY:
                received = self._exchange(unit, [tensors[tensor_names[0]] for tensor_names in inputs])
                tensors.update((op_types.output_names(node)[0], state) for node, state in zip(unit, received))
                continue
            results = self.node(unit[0], [tensors[tensor_name] for tensor_name in inputs[0]], inputs[0])
            tensors.update(zip(op_types.output_names(unit[0]), results))
        return [tensors[definition.ret[output.name]] for output in definition.signature.output_arg]

    def node(
        self, node: node_def_pb2.NodeDef, inputs: Sequence[TensorState], names: Sequence[str]
    ) -> Sequence[TensorState]:
        """Analyses one node."""
        if node.op == vocabulary.LAUNCH:
            chip = node.attr[vocabulary.CHIP_ATTRIBUTE].i
            return cluster_walk.launch(self, node.attr["function"].func.name, chip, inputs)
        loop = self.context.planned_loop(node)
        if loop is not None:  # the chunks' own loop variables, which count, are on the host
            counters = [TensorState(TensorSpec(types_pb2.DT_INT64, ()), name=node.name)] * CHUNK_COUNTERS
            return [*counters, *self._loop(loop, inputs[CHUNK_COUNTERS:], True)]
        if node.op == vocabulary.LOOP_TOTAL:  # what it tells, the condition of the loop that is planned does
            return [TensorState(TensorSpec(types_pb2.DT_INT64, ()), name=node.name)]
        if node.op == vocabulary.HANDLE:
            return [inputs[0]]
        called = op_types.called_functions(node)
        if called and self.context.is_emitted(called):
            if node.op in vocabulary.CALLS:
                return self.function(called[0], inputs)
            return self._loop(node, inputs) if node.op in vocabulary.LOOPS else self._branch(node, called, inputs)
        return self._uncompiled_op(node, inputs, names)

    def _exchange(self, copies: Sequence[node_def_pb2.NodeDef], arguments: Sequence[TensorState]) -> list[TensorState]:
        """Adds copies between IPUs that form one exchange; returns the received tensors."""
        sent_by_ipu: dict[int, list[int]] = {}
        received_by_ipu: dict[int, list[int]] = {}
        moves: list[Move] = []
        results = []
        key = self.context.new_key()
        for copy, state in zip(copies, arguments):
            source, destination = copy.attr["source"].i, copy.attr["destination"].i
            sent = self.value(source, state)
            name, size = self.blocks[source].values[sent].owner, self.context.sizes.of(state.spec)
            if sent not in sent_by_ipu.get(source, ()):
                self._rearrange(source, sent, key)
            block = self.blocks.setdefault(destination, Block(f"IPU {destination}"))
            received = {destination: block.add(Value(size, name, "exchange"))}
            # Elements keep their places on the tiles: poputil/TileMapping.hpp, lines 459 to 460.
            results.append(TensorState(state.spec, name=name, values=received, neighbours=state.neighbours))
            self.map_tensor("inter-ipu-copy", results[-1], destination)
            sent_by_ipu.setdefault(source, []).append(sent)
            received_by_ipu.setdefault(destination, []).append(results[-1].values[destination])
            moves.append(Move(size, source, destination))
            exchanges = self.context.exchanges
            exchanges[source, destination] = exchanges.get((source, destination), 0) + size
        owner = f"exchange of {results[0].name}" + (f" and {len(copies) - 1} more" if len(copies) > 1 else "")
        sync_point = None
        if self.context.names is not None:
            copied = self.context.names.name(
                f"{results[0].name}_to_", "inter-ipu-copy/GlobalPre", group=("exchange", key)
            )
            work = self.copy_work("exchange", copied, ExchangeSizes(tuple(moves)))
            sync_point = SyncPoint(key, computation=work)
        for ipu in sorted({*sent_by_ipu, *received_by_ipu}):
            sent_here = tuple(dict.fromkeys(sent_by_ipu.get(ipu, ())))
            self.block(ipu).run(owner, sent_here, received_by_ipu.get(ipu, ()), work=sync_point)
        return results

    def _rearrange(self, ipu: int, sent: int, exchange: int) -> None:
        """Adds the copy that puts a matmul's result in order before it leaves the IPU."""
        names = self.context.names
        work = None if names is None else matmul_of(self.blocks[ipu], sent)
        if names is None or work is None:
            return
        result = self.blocks[ipu].values[sent]
        instruction = work.name.rpartition("/")[0]
        copied = names.name(f"Copy_{instruction}_to_", "inter-ipu-copy/OnTileCopy", group=("exchange", exchange))
        copy = Computation("copy", copied, ElementCount(result.bytes // work.element_bytes), work.element_bytes)
        self.block(ipu).run(result.owner, (sent,), (), work=copy)

    def _inside(
        self, function: str, inputs: Sequence[TensorState], remote: Set[int] = frozenset(), pipeline: str = ""
    ) -> _CalledFunction:
        """Analyses a loop's or branch's function.

        Arguments whose numbers are in `remote` are in remote memory; `pipeline` is the one whose mini-batch it is.
        """
        inner = FunctionAnalyzer(self.context, {}, function, pipeline or self.pipeline)
        arguments = [
            # Loop variables change.
            dataclasses.replace(
                state,
                spec=state.spec._replace(literal=None),
                is_fed=False,
                values={},
                outer=(self, state),
                is_remote=index in remote,
                is_constant=False,
                is_element=False,
            )
            for index, state in enumerate(inputs)
        ]
        results = inner.function(function, arguments)
        for index, result in enumerate(results):
            if result.outer is None and index not in remote:
                for ipu, value_id in result.values.items():
                    inner.blocks[ipu].results.append(value_id)
        return _CalledFunction(inner, arguments, results)

    def _loop(
        self, node: node_def_pb2.NodeDef, inputs: Sequence[TensorState], in_chunks: bool = False
    ) -> list[TensorState]:
        pipeline = PipelineDescription.of(node)
        accumulators = self._accumulators(node, inputs) if pipeline is not None else frozenset[int]()
        remote = {
            index
            for index in accumulators
            if self.context.storage.of("accumulator", self.context.sizes.of(inputs[index].spec), 1).remote
        }
        trips = node.attr[vocabulary.TRIPS_ATTRIBUTE].i if vocabulary.TRIPS_ATTRIBUTE in node.attr else None
        self._find_counters(node, trips, pipeline)
        with self.context.work.repeated(trips, in_chunks, pipeline.count if pipeline is not None else None):
            name = pipeline.name if pipeline is not None else ""
            body, arguments, results = self._inside(node.attr["body"].func.name, inputs, remote, name)
            test = self._inside(node.attr["cond"].func.name, inputs).analyzer
        results_by_ipu: dict[int, list[int]] = {}
        after_loop = []
        for index, (state, argument, result) in enumerate(zip(inputs, arguments, results)):
            if result is argument:
                after_loop.append(state)
                continue
            result_state = TensorState(state.spec._replace(literal=None), name=node.name, is_remote=index in remote)
            result_state.neighbours = result.neighbours
            for ipu, value_id in result.values.items():
                if result_state.is_remote:
                    self.context.keep_remote(ipu, "accumulator", self.context.sizes.of(state.spec))
                    result_state.name = body.blocks[ipu].values[value_id].owner
                    continue
                value = self._loop_result(body.blocks[ipu], value_id, ipu, state, argument)._replace(owner=node.name)
                if index in accumulators:
                    value = value._replace(owner=body.blocks[ipu].values[value_id].owner, kind="accumulator")
                result_state.values[ipu] = self.blocks.setdefault(ipu, Block(f"IPU {ipu}")).add(value)
                results_by_ipu.setdefault(ipu, []).append(result_state.values[ipu])
            after_loop.append(result_state)
        body.recompute(pipeline)
        ipus = sorted({*body.blocks, *results_by_ipu})
        waiting = self.begin_pipeline(pipeline, ipus, body.blocks) if pipeline is not None else {}
        self._run_inside(node.name, [test, body], results_by_ipu, True, waiting, self._iterations(pipeline, trips))
        return after_loop

    def _loop_result(self, body: Block, value_id: int, ipu: int, state: TensorState, argument: TensorState) -> Value:
        """Returns a loop variable after the loop, which shares memory with its value before the loop."""
        value = Value(self.context.sizes.of(state.spec), "", "temporary")
        if ipu not in argument.values:
            return value
        first, argument_id = self.value(ipu, state), argument.values[ipu]
        if is_same(body, value_id, argument_id):
            return value._replace(mode=Mode.VIEW, of=(first,))
        body.values[argument_id] = body.values[argument_id]._replace(mode=Mode.CARRIED)
        return value._replace(mode=Mode.IN_PLACE, of=(first,))

    def _find_counters(
        self, node: node_def_pb2.NodeDef, trips: int | None, pipeline: PipelineDescription | None
    ) -> None:
        """Finds the counters of a loop whose iterations are known before it runs."""
        if trips is not None or pipeline is not None:
            body = self.context.library[node.attr["body"].func.name]
            self.context.counters.update(find_counters(body, self.context.library))

    def recompute(self, pipeline: PipelineDescription | None) -> None:
        """Makes a pipeline's annotated stages recompute."""
        if pipeline is not None and pipeline.training and self.stage_ops:
            for block in self.blocks.values():
                repeated = recompute(
                    block, self.stage_ops, pipeline.stages, interleaves(pipeline), self.context.new_key
                )
                if self.context.names is not None:
                    self.context.names.products.extend((op, FORWARD) for op in repeated)

    def _accumulators(self, node: node_def_pb2.NodeDef, inputs: Sequence[TensorState]) -> frozenset[int]:
        """Returns the loop variables that a pipeline's loop changes, except counters."""
        body = self.context.library[node.attr["body"].func.name]
        argument_names = [argument.name for argument in body.signature.input_arg]
        returned = [body.ret[output.name] for output in body.signature.output_arg]
        return frozenset(
            index
            for index, (state, argument_name, returned_name) in enumerate(zip(inputs, argument_names, returned))
            if argument_name != returned_name
            and state.variable < 0
            and state.spec.type not in (types_pb2.DT_INT32, types_pb2.DT_INT64)
        )

    def _branch(
        self, node: node_def_pb2.NodeDef, called: Sequence[str], inputs: Sequence[TensorState]
    ) -> list[TensorState]:
        """Analyses a conditional; its first input chooses the branch."""
        walks = [self._inside(function, inputs[1:]) for function in called]
        results_by_ipu: dict[int, list[int]] = {}
        remaining = []
        for alternatives in zip(*(walk.results for walk in walks)):
            built = TensorState(alternatives[0].spec._replace(literal=None), name=node.name)
            built.neighbours = alternatives[0].neighbours
            for ipu in sorted({ipu for result in alternatives for ipu in result.values}):
                block = self.blocks.setdefault(ipu, Block(f"IPU {ipu}"))
                built.values[ipu] = block.add(Value(self.context.sizes.of(built.spec), node.name, "temporary"))
                results_by_ipu.setdefault(ipu, []).append(built.values[ipu])
            remaining.append(built)
        sync_point = SyncPoint(self.context.new_key(), branches=True) if self.context.names is not None else None
        analyzers = [walk.analyzer for walk in walks]
        self._run_inside(node.name, analyzers, results_by_ipu, False, sync_point=sync_point)
        return remaining

    def _run_inside(
        self,
        name: str,
        analyzers: Sequence[FunctionAnalyzer],
        results_by_ipu: dict[int, list[int]],
        loops: bool,
        waiting: Mapping[int, list[int]] = MappingProxyType({}),
        sync_point: SyncPoint | None = None,
    ) -> None:
        for ipu in sorted({ipu for analyzer in analyzers for ipu in analyzer.blocks}.union(results_by_ipu, waiting)):
            operands = [value_id for analyzer in analyzers for value_id in analyzer.bound.get(ipu, ())]
            operands.extend(waiting.get(ipu, ()))
            parts = tuple(index for index, analyzer in enumerate(analyzers) if ipu in analyzer.blocks)
            inside = [analyzers[index].blocks[ipu] for index in parts]
            work = sync_point and sync_point._replace(parts=parts)
            self.block(ipu).run(name, operands, results_by_ipu.get(ipu, ()), inside, loops, work)

    def _iterations(self, pipeline: PipelineDescription | None, trips: int | None) -> SyncPoint | None:
        """Returns the loop's sync point with its trip count, if cycles are wanted."""
        if self.context.names is None:
            return None
        if trips is None and pipeline is not None:
            trips = pipeline.count
        times = UNKNOWN_TRIPS if trips is None else trips
        sync_point = SyncPoint(self.context.new_key(), times, counted=trips is not None, condition=0)
        if pipeline is None:
            return sync_point
        return sync_point._replace(schedule=pipeline.schedule, stages=pipeline.stages, training=pipeline.training)

    def _uncompiled_op(
        self, node: node_def_pb2.NodeDef, inputs: Sequence[TensorState], names: Sequence[str]
    ) -> list[TensorState]:
        """Analyses an op outside XLA programs, on the host or on an IPU."""
        arguments = {name: state.spec for name, state in zip(names, inputs)}
        specs = infer([node], arguments, self.context.library)
        is_constant = cloned_constants.is_constant(node.op, [state.is_constant for state in inputs])
        results = [
            TensorState(specs[name], name=node.name, is_constant=is_constant) for name in op_types.output_names(node)
        ]
        if node.op in _FEEDS:
            self.context.work.feed(node.input[0] if node.input else node.name, [state.spec.shape for state in results])
            for state in results:
                state.is_element = True
                state.spec = state.spec._replace(axis=Axis(0) if state.spec.shape else None)
        if node.op in ("Const", "VarHandleOp"):
            results[0].spec = _source_spec(node, results[0].spec)
        if vocabulary.CHIP_ATTRIBUTE in node.attr:
            self._on_ipu(node, inputs, results)
            return results
        for state in inputs:
            for ipu in state.values:
                name = f"copy of {state.name} to the host"
                work = self.copy_work("host", name, HostSizes(-self.context.sizes.of(state.spec)))
                self.copy(ipu, Step(name, (state.values[ipu],), (), work=work), node.op != vocabulary.OUTFEED_ENQUEUE)
                if node.op == vocabulary.OUTFEED_ENQUEUE:
                    self.map_tensor("outfeed", state, ipu, True, node.name)
                    size = self.context.sizes.of(state.spec)
                    self.context.feeds.append(Feed(self.blocks[ipu], ipu, size, work, state.name))
        return results

    def _on_ipu(
        self, node: node_def_pb2.NodeDef, inputs: Sequence[TensorState], results: Sequence[TensorState]
    ) -> None:
        """Analyses an uncompiled op on an IPU."""
        ipu = node.attr[vocabulary.CHIP_ATTRIBUTE].i
        operands = [self.value(ipu, state) for state in inputs]
        block = self.block(ipu)
        back = forwarded_inputs(node, self.context.library)
        for index, state in enumerate(results):
            value = Value(self.context.sizes.of(state.spec), node.name, "temporary")
            if index in back:
                value = value._replace(mode=Mode.VIEW, of=(operands[back[index]],))
            elif node.op in vocabulary.LOOPS:
                value = value._replace(mode=Mode.IN_PLACE, of=(operands[index],))
            state.values[ipu] = block.add(value)
        result_values = [state.values[ipu] for state in results]
        if self.context.names is not None and node.op in vocabulary.LOOPS:
            inside, sync_point = uncompiled_loops.loop_block(self.context, node, [state.spec for state in inputs])
            places = LoopResults(tuple(range(len(results))))
            block.run(node.name, operands, result_values, [inside], True, sync_point, loop_results=places)
        elif self.context.names is not None and node.op in vocabulary.CALLS:
            block.run(
                node.name,
                operands,
                result_values,
                [uncompiled_loops.call_block(self.context, node, [state.spec for state in inputs])],
            )
        else:
            block.run(node.name, operands, result_values, work=self.generic(node, [state.spec for state in results]))


def _source_spec(node: node_def_pb2.NodeDef, spec: TensorSpec) -> TensorSpec:
    """Returns the known properties of the result of an op without inputs."""
    if node.op == "Const":
        return spec._replace(literal=node.attr["value"].tensor)
    # Rows read from a table on the host have a shape that follows from the table's.
    shape = tensor_shape.as_shape(node.attr["shape"].shape)
    sizes = tuple(shape.as_list()) if shape.is_fully_defined() else None
    return TensorSpec(node.attr["dtype"].type, sizes, variable=True)
