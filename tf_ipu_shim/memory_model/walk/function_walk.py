"""The walk through one function of a lowered program: XLA programs, exchanges, loops, host ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from tf_ipu_shim.compiler.emit.control_flow import CHUNK_COUNTERS
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.compiler.placement import cloned_constants
from tf_ipu_shim.cycle_model import Computation, Meeting, product_that_gives
from tf_ipu_shim.machine.memory import Block, Mode, Step, Value
from tf_ipu_shim.memory_model.computations.work import UNKNOWN_TRIPS
from tf_ipu_shim.memory_model.hlo.running_order import in_order
from tf_ipu_shim.memory_model.hlo.trees import is_same
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis
from tf_ipu_shim.memory_model.shapes.shape_inference import Known
from tf_ipu_shim.memory_model.shapes.tensor_lists import handed_back, infer
from tf_ipu_shim.memory_model.walk import cluster_walk, uncompiled_loops
from tf_ipu_shim.memory_model.walk.analysis_context import Feed
from tf_ipu_shim.memory_model.walk.block_writer import BlockWriter, Held
from tf_ipu_shim.memory_model.walk.recomputation import interleaves, recompute
from tf_ipu_shim.tf_private.protos import node_def_pb2, types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_shape

_FEEDS = vocabulary.INFEEDS | {vocabulary.INFEED_DEQUEUE}


class FunctionWalk(BlockWriter):
    """The walk through one emitted function, or through the program's one node."""

    def function(self, name: str, arguments: Sequence[Held]) -> list[Held]:
        """Walks through a function; returns its results."""
        definition = self.walk.library[name]
        tensors = {argument.name: held for argument, held in zip(definition.signature.input_arg, arguments)}
        for unit in in_order(definition.node_def):
            inputs = [[text for text in node.input if not text.startswith("^")] for node in unit]
            if unit[0].op == vocabulary.INTER_COPY:
                received = self._exchange(unit, [tensors[texts[0]] for texts in inputs])
                tensors.update((op_types.output_names(node)[0], held) for node, held in zip(unit, received))
                continue
            results = self.node(unit[0], [tensors[text] for text in inputs[0]], inputs[0])
            tensors.update(zip(op_types.output_names(unit[0]), results))
        return [tensors[definition.ret[output.name]] for output in definition.signature.output_arg]

    def node(self, node: node_def_pb2.NodeDef, inputs: Sequence[Held], names: Sequence[str]) -> Sequence[Held]:
        """Writes down one node.

        Args:
            node: the node.
            inputs: what it takes.
            names: the names that these have in the function.

        Returns:
            What it gives.
        """
        if node.op == vocabulary.LAUNCH:
            chip = node.attr[vocabulary.CHIP_ATTRIBUTE].i
            return cluster_walk.launch(self, node.attr["function"].func.name, chip, inputs)
        loop = self.walk.planned_loop(node)
        if loop is not None:  # the chunks' own loop variables, which count, are on the host
            counters = [Held(Known(types_pb2.DT_INT64, ()), name=node.name)] * CHUNK_COUNTERS
            return [*counters, *self._loop(loop, inputs[CHUNK_COUNTERS:], True)]
        if node.op == vocabulary.LOOP_TOTAL:  # what it tells, the condition of the loop that is planned does
            return [Held(Known(types_pb2.DT_INT64, ()), name=node.name)]
        if node.op == vocabulary.HANDLE:
            return [inputs[0]]
        called = op_types.called_functions(node)
        if called and self.walk.is_emitted(called):
            if node.op in vocabulary.CALLS:
                return self.function(called[0], inputs)
            return self._loop(node, inputs) if node.op in vocabulary.LOOPS else self._branch(node, called, inputs)
        return self._alone(node, inputs, names)

    def _exchange(self, copies: Sequence[node_def_pb2.NodeDef], given: Sequence[Held]) -> list[Held]:
        """Copies between IPUs that are one exchange; returns what is received."""
        takes: dict[int, list[int]] = {}
        gives: dict[int, list[int]] = {}
        moves: list[tuple[int, int, int]] = []
        results = []
        key = self.walk.new_key()
        for copy, held in zip(copies, given):
            source, destination = copy.attr["source"].i, copy.attr["destination"].i
            sent = self.value(source, held)
            name, size = self.blocks[source].values[sent].owner, self.walk.sizes.of(held.known)
            if sent not in takes.get(source, ()):
                self._rearrange(source, sent, name, key)
            block = self.blocks.setdefault(destination, Block(f"IPU {destination}"))
            results.append(Held(held.known, name=name, at={destination: block.add(Value(size, name, "exchange"))}))
            self.map_tensor("inter-ipu-copy", results[-1], destination)
            takes.setdefault(source, []).append(sent)
            gives.setdefault(destination, []).append(results[-1].at[destination])
            moves.append((size, source, destination))
            exchanges = self.walk.exchanges
            exchanges[source, destination] = exchanges.get((source, destination), 0) + size
        owner = f"exchange of {results[0].name}" + (f" and {len(copies) - 1} more" if len(copies) > 1 else "")
        meeting = None
        if self.walk.names is not None:
            copied = self.walk.names.name(f"{results[0].name}_to_", "inter-ipu-copy/GlobalPre", group=("exchange", key))
            work = self.moved("exchange", copied, *(number for move in moves for number in move))
            meeting = Meeting(key, computation=work)
        for ipu in sorted({*takes, *gives}):
            sent_here = tuple(dict.fromkeys(takes.get(ipu, ())))
            self.block(ipu).run(owner, sent_here, gives.get(ipu, ()), work=meeting)
        return results

    def _rearrange(self, ipu: int, sent: int, name: str, exchange: int) -> None:
        """What a product gives lies as its units give it, and is copied into its own order before it leaves the IPU."""
        names = self.walk.names
        work = None if names is None else product_that_gives(self.blocks[ipu], sent)
        if names is None or work is None:
            return
        size = self.blocks[ipu].values[sent].bytes
        copied = names.name(f"Copy_{name}_to_", "inter-ipu-copy/OnTileCopy", group=("exchange", exchange))
        copy = Computation("copy", copied, (size // work.element_bytes,), work.element_bytes)
        self.block(ipu).run(name, (sent,), (), work=copy)

    def _inside(
        self, function: str, inputs: Sequence[Held], remote: Set[int] = frozenset(), pipeline: str = ""
    ) -> tuple[FunctionWalk, list[Held], list[Held]]:
        """Walks through the function of a loop or branch: the walk, its arguments and its results.

        Arguments whose numbers are in `remote` are in remote memory; `pipeline` is the one whose mini-batch it is.
        """
        inner = FunctionWalk(self.walk, {}, function, pipeline or self.pipeline)
        arguments = [
            # What a loop carries changes.
            Held(held.known._replace(literal=None), held.variable, False, held.name, {}, (self, held), index in remote)
            for index, held in enumerate(inputs)
        ]
        results = inner.function(function, arguments)
        for index, result in enumerate(results):
            if result.outside is None and index not in remote:
                for ipu, number in result.at.items():
                    inner.blocks[ipu].results.append(number)
        return inner, arguments, results

    def _loop(self, node: node_def_pb2.NodeDef, inputs: Sequence[Held], in_chunks: bool = False) -> list[Held]:
        pipeline = PipelineDescription.of(node)
        accumulators = self._accumulators(node, inputs) if pipeline is not None else frozenset[int]()
        remote = {
            index
            for index in accumulators
            if self.walk.storage.of("accumulator", self.walk.sizes.of(inputs[index].known), 1).remote
        }
        trips = node.attr[vocabulary.TRIPS_ATTRIBUTE].i if vocabulary.TRIPS_ATTRIBUTE in node.attr else None
        with self.walk.work.repeated(trips, in_chunks, pipeline.count if pipeline is not None else None):
            name = pipeline.name if pipeline is not None else ""
            body, arguments, results = self._inside(node.attr["body"].func.name, inputs, remote, name)
            test, _, _ = self._inside(node.attr["cond"].func.name, inputs)
        gives: dict[int, list[int]] = {}
        carried = []
        for index, (held, argument, result) in enumerate(zip(inputs, arguments, results)):
            if result is argument:
                carried.append(held)
                continue
            left = Held(held.known._replace(literal=None), name=node.name, is_remote=index in remote)
            for ipu, number in result.at.items():
                if left.is_remote:
                    self.walk.keep_remote(ipu, "accumulator", self.walk.sizes.of(held.known))
                    left.name = body.blocks[ipu].values[number].owner
                    continue
                block, inner = self.blocks.setdefault(ipu, Block(f"IPU {ipu}")), body.blocks[ipu]
                value = Value(self.walk.sizes.of(held.known), node.name, "temporary")
                if index in accumulators:
                    value = value._replace(owner=inner.values[number].owner, kind="accumulator")
                if ipu in argument.at:
                    outer = self.value(ipu, held)
                    if is_same(inner, number, argument.at[ipu]):
                        value = value._replace(mode=Mode.VIEW, of=(outer,))
                    else:
                        value = value._replace(mode=Mode.IN_PLACE, of=(outer,))
                        given = inner.values[argument.at[ipu]]
                        inner.values[argument.at[ipu]] = given._replace(mode=Mode.CARRIED)
                left.at[ipu] = block.add(value)
                gives.setdefault(ipu, []).append(left.at[ipu])
            carried.append(left)
        body.recompute(pipeline)
        ipus = sorted({*body.blocks, *gives})
        waiting = self.begin_pipeline(pipeline, ipus) if pipeline is not None else {}
        self._run_inside(node.name, [test, body], gives, True, waiting, self._iterations(pipeline, trips))
        return carried

    def recompute(self, pipeline: PipelineDescription | None) -> None:
        """Has the stages of a pipeline, whose mini-batch this is, recompute, where they are marked for that."""
        if pipeline is not None and pipeline.training and self.marks:
            for block in self.blocks.values():
                recompute(block, self.marks, pipeline.stages, interleaves(pipeline), self.walk.new_key)

    def _accumulators(self, node: node_def_pb2.NodeDef, inputs: Sequence[Held]) -> frozenset[int]:
        """Numbers of what a pipeline's loop carries on and changes, but for its counters."""
        body = self.walk.library[node.attr["body"].func.name]
        given = [argument.name for argument in body.signature.input_arg]
        returned = [body.ret[output.name] for output in body.signature.output_arg]
        return frozenset(
            index
            for index, (held, one, other) in enumerate(zip(inputs, given, returned))
            if one != other and held.variable < 0 and held.known.type not in (types_pb2.DT_INT32, types_pb2.DT_INT64)
        )

    def _branch(self, node: node_def_pb2.NodeDef, called: Sequence[str], inputs: Sequence[Held]) -> list[Held]:
        """A conditional; its first input chooses the branch."""
        walks = [self._inside(function, inputs[1:]) for function in called]
        gives: dict[int, list[int]] = {}
        left = []
        for alternatives in zip(*(results for _, _, results in walks)):
            made = Held(alternatives[0].known._replace(literal=None), name=node.name)
            for ipu in sorted({ipu for result in alternatives for ipu in result.at}):
                block = self.blocks.setdefault(ipu, Block(f"IPU {ipu}"))
                made.at[ipu] = block.add(Value(self.walk.sizes.of(made.known), node.name, "temporary"))
                gives.setdefault(ipu, []).append(made.at[ipu])
            left.append(made)
        meeting = Meeting(self.walk.new_key(), branches=True) if self.walk.names is not None else None
        self._run_inside(node.name, [walk for walk, _, _ in walks], gives, False, meeting=meeting)
        return left

    def _run_inside(
        self,
        name: str,
        walks: Sequence[FunctionWalk],
        gives: dict[int, list[int]],
        loops: bool,
        waiting: Mapping[int, list[int]] = MappingProxyType({}),
        meeting: Meeting | None = None,
    ) -> None:
        for ipu in sorted({ipu for walk in walks for ipu in walk.blocks}.union(gives, waiting)):
            takes = [number for walk in walks for number in walk.bound.get(ipu, ())]
            takes.extend(waiting.get(ipu, ()))
            parts = tuple(part for part, walk in enumerate(walks) if ipu in walk.blocks)
            inside = [walks[part].blocks[ipu] for part in parts]
            work = meeting and meeting._replace(parts=parts)
            self.block(ipu).run(name, takes, gives.get(ipu, ()), inside, loops, work)

    def _iterations(self, pipeline: PipelineDescription | None, trips: int | None) -> Meeting | None:
        """How often a loop runs, where cycles are wanted."""
        if self.walk.names is None:
            return None
        if trips is None and pipeline is not None:
            trips = pipeline.count
        times = UNKNOWN_TRIPS if trips is None else trips
        meeting = Meeting(self.walk.new_key(), times, counted=trips is not None, condition=0)
        if pipeline is None:
            return meeting
        return meeting._replace(schedule=pipeline.schedule, stages=pipeline.stages, training=pipeline.training)

    def _alone(self, node: node_def_pb2.NodeDef, inputs: Sequence[Held], names: Sequence[str]) -> list[Held]:
        """An op outside XLA programs, on the host or alone on an IPU."""
        arguments = {name: held.known for name, held in zip(names, inputs)}
        made = infer([node], arguments, self.walk.library)
        is_constant = cloned_constants.is_constant(node.op, [held.is_constant for held in inputs])
        results = [Held(made[name], name=node.name, is_constant=is_constant) for name in op_types.output_names(node)]
        if node.op in _FEEDS:
            self.walk.work.feed(node.input[0] if node.input else node.name, [held.known.shape for held in results])
            for held in results:
                held.is_element = True
                held.known = held.known._replace(axis=Axis(0) if held.known.shape else None)
        if node.op in ("Const", "VarHandleOp"):
            results[0].known = _said_by(node, results[0].known)
        if vocabulary.CHIP_ATTRIBUTE in node.attr:
            self._on_ipu(node, inputs, results)
            return results
        for held in inputs:
            for ipu in held.at:
                name = f"copy of {held.name} to the host"
                work = self.moved("host", name, -self.walk.sizes.of(held.known))
                self.copy(ipu, Step(name, (held.at[ipu],), (), work=work), node.op != vocabulary.OUTFEED_ENQUEUE)
                if node.op == vocabulary.OUTFEED_ENQUEUE:
                    self.map_tensor("outfeed", held, ipu, True, node.name)
                    size = self.walk.sizes.of(held.known)
                    self.walk.feeds.append(Feed(self.blocks[ipu], ipu, size, work, held.name))
        return results

    def _on_ipu(self, node: node_def_pb2.NodeDef, inputs: Sequence[Held], results: Sequence[Held]) -> None:
        """An op that is alone on an IPU."""
        ipu = node.attr[vocabulary.CHIP_ATTRIBUTE].i
        takes = [self.value(ipu, held) for held in inputs]
        block = self.block(ipu)
        back = handed_back(node, self.walk.library)
        for index, held in enumerate(results):
            value = Value(self.walk.sizes.of(held.known), node.name, "temporary")
            if index in back:
                value = value._replace(mode=Mode.VIEW, of=(takes[back[index]],))
            elif node.op in vocabulary.LOOPS:
                value = value._replace(mode=Mode.IN_PLACE, of=(takes[index],))
            held.at[ipu] = block.add(value)
        gives = [held.at[ipu] for held in results]
        if self.walk.names is not None and node.op in vocabulary.LOOPS:
            inside, meeting = uncompiled_loops.iterations(self.walk, node, [held.known for held in inputs])
            block.run(node.name, takes, gives, [inside], True, meeting)
        elif self.walk.names is not None and node.op in vocabulary.CALLS:
            block.run(
                node.name, takes, gives, [uncompiled_loops.called(self.walk, node, [held.known for held in inputs])]
            )
        else:
            block.run(node.name, takes, gives, work=self.other(node, [held.known for held in results]))


def _said_by(node: node_def_pb2.NodeDef, known: Known) -> Known:
    """What an op without inputs tells of its result besides."""
    if node.op == "Const":
        return known._replace(literal=node.attr["value"].tensor)
    # What is read of a table on the host has a shape that follows from the table's.
    shape = tensor_shape.as_shape(node.attr["shape"].shape)
    sizes = tuple(shape.as_list()) if shape.is_fully_defined() else None
    return Known(node.attr["dtype"].type, sizes, variable=True)
