"""Writes the blocks (steps and values per IPU) of one function of a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.cycle_model import Computation
from tf_ipu_shim.cycle_model.sizes import FIFO_WORD, CollectiveSizes, ElementCount, HostSizes, Sizes
from tf_ipu_shim.machine.memory import Block, Mode, Step, Value
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec
from tf_ipu_shim.memory_model.variables import pipeline_memory
from tf_ipu_shim.memory_model.walk.analysis_context import AnalysisContext, Feed
from tf_ipu_shim.memory_model.walk.load_sinking import Load, sink_loads
from tf_ipu_shim.memory_model.walk.recomputation import StageOp
from tf_ipu_shim.tf_private.protos import node_def_pb2

VIEWS = vocabulary.VIEWS | {"BroadcastTo", "Transpose", vocabulary.READ_VARIABLE}
"""Ops that are analysed one by one, and that need no separate memory."""


@dataclasses.dataclass
class TensorState:
    """A tensor of an emitted function during the analysis.

    Args:
        variable: the number of the program's argument, for a variable's handle; else -1.
        is_fed: whether it is an argument of the program.
        is_remote: whether it is an accumulator in remote memory, of which an IPU has a copy only while it works on it.
        outer: for an argument of a loop's or branch's function: the enclosing walk, and the value in it.
        is_constant: whether its value is known before anything runs.
        neighbours: the axis whose neighbours are neighbours on its tiles, as `layouts.neighbours_of` has it.
    """

    spec: TensorSpec
    variable: int = -1
    is_fed: bool = False
    name: str = ""
    values: dict[int, int] = dataclasses.field(default_factory=dict)
    outer: tuple[BlockWriter, TensorState] | None = None
    is_remote: bool = False
    is_constant: bool = False
    is_element: bool = False
    neighbours: int | None = None


class _Copy(NamedTuple):
    """A host copy that others may be merged with.

    Args:
        loads: whether the copies are from the host.
    """

    block: Block
    step: int
    bytes: int
    loads: bool


def _merged_copy(copy: Step, other: Step) -> Step:
    """Returns two host copies as one."""
    works = [step.work for step in (copy, other) if step.work is not None]
    work = works[0]._replace(sizes=HostSizes(sum(step.sizes.bytes for step in works))) if works else None
    return copy._replace(inputs=copy.inputs + other.inputs, outputs=copy.outputs + other.outputs, work=work)


class BlockWriter:
    """Writes the blocks of one emitted function, or of the program's single node.

    Args:
        context: the facts and the records of the whole program.
        function_name: the name of the function; empty for the program.
        pipeline: name of the pipeline whose mini-batch it is in; empty for none.
    """

    def __init__(
        self, context: AnalysisContext, blocks: dict[int, Block], function_name: str = "", pipeline: str = ""
    ) -> None:
        self.context, self.function_name, self.pipeline = context, function_name, pipeline
        self.blocks = blocks
        self.bound: dict[int, list[int]] = {}  # values of the walk around this one that are used on each IPU
        self._last_copy: _Copy | None = None
        self.stage_ops: dict[str, StageOp] = {}  # ops of stages that are recomputed

    def block(self, ipu: int) -> Block:
        """Returns an IPU's block, starting a new segment."""
        block = self.blocks.setdefault(ipu, Block(f"IPU {ipu}"))
        block.begin_segment()
        return block

    def value(self, ipu: int, state: TensorState) -> int:
        """Returns a tensor's value on an IPU, brought from outside or the host if needed."""
        if state.variable >= 0 and state.outer is None:
            return self.context.variable(ipu, state.variable)
        if ipu not in state.values:
            block = self.blocks.setdefault(ipu, Block(f"IPU {ipu}"))
            if state.outer is not None:
                enclosing, outer_state = state.outer
                outer = enclosing.value(ipu, outer_state)
                self.bound.setdefault(ipu, []).append(outer)
                source_value = enclosing.blocks[ipu].values[outer]
                state.values[ipu] = block.add(source_value._replace(mode=Mode.BORROWED, of=(), home=-1))
            else:
                state.values[ipu] = block.add(Value(self.context.sizes.of(state.spec), state.name, "argument"))
                if not state.is_fed:
                    name = f"copy of {state.name} from the host"
                    # Constants are in the program, and need no copy.
                    work = (
                        None
                        if state.is_constant
                        else self.copy_work("host", name, HostSizes(self.context.sizes.of(state.spec)))
                    )
                    is_of_scope = not (state.is_element or state.is_constant)
                    self.copy(ipu, Step(name, (), (state.values[ipu],), work=work), is_of_scope)
                    if state.is_element:
                        self._map_element(state, ipu, work)
        return state.values[ipu]

    def copy(self, ipu: int, step: Step, is_of_scope: bool) -> None:
        """Adds a host copy, merged with the previous one of the scope up to the configured bytes."""
        block, last = self.block(ipu), self._last_copy
        size = sum(block.values[value].bytes for value in (*step.inputs, *step.outputs))
        together = last is not None and last.block is block and last.step == len(block.steps) - 1
        if is_of_scope and together and last is not None and bool(step.outputs) == last.loads:
            if last.bytes + size <= self.context.options.planner_options.merged_copy_bytes:
                self._last_copy = last._replace(bytes=last.bytes + size)
                block.steps[-1] = _merged_copy(block.steps[-1], step)
                return
        block.run(step.owner, step.inputs, step.outputs, work=step.work)
        self._last_copy = _Copy(block, len(block.steps) - 1, size, bool(step.outputs)) if is_of_scope else None

    def _map_element(self, state: TensorState, ipu: int, work: Computation | None) -> None:
        """Adds an infeed's element to the tensor map of the IPU that first consumes it."""
        if len(state.values) > 1:
            self.map_tensor("inter-ipu-copy", state, ipu)
            return
        self.map_tensor("infeed", state, ipu, True)
        self.context.feeds.append(Feed(self.blocks[ipu], ipu, self.context.sizes.of(state.spec), work, state.name))

    def map_tensor(self, below: str, state: TensorState, ipu: int, is_feed: bool = False, owner: str = "") -> None:
        """Adds a tensor outside XLA programs to the tensor map, if wanted."""
        if self.context.tensors is not None:
            known, name = state.spec, owner or state.name
            self.context.tensors.tensor(below, name, known.type, known.shape, ipu, is_feed, self.function_name)

    def parameters(self, ipu: int, arguments: Sequence[TensorState]) -> tuple[list[int], dict[int, Load]]:
        """Returns the argument values of an XLA program and the loads they need; begins its segment."""
        argument_values = {
            index: self.value(ipu, state) for index, state in enumerate(arguments) if self._is_whole(state)
        }
        block, loads = self.block(ipu), {}
        for index, state in enumerate(arguments):
            if index not in argument_values:
                kind, name = "accumulator", state.name
                if state.variable >= 0:
                    self.context.variable(ipu, state.variable)
                    is_shared = self.context.stored(state.variable).is_shared
                    kind = "exchange" if is_shared else self.context.kind_of(state.variable)
                    name = self.context.name_of(state.variable)
                size = self.context.sizes.of(state.spec)
                argument_values[index] = block.add(Value(size, name, kind))
                loads[argument_values[index]] = Load(
                    self._remote_copy(f"load of {name}", size, (argument_values[index],)),
                    self._remote_copy(f"store of {name}", -size),
                )
        return [argument_values[index] for index in range(len(arguments))], loads

    def _remote_copy(self, name: str, size: int, loaded: tuple[int, ...] = ()) -> Step:
        """Returns a copy with remote memory; a negative size is a store."""
        return Step(name, (), loaded, work=self.copy_work("remote", name, HostSizes(size)), late=bool(loaded))

    def load(self, ipu: int, begin: int, loads: Mapping[int, Load]) -> None:
        """Inserts loads before the first steps that use their values, and the stores of those that change."""
        if loads:
            sink_loads(self.blocks[ipu], begin, loads)

    def _is_whole(self, state: TensorState) -> bool:
        if state.variable >= 0:
            return self.context.stored(state.variable).on_chip == self.context.size_of(state.variable)
        return not state.is_remote

    def copy_work(self, kind: str, name: str, sizes: Sizes) -> Computation | None:
        """Returns a copy computation, if cycles are wanted."""
        return None if self.context.names is None else Computation(kind, name, sizes, 1)

    def generic(self, node: node_def_pb2.NodeDef, results: Sequence[TensorSpec]) -> Computation | None:
        """Returns the computation of an op by its results only, if cycles are needed; views cost nothing."""
        if self.context.names is None or node.op in VIEWS:
            return None
        size = sum(map(self.context.sizes.of, results))
        if node.op == vocabulary.COLLECTIVE:
            sums = node.attr["kind"].s == b"sum"
            together = (
                self.context.options.planner_options.merged_sum_bytes
                if sums
                else self.context.options.planner_options.merged_gather_bytes
            )
            return self.copy_work(
                "collective", node.name, CollectiveSizes(size, node.attr["group_size"].i, together, 1 + sums)
            )
        return Computation("other", node.name, ElementCount(-(-size // 4)))

    def begin_pipeline(
        self, pipeline: PipelineDescription, ipus: Sequence[int], mini_batch: Mapping[int, Block]
    ) -> dict[int, list[int]]:
        """Adds a pipeline's stashes, and their copies to the blocks of a mini-batch; returns their values by IPU."""
        pipeline_values: dict[int, list[int]] = {}
        for stash in pipeline_memory.stashes(
            self.context.pipeline_on_ipus(pipeline), self.context.storage.recomputes, ipus
        ):
            if stash.remote:
                self.context.keep_remote(stash.ipu, stash.kind, stash.bytes)
                continue
            block = self.block(stash.ipu)
            value = block.add(Value(stash.bytes, stash.owner, stash.kind))
            block.run(stash.owner, (), (value,))
            pipeline_values.setdefault(stash.ipu, []).append(value)
            if self.context.names is not None and stash.ipu in mini_batch:
                copies = Computation("fifo", stash.owner, stash.copies, FIFO_WORD)
                mini_batch[stash.ipu].run(stash.owner, (), (), work=copies)
        return pipeline_values
