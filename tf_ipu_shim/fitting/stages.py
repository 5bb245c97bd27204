"""A split of a Keras model's layers into pipeline stages, from a program with all of them on one IPU, or a pipeline.

Ops are told by their names, as Keras makes them: `while/model/dense/MatMul`, `gradient_tape/while/model/dense/...`; in
a pipeline's stages `dense/MatMul`, `gradients/dense/MatMul_grad/...`. A layer's optimizer work is not named after it
and is left out, as its weights' sizes balance it much as its products do.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.accounting.trees import origin
from tf_ipu_shim.machine.chips import Chip
from tf_ipu_shim.machine.cycles import Computation, Entry, timeline_of
from tf_ipu_shim.machine.memory import Block, Mode, Value
from tf_ipu_shim.machine.stage_memory import StageLayer, StageMemory, Taken, taken_by_layers
from tf_ipu_shim.runtime.study import Studied

_GRADIENTS = ("gradient_tape/", "gradients/")
_FORWARD = ("temporary", "activation", "exchange")
_STAGES = (2, 4, 8, 16)
_HOST = ("host", "feed")
_SCALAR = 8  # bytes: such as a seed or a counter, which is no mini-batch
_WORTH = 0.95
"""A pipeline is cut anew where its busiest stage has at most this part of its work left."""


class Layer(NamedTuple):
    """A layer with weights, and those without that follow it.

    Args:
        name: of the layer.
        cycles: of its forward and backward work in a run, without what recomputation runs again. The first one has
            copies from the host too, the last one those to it.
        kept_bytes: its weights and their optimizer state.
        weight_bytes: its weights that are trained, of which a pipeline accumulates the gradients.
        activation_bytes: what the backward pass needs of it for one mini-batch, with what is fed to it.
        ipu: where it is now.
        forward_cycles: of its forward work alone, which recomputation runs again.
        takes: of layers before it.
        fed_bytes: what is fed to it, for one mini-batch.
    """

    name: str
    cycles: float
    kept_bytes: int
    weight_bytes: int
    activation_bytes: int
    ipu: int = 0
    forward_cycles: float = 0.0
    takes: tuple[Taken, ...] = ()
    fed_bytes: int = 0


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


def layers_of(program: Studied, chip: Chip) -> list[Layer]:
    """The layers with weights of a program, in the order in which they run; none where names tell none.

    Args:
        program: from a study. Of those on several IPUs only Keras' have layers: they are pipelines.
        chip: whose cycles count.
    """
    if len(program.blocks) != 1 and not program.is_keras:
        return []
    kept, weights, places = _variables(program)
    names = _Names(weights, in_stages=len(program.blocks) > 1)
    entries = timeline_of(program.blocks, chip, program.ipus).entries
    ops = list(_ops(entries, 1.0))
    for name, _ in ops:
        names.see(name)
    if not names.order:
        return []
    cycles, forward = _cycles(ops, names)
    for copies, name in zip(_with_the_host(entries, min(program.blocks)), (names.order[0], names.order[-1])):
        cycles[name] += copies
    trains = any(name.startswith(_GRADIENTS) for name, _ in ops)
    activations = _activations(program.blocks.values(), names)
    inputs, fed = _inputs(list(program.blocks.values()), names)
    return [
        Layer(
            name,
            cycles[name],
            kept[name],
            weights[name] if trains else 0,
            activations[name] + fed[place],
            places[name],
            forward[name],
            inputs[place],
            fed[place],
        )
        for place, name in enumerate(names.order)
    ]


def _variables(program: Studied) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """For each layer bytes of its weights and optimizer state, of its weights alone, and its IPU."""
    kept: dict[str, int] = collections.Counter()
    weights: dict[str, int] = collections.Counter()
    places: dict[str, int] = {}
    for ipu, block in program.blocks.items():
        for value in block.values:
            layer, slash, _ = value.owner.partition("/")
            if value.mode is Mode.ALWAYS and slash and value.kind in ("weight", "optimizer_state"):
                kept[layer] += value.bytes
                weights[layer] += value.bytes if value.kind == "weight" else 0
                places.setdefault(layer, ipu)
    return kept, weights, places


def _activations(blocks: Iterable[Block], names: _Names) -> dict[str, int]:
    found: dict[str, int] = collections.Counter()
    for block in _all(blocks):
        for value in block.values:
            if value.kind == "activation" and value.mode is not Mode.VIEW:
                found[names.layer_of(value.owner)] += value.bytes
    return found


def _with_the_host(entries: Iterable[Entry], first: int) -> tuple[float, float]:
    """Cycles of copies with the host, of a run: of the first IPU's from it, and of all others."""
    found = [0.0, 0.0]
    for entry, times in _computations(entries, 1.0):
        work = entry.computation
        if work is not None and work.kind in _HOST:
            found[0 if _is_copy_from_host(work) and entry.ipus == (first,) else 1] += times * entry.cycles
    return found[0], found[1]


def _is_copy_from_host(work: object) -> bool:
    return isinstance(work, Computation) and work.kind in _HOST and work.sizes[0] > 0


def _cycles(ops: Iterable[tuple[str, float]], names: _Names) -> tuple[dict[str, float], dict[str, float]]:
    """What each layer takes, forward and backward, and forward alone; without what recomputation runs again."""
    whole: dict[str, float] = collections.defaultdict(float)
    forward: dict[str, float] = collections.defaultdict(float)
    seen: set[str] = set()
    for name, each in ops:
        if not name.startswith(_GRADIENTS):
            if name in seen:
                continue
            seen.add(name)
            forward[names.layer_of(name)] += each
        whole[names.layer_of(name)] += each
    return whole, forward


def _inputs(blocks: Sequence[Block], names: _Names) -> tuple[list[tuple[Taken, ...]], list[int]]:
    """For each layer what it takes of the forward pass of layers before it; then bytes of what is fed to it first."""
    places = {name: place for place, name in enumerate(names.order)}
    users: dict[Hashable, set[int]] = {}
    makers: dict[Hashable, tuple[int, int]] = {}  # the layer, and bytes
    first: dict[Hashable, tuple[int, int]] = {}
    for user, value, place in _taken(blocks, names, places):
        key: Hashable = (value.owner, value.bytes) if place is None else place  # those of one op are fed one by one
        users.setdefault(key, set()).add(user)
        maker = None if value.owner.startswith(_GRADIENTS) else places.get(names.layer_of(value.owner))
        if place is not None and value.bytes > _SCALAR:
            first[key] = min(user, first.get(key, (user, 0))[0]), value.bytes
        elif maker is not None and value.kind in _FORWARD:
            makers[key] = maker, value.bytes
    fed = [0] * len(places)
    for layer, size in first.values():
        fed[layer] += size
    # What is fed comes to the first layer that takes it, and from there to others.
    values = ((maker, users[key], size) for key, (maker, size) in {**first, **makers}.items())
    return taken_by_layers(values, len(places)), fed


def _taken(
    blocks: Sequence[Block], names: _Names, places: Mapping[str, int]
) -> Iterator[tuple[int, Value, tuple[int, int] | None]]:
    """What layers take in their forward pass: the layer, the value, and where it is if the host gave it."""
    given = {
        block.values[number].owner
        for block in _all(blocks)
        for step in block.steps
        if _is_copy_from_host(step.work)
        for number in step.gives
    }
    for at, block in enumerate(_all(blocks)):
        for step in block.steps:
            user = places.get(names.layer_of(step.owner))
            if user is not None and not step.owner.startswith(_GRADIENTS):
                for number in step.takes:
                    whole = origin(block, number)
                    value = block.values[whole]
                    yield user, value, (at, whole) if value.owner in given else None


def _all(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from _all(inner for step in block.steps for inner in step.inside)


class _Names:
    """Which layer an op belongs to: the part of its name behind the model's, in stages of a pipeline the first part.

    Args:
        weighted: layers with weights.
        in_stages: whether the program is a pipeline. What comes behind its last layer is the loss, in the last stage.
    """

    def __init__(self, weighted: Iterable[str], in_stages: bool = False) -> None:
        self._weighted = frozenset(weighted)
        self._in_stages = in_stages
        self.order: list[str] = []
        self._model = ""
        self._seen: set[str] = set()
        self._with: dict[str, str] = {}  # layers without weights: the one before

    def see(self, name: str) -> None:
        """Looks at an op, in running order; not at what recomputation runs again."""
        if name.startswith(_GRADIENTS) or name in self._seen:
            return
        self._seen.add(name)
        parts = self._parts(name)
        found = next((place for place, part in enumerate(parts) if part in self._weighted), None)
        if found is not None:
            self._model = self._model or name.split("/")[found]
            if parts[found] not in self.order:
                self.order.append(parts[found])
            return
        layer = self._behind_model(name)
        if layer and self.order:  # its last op decides: random numbers may be made at any time before
            self._with[layer] = self.order[-1]

    def layer_of(self, name: str) -> str:
        """The layer with weights whose stage an op is in; empty where the name does not tell."""
        layer = next((part for part in self._parts(name) if part in self._weighted), "") or self._behind_model(name)
        return layer if layer in self._weighted else self._with.get(layer, "")

    def _parts(self, name: str) -> list[str]:
        """Parts that may be a layer's name: not the op itself, and not the first one, but in stages."""
        return name.split("/")[0 if self._in_stages else 1 : -1]

    def _behind_model(self, name: str) -> str:
        parts = name.split("/")
        if self._in_stages:
            return next((part for part in parts[:-1] if f"{part}/" not in _GRADIENTS), "")
        if not self._model or self._model not in parts[:-2]:
            return ""
        return parts[parts.index(self._model) + 1]


def _ops(entries: Iterable[Entry], times: float) -> Iterator[tuple[str, float]]:
    for entry, often in _computations(entries, times):
        if entry.computation is not None and entry.computation.kind != "exchange":  # which goes where stages meet
            yield entry.name, often * entry.cycles


def _computations(entries: Iterable[Entry], times: float) -> Iterator[tuple[Entry, float]]:
    """What computes or moves something, and how often."""
    for entry in entries:
        if entry.computation is None:
            yield from _computations(entry.children, times * (entry.times if entry.kind == "loop" else 1.0))
        else:
            yield entry, times


def split(layers: Sequence[Layer], chip: Chip, least: int = 2, recomputes: bool = False) -> Split | None:
    """The split into the fewest stages that fit, whose busiest stage has least to do; None where none fits.

    Args:
        layers: in order.
        chip: whose memory counts.
        least: stages that it has at least.
        recomputes: whether its stages recompute.

    Example:
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> some = [Layer(name, cycles, 0, 0, 0) for name, cycles in (("a", 4), ("b", 1), ("c", 2), ("d", 1))]
        >>> split(some, CHIPS["gc200"]).stages
        (('a',), ('b', 'c', 'd'))
    """
    for count in sorted({least, *(count for count in _STAGES if count > least)}):
        found = _into(layers, count, chip.total_bytes, recomputes) if count <= len(layers) else None
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
    found = split(layers, chip, max(2, len(program.blocks)), program.recomputes)
    if found is None or len(program.blocks) == 1 or not fits:
        return found
    if len(found.stages) > len(program.blocks):  # it fits, and no more IPUs are asked for
        return None
    now: dict[int, float] = collections.defaultdict(float)
    for layer in layers:
        now[layer.ipu] += _Stage(layer.ipu, len(program.blocks), program.recomputes).cycles(layer)
    return found if max(found.cycles) <= _WORTH * max(now.values()) else None


def _into(layers: Sequence[Layer], count: int, limit: int, recomputes: bool) -> Split | None:
    """The layers in so many stages, the busiest of which has the least to do; None where no cut fits."""
    places = [_Stage(number, count, recomputes) for number in range(count)]
    cuts = _cuts(layers, places, limit)
    if cuts is None:
        return None
    parts = [layers[first:end] for first, end in zip(cuts, cuts[1:])]
    needed = _in_stages(layers)
    return Split(
        tuple(tuple(layer.name for layer in part) for part in parts),
        tuple(sum(map(stage.cycles, part)) for stage, part in zip(places, parts)),
        tuple(stage.bytes(needed[first:end]) for stage, first, end in zip(places, cuts, cuts[1:])),
        recomputes,
    )


def _cuts(layers: Sequence[Layer], stages: Sequence[_Stage], limit: int) -> list[int] | None:
    """Where stages begin, and the last one ends. Dynamic programming over the first layers in the first stages."""
    total = len(layers)
    least = [0.0, *[math.inf] * total]  # that the busiest stage has to do, by the number of layers
    begins: list[list[int]] = []  # of the last stage, by stage and number of layers
    for stage in stages:
        least, begin = _with_a_stage(layers, stage, limit, least)
        begins.append(begin)
    if least[total] == math.inf:
        return None
    cuts = [total]
    for begin in reversed(begins):
        cuts.append(begin[cuts[-1]])
    return cuts[::-1]


def _with_a_stage(
    layers: Sequence[Layer], stage: _Stage, limit: int, before: Sequence[float]
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
            longest = max(before[first], cycles)
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
