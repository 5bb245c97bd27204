"""Splits a Keras model's layers into balanced pipeline stages."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tf_ipu_shim.capacity.fifos import StageFifos
from tf_ipu_shim.capacity.layers import Layer, Passed, layers_of
from tf_ipu_shim.cycle_model import timeline_of
from tf_ipu_shim.cycle_model.exchanges import exchange_cycles, join
from tf_ipu_shim.cycle_model.sizes import Move
from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.machine.pipelines.partitioner import balanced_parts, bytes_of
from tf_ipu_shim.machine.pipelines.stage_memory import StageLayer, StageMemory
from tf_ipu_shim.machine.selection import shard_order
from tf_ipu_shim.runtime.captured_programs import CapturedProgram

_STAGES = (2, 4, 8, 16)
_WORTH = 0.95
"""A new split is proposed if its busiest stage has at most this part of the present work."""


class Split(NamedTuple):
    """The layers of each stage.

    Args:
        stages: names, in the order of the model.
        bytes: the bytes of each stage, with the FIFOs of a Grouped schedule.
        recomputes: whether all stages except the last run their forward pass twice, and keep their inputs.
    """

    stages: tuple[tuple[str, ...], ...]
    cycles: tuple[float, ...]
    bytes: tuple[int, ...]
    recomputes: bool = False


class StageTransfers:
    """Bytes that stages exchange in a run.

    All stages send and receive at once. During the search for stages, the exchange is the stage's largest one, with the
    stage next to it. Each op that uses a tensor returns a gradient, and the stage that made the tensor adds these up.

    Args:
        layers: the layers that are put into stages.
        times: mini-batches of a run; gradients are sent back if layers have any.
    """

    def __init__(self, layers: Sequence[Layer], chip: ChipSpec, times: float) -> None:
        self._layers, self._chip, self._times = layers, chip, times
        self._trains = any(layer.weight_bytes for layer in layers)
        count = len(layers)
        # Bytes of a mini-batch that go over links, there and back, by a stage's first layer and the one after its last.
        self._comes, self._comes_back, self._goes, self._goes_back = (
            [[0] * (count + 1) for _ in range(count)] for _ in range(4)
        )
        for maker, layer in enumerate(layers if times else ()):
            for output in layer.outputs:
                self._count(maker, output)
        for first in range(count):
            for end in range(first + 1, count + 1):
                self._comes[first][end] += self._comes[first][end - 1]
                self._comes_back[first][end] += self._comes_back[first][end - 1]
        for first in range(count - 2, -1, -1):
            for end in range(first + 2, count + 1):
                self._goes[first][end] += self._goes[first + 1][end]
                self._goes_back[first][end] += self._goes_back[first + 1][end]

    def _count(self, maker: int, output: Passed) -> None:
        """Counts a layer's results over each stage boundary that they may cross."""
        last = output.consumers[-1][0]
        for border in range(maker + 1, last + 1):
            behind = [(taker, ops) for taker, ops in output.consumers if taker >= border]
            self._comes[border][behind[0][0] + 1] += output.bytes
            for taker, ops in behind:
                self._comes_back[border][taker + 1] += ops * output.bytes
            self._goes[maker][border] += output.bytes
            self._goes_back[maker][border] += sum(ops for _, ops in behind) * output.bytes

    def cycles(self, first: int, end: int, stages: int) -> float:
        """Returns the communication cycles of layers as one of a number of stages."""
        tables = (self._comes, self._goes, self._comes_back, self._goes_back)
        largest = max(table[first][end] for table in tables[: 4 if self._trains else 2])
        return self._times * sum(exchange_cycles([Move(largest, 0, 1)] if largest else [], self._chip, stages))

    def cycles_of_stages(self, bounds: Sequence[tuple[int, int]]) -> list[float]:
        """Returns the communication cycles of each stage."""
        sizes, backs = self._bytes_between(bounds)
        positions = shard_order(links.round_up_to_ladders(max(len(bounds), 2)), pipelined=True)
        exchanges = []
        for own_stage in range(len(bounds)):
            forward = [(size, to) for (at, to), size in sizes.items() if at == own_stage]
            back = [(size, at) for (at, to), size in backs.items() if to == own_stage]
            exchanges += [
                [Move(size, positions[own_stage], positions[other_stage]) for size, other_stage in phase]
                for phase in (forward, back)
                if phase
            ]
        by_ipu = join(exchanges, 1, self._chip, len(bounds)).by_ipu
        return [self._times * by_ipu.get(positions[stage], 0) for stage in range(len(bounds))]

    def _bytes_between(self, bounds: Sequence[tuple[int, int]]) -> tuple[dict[tuple[int, int], int], ...]:
        """Returns the bytes, forward and backward, by sending and receiving stage."""
        stage_of = [stage for stage, (first, end) in enumerate(bounds) for _ in range(first, end)]
        sizes: dict[tuple[int, int], int] = collections.Counter()
        backs: dict[tuple[int, int], int] = collections.Counter()
        for maker, output in ((maker, output) for maker, layer in enumerate(self._layers) for output in layer.outputs):
            own_stage = stage_of[maker]
            for other_stage in {stage_of[taker] for taker, _ in output.consumers} - {own_stage}:
                sizes[own_stage, other_stage] += output.bytes
            for other_stage, ops in ((stage_of[taker], ops) for taker, ops in output.consumers):
                if other_stage != own_stage and self._trains:
                    backs[own_stage, other_stage] += ops * output.bytes
        return sizes, backs


@dataclasses.dataclass(frozen=True)
class _Stage:
    """A stage's position in a pipeline."""

    index: int
    count: int
    recomputes: bool

    @property
    def runs_again(self) -> bool:
        """Returns whether its forward pass is recomputed."""
        return self.recomputes and self.keeps_mini_batches

    @property
    def keeps_mini_batches(self) -> bool:
        """Returns whether values wait for the backward pass while the next mini-batch runs forward."""
        return self.index < self.count - 1

    def cycles(self, layer: Layer) -> float:
        """Returns its cycles for one layer."""
        return layer.cycles + (layer.forward_cycles if self.runs_again else 0.0)

    def memory(self) -> StageMemory:
        """Returns its memory without layers: weights, optimizer state, accumulators and in-flight mini-batches."""
        return StageMemory(2 * (self.count - 1 - self.index), self.runs_again)


def _to_stage_layers(layers: Iterable[Layer]) -> list[StageLayer]:
    return [
        StageLayer(
            index,
            layer.kept_bytes + layer.weight_bytes,
            layer.weight_bytes,
            layer.activation_bytes,
            layer.inputs,
            layer.fed_bytes,
        )
        for index, layer in enumerate(layers)
    ]


def split(
    layers: Sequence[Layer], chip: ChipSpec, least: int = 2, recomputes: bool = False, times: float = 0.0
) -> Split | None:
    """Returns the split into the fewest stages that fit whose busiest stage has least work, or None.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> some = [Layer(name, cycles, 0, 0, 0) for name, cycles in (("a", 4), ("b", 1), ("c", 2), ("d", 1))]
        >>> split(some, CHIPS["gc200"]).stages
        (('a',), ('b', 'c', 'd'))
    """
    handed, fifos = StageTransfers(layers, chip, times), StageFifos(layers, chip, times)
    for count in sorted({least, *(count for count in _STAGES if count > least)}):
        stages = [_Stage(index, count, recomputes) for index in range(count)]
        best_split = _balance(layers, stages, chip.total_bytes, handed, fifos) if count <= len(layers) else None
        if best_split is not None:
            return best_split
    return None


def better_split(program: CapturedProgram, chip: ChipSpec, fits: bool) -> Split | None:
    """Returns a better split for a program, or None."""
    layers = layers_of(program, chip)
    best_split = split(layers, chip, max(2, len(program.blocks)), program.recomputes, program.steps)
    if best_split is None or len(program.blocks) == 1 or not fits:
        return best_split
    if len(best_split.stages) > len(program.blocks):  # it fits, and no more IPUs are asked for
        return None
    now = timeline_of(program.blocks, chip, program.ipus).busy
    return best_split if max(best_split.cycles) <= _WORTH * max(now.values()) else None


def _balance(
    layers: Sequence[Layer], stages: Sequence[_Stage], limit: int, handed: StageTransfers, fifos: StageFifos
) -> Split | None:
    """Returns the split whose busiest stage is least busy, or None if none fits."""

    def fifo_cycles(stage: int, first: int, end: int) -> float:
        return fifos.cycles(first, end, stages[stage].runs_again) if stages[stage].keeps_mini_batches else 0.0

    needed, memories = _to_stage_layers(layers), [stage.memory() for stage in stages]
    cuts = balanced_parts(
        needed,
        memories,
        limit,
        lambda stage, layer: stages[stage].cycles(layers[layer]),
        lambda stage, first, end: handed.cycles(first, end, len(stages)) + fifo_cycles(stage, first, end),
    )
    if cuts is None:
        return None
    bounds = list(zip(cuts, cuts[1:]))
    works = [
        sum(map(stage.cycles, layers[first:end])) + fifo_cycles(stage.index, first, end)
        for stage, (first, end) in zip(stages, bounds)
    ]
    return Split(
        tuple(tuple(layer.name for layer in layers[first:end]) for first, end in bounds),
        tuple(work + transfer_cycles for work, transfer_cycles in zip(works, handed.cycles_of_stages(bounds))),
        tuple(int(bytes_of(needed[first:end], memory)) for memory, (first, end) in zip(memories, bounds)),
        stages[0].recomputes,
    )


def to_text(layer_split: Split, chip: ChipSpec) -> list[str]:
    """Returns lines that describe a split and the script lines that apply it."""
    longest = max(layer_split.cycles)
    how = ", with recomputation" if layer_split.recomputes else ""
    lines = [f"  As a pipeline of {len(layer_split.stages)} stages on {chip.name}, cycles balanced{how} (Keras):"]
    for stage, (cycles, size) in enumerate(zip(layer_split.cycles, layer_split.bytes)):
        lines.append(
            f"    stage {stage}: {100 * cycles / (longest or 1):.0f} % of the busiest, about {format_bytes(size)}"
        )
    starts = {layers[0]: stage for stage, layers in enumerate(layer_split.stages)}
    return [
        *lines,
        f"    begins = {starts}",
        "    stage, assignments = 0, model.get_pipeline_stage_assignment()",
        "    for assignment in assignments:",
        "        stage = begins.get(assignment.layer.name, stage)",
        "        assignment.pipeline_stage = stage",
        "    model.set_pipeline_stage_assignment(assignments)",
        "    # steps_per_execution and the number of mini-batches must be multiples of this:",
        f"    model.set_pipelining_options(gradient_accumulation_steps_per_replica={2 * len(layer_split.stages)})",
    ]
