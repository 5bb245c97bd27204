"""A split of a Keras model's layers into pipeline stages, from a program with all of them on one IPU, or a pipeline."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tf_ipu_shim.capacity.layers import Given, Layer, layers_of
from tf_ipu_shim.cycle_model import timeline_of
from tf_ipu_shim.cycle_model.products import SYNC_CYCLES
from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.chips import Chip
from tf_ipu_shim.machine.pipelines.stage_memory import StageLayer, StageMemory
from tf_ipu_shim.machine.selection import shard_order
from tf_ipu_shim.runtime.captured_programs import Studied

_STAGES = (2, 4, 8, 16)
_WORTH = 0.95
"""A pipeline is cut anew where its busiest stage has at most this part of its work left."""


class Split(NamedTuple):
    """Layers of each stage.

    Args:
        stages: names, in the order of the model.
        cycles: of each stage.
        bytes: of each stage, with the FIFOs of a Grouped schedule.
        recomputes: whether all stages but the last run their forward pass twice, and keep what comes into them.
    """

    stages: tuple[tuple[str, ...], ...]
    cycles: tuple[float, ...]
    bytes: tuple[int, ...]
    recomputes: bool = False


class Links:
    """What stages hand to each other in a run.

    While stages are looked for, all that one gives or is given is one exchange with the stage beside it. In stages that
    are found, what one gives to several goes at once, and what it is given by several comes as one exchange of each.
    Each op that takes a tensor gives a gradient back, and these are added up where the tensor was made.

    Args:
        layers: that are put into stages.
        chip: of all stages.
        times: mini-batches of a run; gradients go back where layers have any.
    """

    def __init__(self, layers: Sequence[Layer], chip: Chip, times: float) -> None:
        self._layers, self._chip, self._times = layers, chip, times
        self._trains = any(layer.weight_bytes for layer in layers)
        count = len(layers)
        # Bytes of a mini-batch that go over links, there and back, by a stage's first layer and the one after its last.
        self._comes, self._comes_back, self._goes, self._goes_back = (
            [[0] * (count + 1) for _ in range(count)] for _ in range(4)
        )
        for maker, layer in enumerate(layers if times else ()):
            for given in layer.gives:
                self._count(maker, given)
        for first in range(count):
            for end in range(first + 1, count + 1):
                self._comes[first][end] += self._comes[first][end - 1]
                self._comes_back[first][end] += self._comes_back[first][end - 1]
        for first in range(count - 2, -1, -1):
            for end in range(first + 2, count + 1):
                self._goes[first][end] += self._goes[first + 1][end]
                self._goes_back[first][end] += self._goes_back[first + 1][end]

    def _count(self, maker: int, given: Given) -> None:
        """Counts what a layer gives over each border of stages that it may go over."""
        last = given.takers[-1][0]
        for border in range(maker + 1, last + 1):
            behind = [(taker, ops) for taker, ops in given.takers if taker >= border]
            self._comes[border][behind[0][0] + 1] += given.bytes
            for taker, ops in behind:
                self._comes_back[border][taker + 1] += ops * given.bytes
            self._goes[maker][border] += given.bytes
            self._goes_back[maker][border] += sum(ops for _, ops in behind) * given.bytes

    def cycles(self, first: int, end: int, stages: int) -> float:
        """What some layers, as one of so many stages, have to do for what others hand to them, and they to others."""
        tables = (self._comes, self._goes, self._comes_back, self._goes_back)
        sizes = [table[first][end] for table in tables[: 4 if self._trains else 2]]
        return sum(self._phase([(size, 0, 1)], stages) for size in sizes if size)

    def of_stages(self, bounds: Sequence[tuple[int, int]]) -> list[float]:
        """What stages, by their layers, have to do for what they hand to each other."""
        sizes, backs = self._between(bounds)
        places = shard_order(links.whole(max(len(bounds), 2)), pipelined=True)
        found = [0.0] * len(bounds)
        for here in range(len(bounds)):
            forward = [(size, to) for (at, to), size in sizes.items() if at == here]
            back = [(size, at) for (at, to), size in backs.items() if to == here]
            for phase in filter(None, (forward, back)):
                cycles = self._phase([(size, places[here], places[there]) for size, there in phase], len(bounds))
                for stage in (here, *(there for _, there in phase)):
                    found[stage] += cycles
        return found

    def _between(self, bounds: Sequence[tuple[int, int]]) -> tuple[dict[tuple[int, int], int], ...]:
        """Bytes that stages give others, and of the gradients of that, by the stages that give and that take."""
        stage_of = [stage for stage, (first, end) in enumerate(bounds) for _ in range(first, end)]
        sizes: dict[tuple[int, int], int] = collections.Counter()
        backs: dict[tuple[int, int], int] = collections.Counter()
        for maker, given in ((maker, given) for maker, layer in enumerate(self._layers) for given in layer.gives):
            here = stage_of[maker]
            for there in {stage_of[taker] for taker, _ in given.takers} - {here}:
                sizes[here, there] += given.bytes
            for there, ops in ((stage_of[taker], ops) for taker, ops in given.takers):
                if there != here and self._trains:
                    backs[here, there] += ops * given.bytes
        return sizes, backs

    def _phase(self, moves: Sequence[tuple[int, int, int]], stages: int) -> float:
        ipus = links.whole(max(stages, 2))
        sync = links.sync_cycles(self._chip, ipus) + SYNC_CYCLES
        return self._times * (sync + self._chip.cycles(links.phase_seconds(moves, ipus)))


@dataclasses.dataclass(frozen=True)
class _Stage:
    """A stage's place in a pipeline."""

    number: int
    count: int
    recomputes: bool

    @property
    def runs_again(self) -> bool:
        """Whether its forward pass runs twice."""
        return self.recomputes and self.number < self.count - 1

    def cycles(self, layer: Layer) -> float:
        """What it has to do for one layer."""
        return layer.cycles + (layer.forward_cycles if self.runs_again else 0.0)

    def memory(self) -> StageMemory:
        """What it needs, without layers yet."""
        return StageMemory(2 * (self.count - 1 - self.number), self.runs_again)

    def bytes(self, part: Iterable[StageLayer]) -> int:
        """Weights, optimizer state, accumulated gradients, and what is kept of the mini-batches that are in it."""
        memory = self.memory()
        for layer in part:
            memory.add(layer)
        return memory.bytes


def _in_stages(layers: Iterable[Layer]) -> list[StageLayer]:
    return [
        StageLayer(
            number,
            layer.kept_bytes + layer.weight_bytes,
            layer.weight_bytes,
            layer.activation_bytes,
            layer.takes,
            layer.fed_bytes,
        )
        for number, layer in enumerate(layers)
    ]


def split(
    layers: Sequence[Layer], chip: Chip, least: int = 2, recomputes: bool = False, times: float = 0.0
) -> Split | None:
    """The split into the fewest stages that fit, whose busiest stage has least to do; None where none fits.

    Args:
        layers: in order.
        chip: whose memory counts.
        least: stages that it has at least.
        recomputes: whether its stages recompute.
        times: mini-batches of a run, with each of which layers hand tensors to other stages.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> some = [Layer(name, cycles, 0, 0, 0) for name, cycles in (("a", 4), ("b", 1), ("c", 2), ("d", 1))]
        >>> split(some, CHIPS["gc200"]).stages
        (('a',), ('b', 'c', 'd'))
    """
    handed = Links(layers, chip, times)
    for count in sorted({least, *(count for count in _STAGES if count > least)}):
        places = [_Stage(number, count, recomputes) for number in range(count)]
        found = _into(layers, places, chip.total_bytes, handed) if count <= len(layers) else None
        if found is not None:
            return found
    return None


def better(program: Studied, chip: Chip, fits: bool) -> Split | None:
    """A split that a program should have: of one on one IPU any, of a pipeline one whose busiest stage has less to do.

    Args:
        program: from a study.
        chip: whose cycles and memory count.
        fits: whether the program fits on it as it is: a pipeline that does not is cut anew in any case.
    """
    layers = layers_of(program, chip)
    found = split(layers, chip, max(2, len(program.blocks)), program.recomputes, program.steps)
    if found is None or len(program.blocks) == 1 or not fits:
        return found
    if len(found.stages) > len(program.blocks):  # it fits, and no more IPUs are asked for
        return None
    now = timeline_of(program.blocks, chip, program.ipus).busy
    return found if max(found.cycles) <= _WORTH * max(now.values()) else None


def _into(layers: Sequence[Layer], places: Sequence[_Stage], limit: int, handed: Links) -> Split | None:
    """The layers in stages, the busiest of which has the least to do; None where no cut fits."""
    cuts = _cuts(layers, places, limit, handed)
    if cuts is None:
        return None
    bounds = list(zip(cuts, cuts[1:]))
    needed = _in_stages(layers)
    works = [sum(map(stage.cycles, layers[first:end])) for stage, (first, end) in zip(places, bounds)]
    return Split(
        tuple(tuple(layer.name for layer in layers[first:end]) for first, end in bounds),
        tuple(work + given for work, given in zip(works, handed.of_stages(bounds))),
        tuple(stage.bytes(needed[first:end]) for stage, (first, end) in zip(places, bounds)),
        places[0].recomputes,
    )


def _cuts(layers: Sequence[Layer], stages: Sequence[_Stage], limit: int, handed: Links) -> list[int] | None:
    """Where stages begin, and the last one ends. Dynamic programming over the first layers in the first stages."""
    total = len(layers)
    least = [0.0, *[math.inf] * total]  # that the busiest stage has to do, by the number of layers
    begins: list[list[int]] = []  # of the last stage, by stage and number of layers
    for stage in stages:
        least, begin = _with_a_stage(layers, stage, limit, least, handed)
        begins.append(begin)
    if least[total] == math.inf:
        return None
    cuts = [total]
    for begin in reversed(begins):
        cuts.append(begin[cuts[-1]])
    return cuts[::-1]


def _with_a_stage(
    layers: Sequence[Layer], stage: _Stage, limit: int, before: Sequence[float], handed: Links
) -> tuple[list[float], list[int]]:
    """What the busiest of one more stage has to do, and where the new one begins, by the number of layers."""
    total = len(layers)
    least, begin, needed = [math.inf] * (total + 1), [0] * (total + 1), _in_stages(layers)
    for first in range(stage.number, total):
        cycles, memory = 0.0, stage.memory()
        for end in range(first + 1, total + 1):
            cycles += stage.cycles(layers[end - 1])
            memory.add(needed[end - 1])
            if memory.bytes > limit:
                break
            longest = max(before[first], cycles + handed.cycles(first, end, stage.count))
            if longest < least[end]:
                least[end], begin[end] = longest, first
    return least, begin


def to_text(found: Split, chip: Chip) -> list[str]:
    """Lines: what each stage has to do on a chip, and the script's lines that make it so."""
    longest = max(found.cycles)
    how = ", with recomputation" if found.recomputes else ""
    lines = [f"  As a pipeline of {len(found.stages)} stages on {chip.name}, cycles balanced{how} (Keras):"]
    for stage, (cycles, size) in enumerate(zip(found.cycles, found.bytes)):
        lines.append(f"    stage {stage}: {100 * cycles / (longest or 1):.0f} % of the busiest, about {size:,} bytes")
    starts = {layers[0]: stage for stage, layers in enumerate(found.stages)}
    return [
        *lines,
        f"    begins = {starts}",
        "    stage, assignments = 0, model.get_pipeline_stage_assignment()",
        "    for assignment in assignments:",
        "        stage = begins.get(assignment.layer.name, stage)",
        "        assignment.pipeline_stage = stage",
        "    model.set_pipeline_stage_assignment(assignments)",
    ]
