"""Models recomputation: drops forward values and recomputes them before their gradients.

A stage that recomputes keeps its inputs, its named checkpoints, and its random numbers. Its other values live as long
as the forward pass needs them. The ops of the forward pass run once more for the backward pass. Either all ops of a
stage run before its gradients, or (interleaved) those between two checkpoints, from the last checkpoint to the first.
"""

from __future__ import annotations

import difflib
import graphlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.node_defs import TensorName, producer_name
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.cycle_model import Computation, SyncPoint
from tf_ipu_shim.machine.memory import Block, Mode, Step
from tf_ipu_shim.memory_model.computations.fusions import DRAWN
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

Rank = tuple[int, int]  # of a stage, and of the part of it that ends with a checkpoint
_FIRST: Rank = (sys.maxsize, 0)  # of gradients that only need weights


class StageOp(NamedTuple):
    """The known facts about an op of a stage.

    Args:
        keeps: whether its results are kept.
        draws: whether it makes random numbers.
        kept_results: indices of the results of a loop that checkpoints hold; empty for all.
        result_bytes: the size of each result of a loop, None for a list.
    """

    rank: Rank
    keeps: bool = False
    draws: bool = False
    kept_results: frozenset[int] = frozenset()
    result_bytes: tuple[int | None, ...] = ()

    def keeps_output(self, step: Step, value_id: int) -> bool:
        """Returns whether a value that a step of this op makes is kept."""
        if not self.keeps or not self.kept_results or step.loop_results is None:
            return self.keeps
        element = step.loop_results.elements[step.outputs.index(value_id)]
        return element in self._kept_elements(step.loop_results.bytes)

    def _kept_elements(self, element_bytes: Sequence[int | None]) -> frozenset[int]:
        """Returns the kept elements of the loop's tuple, from which XLA leaves out results that are constants.

        The sizes tell which are left out: of neighbours with equal sizes, any one may be meant.
        """
        if not element_bytes:
            return self.kept_results
        matcher = difflib.SequenceMatcher(None, self.result_bytes, element_bytes, autojunk=False)
        return frozenset(
            match.b + offset
            for match in matcher.get_matching_blocks()
            for offset in range(match.size)
            if match.a + offset in self.kept_results
        )


def interleaves(pipeline: PipelineDescription) -> bool:
    """Returns whether recomputation alternates with gradients; else a stage recomputes before its first gradient.

    Source: docs/reference/facts.md, section "Recomputation".
    """
    if pipeline.recomputation_mode == "Auto":
        return pipeline.schedule == "Sequential"
    return pipeline.recomputation_mode == "RecomputeAndBackpropagateInterleaved"


def stage_ops(functions: Iterable[function_pb2.FunctionDef]) -> dict[str, StageOp]:
    """Returns the known properties of the ops of stages, by name."""
    found: dict[str, StageOp] = {}
    for function in functions:
        nodes = {node.name: node for node in function.node_def if vocabulary.STAGE_ATTRIBUTE in node.attr}
        if nodes:
            found.update(_stage_ops(nodes))
    return found


def _stage_ops(nodes: Mapping[str, node_def_pb2.NodeDef]) -> Iterator[tuple[str, StageOp]]:
    before = {
        name: [other for other in map(producer_name, node.input) if other in nodes] for name, node in nodes.items()
    }
    held = [_held_tensor(node, nodes) for node in nodes.values() if vocabulary.CHECKPOINT_ATTRIBUTE in node.attr]
    checkpointed = set(map(producer_name, held))
    parts: dict[str, int] = {}
    for name in graphlib.TopologicalSorter(before).static_order():
        parts[name] = max(
            (parts[other] + (vocabulary.CHECKPOINT_ATTRIBUTE in nodes[other].attr) for other in before[name]), default=0
        )
        node = nodes[name]
        stage_op = StageOp(
            (node.attr[vocabulary.STAGE_ATTRIBUTE].i, parts[name]), name in checkpointed, node.op in DRAWN
        )
        yield name, _kept_of_loop(stage_op, node, held) if node.op in vocabulary.LOOPS else stage_op


def _held_tensor(node: node_def_pb2.NodeDef, nodes: Mapping[str, node_def_pb2.NodeDef]) -> str:
    """Returns the tensor that a checkpoint holds."""
    tensor_name = node.name
    while node.op in vocabulary.VIEWS and producer_name(node.input[0]) in nodes:
        tensor_name = node.input[0]
        node = nodes[producer_name(tensor_name)]
    return tensor_name


def _kept_of_loop(stage_op: StageOp, node: node_def_pb2.NodeDef, held: Iterable[str]) -> StageOp:
    """Returns the properties of a loop with its results that checkpoints hold; all if a size is unknown."""
    indices = frozenset(TensorName.parse(name).position for name in held if producer_name(name) == node.name)
    sizes: list[int | None] = []
    for shape, kind in zip(node.attr["output_shapes"].list.shape, node.attr["T"].list.type):
        if kind == types_pb2.DT_VARIANT:
            sizes.append(None)
        elif shape.unknown_rank or -1 in (dim.size for dim in shape.dim):
            return stage_op
        else:
            sizes.append(math.prod(dim.size for dim in shape.dim) * dtypes.as_dtype(kind).size)
    return stage_op._replace(kept_results=indices, result_bytes=tuple(sizes))


def recompute(
    block: Block, stage_ops: Mapping[str, StageOp], stages: int, interleaved: bool, new_key: Callable[[], int]
) -> list[str]:
    """Makes an IPU's part of a mini-batch recompute, in place; returns the ops whose matmuls run again."""
    found = _Recomputation(block, stage_ops, stages, interleaved, new_key)
    if found.required:
        found.rewrite()
    return found.repeated_matmuls


class _Recomputation:
    """Classifies and rewrites the steps of one block.

    Attributes:
        required: the ranks of backward steps that need dropped values, or the results of such a step.
        repeated_matmuls: the ops of matmuls that run again.
    """

    def __init__(
        self, block: Block, marks: Mapping[str, StageOp], stages: int, interleaved: bool, new_key: Callable[[], int]
    ) -> None:
        self._block, self._marks, self._stages = block, marks, stages
        self._interleaved, self._new_key = interleaved, new_key
        self._steps = block.steps
        self._maker = {value_id: index for index, step in enumerate(self._steps) for value_id in step.outputs}
        self._dropped: dict[int, Rank] = {}  # steps whose values are dropped
        self._recomputed: dict[int, int] = {}  # a dropped value, and the one that stands for it later
        # Values that depend only on weights and constants: no gradient has to wait for others because of them.
        outside = (Mode.ALWAYS, Mode.BORROWED)
        self._independent = {value_id for value_id, value in enumerate(block.values) if value.mode in outside}
        self._drawn: set[int] = set()
        self._kept_by_later_stage: set[int] = set()  # from one stage to another one of the same IPU, which keeps it
        self.required: dict[int, Rank] = {}
        self.repeated_matmuls: list[str] = []
        backward: dict[int, Step] = {}
        for index, step in enumerate(self._steps):
            if self._is_gradient(step) or any(self._maker.get(value_id) in backward for value_id in step.inputs):
                backward[index] = step
            else:
                self._drop(index, step)
        for index, step in backward.items():
            self._require(index, step)
        self._require_late_steps()

    def _require_late_steps(self) -> None:
        """Moves values written only for the backward pass there, such as a list of gradients that begins as zeros."""
        users: dict[int, list[int]] = {}
        for index, step in enumerate(self._steps):
            for value_id in step.inputs:
                users.setdefault(value_id, []).append(index)
        for index, step in enumerate(self._steps):
            used_by = [user for value_id in step.outputs for user in users.get(value_id, ())]
            if step.late and not step.inputs and used_by and all(user in self.required for user in used_by):
                self.required[index] = max(self.required[user] for user in used_by)

    def _is_gradient(self, step: Step) -> bool:
        return any(self._block.values[value_id].kind == "gradient" for value_id in step.outputs)

    def _require(self, index: int, step: Step) -> None:
        dropped = (n for n in step.inputs if n not in self._independent and self._is_dropped(n, step))
        ranks = [self._dropped[self._maker[value_id]] for value_id in dropped]
        makers = (self._maker.get(value_id) for value_id in step.inputs)
        ranks += [self.required[maker] for maker in makers if maker in self.required]
        if ranks or any(self._is_dropped(value_id, step) for value_id in step.inputs):
            self.required[index] = min(ranks, default=_FIRST)

    def _is_dropped(self, value_id: int, user: Step) -> bool:
        """Returns whether a step needs a value recomputed; a checkpoint is kept for other ops only."""
        maker = self._maker.get(value_id)
        if maker not in self._dropped or value_id in self._kept_by_later_stage:
            return False
        owner = self._steps[maker].owner
        mark = self._marks.get(owner)
        return owner == user.owner or mark is None or not mark.keeps_output(self._steps[maker], value_id)

    def _drop(self, index: int, step: Step) -> None:
        mark = self._marks.get(step.owner)
        if (mark is not None and mark.draws) or self._depends_only_on_random(step):
            self._drawn.update(step.outputs)
            return
        if self._independent.issuperset(step.inputs) and step.inputs:
            self._independent.update(step.outputs)
        before = {n: self._dropped[maker] for n in step.inputs if (maker := self._maker.get(n)) in self._dropped}
        # An op without a mark is in a function that a stage calls: it is where its operands are.
        rank = mark.rank if mark is not None else max(before.values(), default=None)
        if rank is None:
            return
        self._kept_by_later_stage.update(value_id for value_id, other in before.items() if other[0] < rank[0])
        if rank[0] < self._stages - 1 and self._can_run_again(step):
            self._dropped[index] = rank if self._interleaved else (rank[0], 0)

    def _can_run_again(self, step: Step) -> bool:
        """Returns whether a step may be repeated: no exchange, no variable update, no fixed memory."""
        if isinstance(step.work, SyncPoint) and step.work.computation is not None:
            return False
        produced = (self._block.values[value_id] for value_id in step.outputs)
        return all(value.home < 0 and (value.kind == "temporary" or value.mode is Mode.VIEW) for value in produced)

    def _depends_only_on_random(self, step: Step) -> bool:
        """Returns whether a step depends only on random numbers, such as a dropout mask."""
        if self._drawn.isdisjoint(step.inputs):
            return False
        return all(value_id in self._drawn or value_id in self._independent for value_id in step.inputs)

    def rewrite(self) -> None:
        """Rewrites the steps, segment by segment."""
        block, steps, idle = self._block, self._steps, self._deferred()
        borders = [0, *block.segments, len(steps)]
        block.steps, block.segments, block.liveness = [], [], None
        for first, end in zip(borders, borders[1:]):
            block.begin_segment()
            later: dict[Rank, list[int]] = {}
            for index in range(first, end):
                if index in self.required:
                    later.setdefault(self.required[index], []).append(index)
                elif index not in idle:
                    block.steps.append(steps[index])
            for rank in sorted(later, reverse=True):
                block.begin_segment()
                for index in self._needed(later[rank]):
                    self._repeat(steps[index])
                if not self._interleaved:
                    block.begin_segment()
                for index in later[rank]:
                    self._use(steps[index])

    def _deferred(self) -> set[int]:
        """Returns forward steps that only gradients depend on; they wait until recomputation."""
        used, idle = set(self._block.results), set()
        for index in (*self.required, *self._needed(self.required)):
            step = self._steps[index]
            used.update(value_id for value_id in step.inputs if not self._is_dropped(value_id, step))
        for index in range(len(self._steps) - 1, -1, -1):
            step = self._steps[index]
            if index in self._dropped and used.isdisjoint(step.outputs):
                idle.add(index)
            elif index not in self.required:
                used.update(step.inputs)
        return idle

    def _needed(self, users: Iterable[int]) -> list[int]:
        """Returns dropped steps that must run before some others and have not run yet."""
        found: set[int] = set()
        stack = list(users)
        while stack:
            user = self._steps[stack.pop()]
            for value_id in user.inputs:
                if value_id not in self._recomputed and self._is_dropped(value_id, user):
                    maker = self._maker[value_id]
                    if maker not in found:
                        found.add(maker)
                        stack.append(maker)
        return sorted(found)

    def _takes(self, step: Step) -> dict[int, int]:
        """Maps a step's inputs to their recomputed values."""
        return {n: self._recomputed.get(n, n) if self._is_dropped(n, step) else n for n in step.inputs}

    def _repeat(self, step: Step) -> None:
        block, substitutes = self._block, self._takes(step)
        for value_id in step.outputs:
            value = block.values[value_id]
            repeated = {other: self._recomputed[other] for other in value.of if other in step.outputs}
            of = tuple(repeated.get(other, substitutes.get(other, other)) for other in value.of)
            self._recomputed[value_id] = block.add(value._replace(of=of))
        work = step.work
        if isinstance(work, SyncPoint):
            work = work._replace(key=self._new_key())
        elif isinstance(work, Computation) and work.kind == "product":
            self.repeated_matmuls.append(step.owner)
        results = tuple(self._recomputed[value_id] for value_id in step.outputs)
        block.steps.append(step._replace(inputs=tuple(substitutes[n] for n in step.inputs), outputs=results, work=work))

    def _use(self, step: Step) -> None:
        block, substitutes = self._block, self._takes(step)
        for value_id in step.outputs:
            value = block.values[value_id]
            block.values[value_id] = value._replace(of=tuple(substitutes.get(other, other) for other in value.of))
        block.steps.append(step._replace(inputs=tuple(substitutes[n] for n in step.inputs)))
