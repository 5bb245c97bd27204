"""Extracts the layers of a Keras model from a captured program: their cycles and memory.

Ops are told by their names, as Keras makes them: `while/model/dense/MatMul`, `gradient_tape/while/model/dense/...`; in
a pipeline's stages `dense/MatMul`, `gradients/dense/MatMul_grad/...`. Work without a layer's name, such as an
optimizer's, is assigned by the variables and gradients that it uses.
"""

from __future__ import annotations

import collections
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.capacity.names import GRADIENTS, LayerIndex, LayerNames
from tf_ipu_shim.cycle_model import Computation, Entry, phases_of, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, FeedSizes, HostSizes
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory import Block, Mode, Step, Value
from tf_ipu_shim.machine.memory.layer_names import layers_of_variables
from tf_ipu_shim.machine.pipelines.stage_memory import ConsumedBytes, consumed_by_layers
from tf_ipu_shim.memory_model.hlo.trees import origin
from tf_ipu_shim.runtime.captured_programs import CapturedProgram

_FORWARD = ("temporary", "activation", "exchange")
_HOST = ("host", "feed")
_OF_STAGES = ("exchange", "fifo")
"""Work that depends on where stages meet, not on a layer."""
_SCALAR = 8  # bytes: such as a seed or a counter, which is no mini-batch
_VARIABLES = ("weight", "optimizer_state")


class Passed(NamedTuple):
    """A tensor that a layer passes to later layers.

    Args:
        consumers: these layers, and how many ops of each use it: each op returns a gradient.
    """

    consumers: tuple[tuple[int, int], ...]
    bytes: int


class Layer(NamedTuple):
    """A layer with weights, and the following ones without weights.

    Args:
        cycles: cycles in a run without recomputation: forward and backward work, accumulation of gradients, update, and
            copies from the host. The last layer includes the loss and copies to it.
        kept_bytes: its weights and their optimizer state.
        weight_bytes: its weights that are trained, of which a pipeline accumulates the gradients.
        activation_bytes: the tensors that the backward pass needs of it for one mini-batch, including fed inputs.
        forward_cycles: the cycles of its forward work only, which recomputation repeats.
        outputs: its results or fed inputs that later layers consume.
        activations: how many tensors `activation_bytes` counts.
        fed_tensors: how many tensors `fed_bytes` counts.
    """

    name: str
    cycles: float
    kept_bytes: int
    weight_bytes: int
    activation_bytes: int
    ipu: int = 0
    forward_cycles: float = 0.0
    inputs: tuple[ConsumedBytes, ...] = ()
    fed_bytes: int = 0
    outputs: tuple[Passed, ...] = ()
    activations: int = 0
    fed_tensors: int = 0


def layers_of(program: CapturedProgram, chip: ChipSpec) -> list[Layer]:
    """Returns the layers with weights in execution order; empty if op names do not show them."""
    if len(program.blocks) != 1 and not program.is_keras:
        return []
    variables = _Variables(program)
    entries = list(_computations(timeline_of(program.blocks, chip, program.ipus).entries, 1.0))
    blocks = list(_all(program.blocks.values()))
    names = _names(variables, entries, blocks, in_stages=len(program.blocks) > 1)
    if not names.order:
        return []
    layer_index = LayerIndex(names, blocks)
    flow = _Flow(blocks, layer_index)
    work = _Work(entries, layer_index, flow, program.recomputes)
    trains = any(entry.name.startswith(GRADIENTS) for entry, _ in entries)
    if trains and not any(value.kind == "accumulator" for block in blocks for value in block.values):
        work.accumulate(variables.sizes, chip, program.steps)
        work.load(variables.remote_sizes, chip)
    activations = _activations(blocks, layer_index)
    return [
        Layer(
            name,
            work.all[index],
            variables.bytes[name],
            variables.weight_bytes[name] if trains else 0,
            sum(activations[index]) + flow.fed[index],
            variables.places[name],
            work.forward[index],
            flow.inputs[index],
            flow.fed[index],
            flow.outputs[index],
            len(activations[index]) + flow.fed_tensors[index],
            flow.fed_tensors[index],
        )
        for index, name in enumerate(names.order)
    ]


def _names(
    variables: _Variables, entries: Iterable[tuple[Entry, float]], blocks: Iterable[Block], in_stages: bool
) -> LayerNames:
    names = LayerNames(variables.layers, in_stages)
    for entry, _ in sorted(entries, key=_runs_once):  # what is done once, before a loop, is in no order
        if entry.computation is not None and entry.computation.kind not in (*_OF_STAGES, *_HOST):
            names.register_op(entry.name)
    for block in blocks if names.order else ():
        names.register_views(step.owner for step in block.steps)
    return names


class _Variables:
    """Weight and optimizer-state bytes of each layer in a pipeline, by name, and its IPU."""

    def __init__(self, program: CapturedProgram) -> None:
        least = program.remote_state_bytes
        self.bytes: dict[str, int] = collections.Counter()
        self.weight_bytes: dict[str, int] = collections.Counter()
        self.sizes: dict[str, list[int]] = {}
        self.remote_sizes: dict[str, list[int]] = {}
        self.places: dict[str, int] = {}
        layers = layers_of_variables(value.owner for block in program.blocks.values() for value in block.values)
        for ipu, block in program.blocks.items():
            for value in block.values:
                layer = layers[value.owner]
                if value.mode is Mode.ALWAYS and "/" in value.owner and value.kind in _VARIABLES:
                    self.places.setdefault(layer, ipu)
                    if value.kind != "weight" and least is not None and value.bytes >= least:
                        self.remote_sizes.setdefault(layer, []).append(value.bytes)
                        continue
                    self.bytes[layer] += value.bytes
                    if value.kind == "weight":
                        self.weight_bytes[layer] += value.bytes
                        self.sizes.setdefault(layer, []).append(value.bytes)

    @property
    def layers(self) -> Iterable[str]:
        """Returns the names of layers with weights."""
        return self.weight_bytes


class _Work:
    """Cycles of each layer in a run.

    Args:
        entries: computations and copies, and how often they run.
        recomputes: whether stages run their forward pass again.

    Attributes:
        all: forward, backward, optimizer and host work, without recomputation.
        forward: of these, the cycles that recomputation would repeat.
    """

    def __init__(
        self, entries: Iterable[tuple[Entry, float]], layer_index: LayerIndex, flow: _Flow, recomputes: bool
    ) -> None:
        self.all = [0.0] * layer_index.count
        self.forward = [0.0] * layer_index.count
        self._layer_index, self._flow, self._recomputes = layer_index, flow, recomputes
        self._updates = [0.0] * layer_index.count
        # The step that ran a computation forward: another one repeats it, the same one is in another iteration.
        self._ran: dict[int, tuple[Block, int]] = {}
        for entry, times in entries:
            work = entry.computation
            if work is not None and work.kind not in _OF_STAGES:
                self._add(entry, work, times * entry.cycles)

    def _add(self, entry: Entry, work: Computation, cycles: float) -> None:
        if work.kind in _HOST and isinstance(work.sizes, HostSizes | FeedSizes):
            layer = self._flow.first_layer(entry.steps[0]) if work.sizes.bytes > 0 else -1
            self.all[layer] += cycles
            return
        layer = self._layer_index.index_of(entry.name)
        if work.kind == "remote":
            pass
        elif self._layer_index.is_update(entry.name):
            # A scatter of rows runs for each mini-batch in a pipeline, which sums gradients up.
            self._updates[layer] += cycles if work.kind != "update" else 0
        elif self._layer_index.is_in_layer(entry.name) and not entry.name.startswith(GRADIENTS):
            block, index = entry.steps[0]
            first_block, first_index = self._ran.setdefault(id(work), (block, index))
            if self._recomputes and (first_block is not block or first_index != index):
                return
            self.forward[layer] += cycles
        self.all[layer] += cycles

    def accumulate(self, sizes: Mapping[str, Sequence[int]], chip: ChipSpec, times: float) -> None:
        """Accounts for gradient accumulation as in a pipeline, with one weight update per run."""
        for layer, name in enumerate(self._layer_index.order):
            adds = (Computation("elementwise", "add", ElementwiseSizes(size // 4, 2)) for size in sizes[name])
            once = sum(phase.cycles for add in adds for phase in phases_of(add, chip))
            self.all[layer] += times * once - self._updates[layer] * (1 - 1 / max(1.0, times))

    def load(self, sizes: Mapping[str, Sequence[int]], chip: ChipSpec) -> None:
        """Accounts for optimizer state that a pipeline loads and stores for its weight update."""
        for layer, name in enumerate(self._layer_index.order):
            loads = (Computation("remote", "load", HostSizes(size), 1) for size in sizes.get(name, ()))
            self.all[layer] += 2 * sum(phase.cycles for load in loads for phase in phases_of(load, chip))


class _Flow:
    """The tensors that layers pass to each other and receive from the host in the forward pass.

    Attributes:
        inputs: for each layer, the outputs of earlier layers that it consumes.
        outputs: its results or fed inputs that later layers consume.
        fed: bytes of the inputs that are first fed to it.
        fed_tensors: how many tensors these are.
    """

    def __init__(self, blocks: Sequence[Block], layer_index: LayerIndex) -> None:
        self._layer_index = layer_index
        self._numbers = {id(block): at for at, block in enumerate(blocks)}
        users: dict[Hashable, dict[int, set[str]]] = {}  # layers, and their ops
        makers: dict[Hashable, tuple[int, int]] = {}  # the layer, and bytes
        first: dict[Hashable, tuple[int, int]] = {}
        for user, op, value, at in self._consumed_values(blocks):
            key: Hashable = (value.owner, value.bytes) if at is None else at  # those of one op are fed one by one
            users.setdefault(key, {}).setdefault(user, set()).update(op)
            if at is not None and value.bytes > _SCALAR:
                first[key] = min(user, first.get(key, (user, 0))[0]), value.bytes
            elif (
                value.kind in _FORWARD
                and layer_index.is_in_layer(value.owner)
                and not value.owner.startswith(GRADIENTS)
            ):
                makers[key] = layer_index.index_of(value.owner), value.bytes
        self._first = {key: layer for key, (layer, _) in first.items()}
        self.fed = [0] * layer_index.count
        self.fed_tensors = [0] * layer_index.count
        for layer, size in first.values():
            self.fed[layer] += size
            self.fed_tensors[layer] += 1
        # Fed data is copied to the first layer that consumes it, and from there to others.
        values = [(maker, users[key], size) for key, (maker, size) in {**first, **makers}.items()]
        self.inputs = consumed_by_layers(values, layer_index.count)
        self.outputs = _layer_outputs(values, layer_index.count)

    def first_layer(self, step: tuple[Block, int]) -> int:
        """Returns the first layer that consumes a host copy."""
        block, value_id = step
        at = self._numbers[id(block)]
        first_layers = [self._first[at, value] for value in block.steps[value_id].outputs if (at, value) in self._first]
        return min(first_layers, default=0)

    def _consumed_values(
        self, blocks: Sequence[Block]
    ) -> Iterator[tuple[int, tuple[str, ...], Value, tuple[int, int] | None]]:
        """Yields the values that layers consume in the forward pass: layer, op, value and host source."""
        host_inputs = {value.owner for block in blocks for value in _from_host(block)}
        for at, block in enumerate(blocks):
            for step in filter(self._is_forward, block.steps):
                op = () if step.work is None else (step.owner,)
                for source in (origin(block, value_id) for value_id in step.inputs):
                    value = block.values[source]
                    is_given = value.owner in host_inputs
                    if self._layer_index.is_in_layer(step.owner) or (is_given and op):
                        yield self._layer_index.index_of(step.owner), op, value, (at, source) if is_given else None

    def _is_forward(self, step: Step) -> bool:
        return not step.owner.startswith(GRADIENTS) and not self._layer_index.is_update(step.owner)


def _from_host(block: Block) -> Iterator[Value]:
    for step in block.steps:
        work = step.work
        if not isinstance(work, Computation) or work.kind not in _HOST:
            continue
        if isinstance(work.sizes, HostSizes | FeedSizes) and work.sizes.bytes > 0:
            yield from (block.values[value_id] for value_id in step.outputs)


def _layer_outputs(values: Iterable[tuple[int, Mapping[int, set[str]], int]], layers: int) -> list[tuple[Passed, ...]]:
    outputs: list[list[Passed]] = [[] for _ in range(layers)]
    for maker, takers, size in values:
        behind = tuple((taker, max(1, len(takers[taker]))) for taker in sorted(takers) if taker > maker)
        if behind:
            outputs[maker].append(Passed(behind, size))
    return [tuple(output) for output in outputs]


def _activations(blocks: Iterable[Block], layer_index: LayerIndex) -> list[list[int]]:
    """Returns the bytes of each value of a layer that its gradients use."""
    sizes: list[list[int]] = [[] for _ in range(layer_index.count)]
    for block in blocks:
        for value in block.values:
            if value.kind == "activation" and value.mode is not Mode.VIEW and layer_index.is_in_layer(value.owner):
                sizes[layer_index.index_of(value.owner)].append(value.bytes)
    return sizes


def _computations(entries: Iterable[Entry], times: float) -> Iterator[tuple[Entry, float]]:
    """Yields computing or moving entries, with how often they run."""
    for entry in entries:
        if entry.computation is None:
            yield from _computations(entry.children, times * (entry.times if entry.kind == "loop" else 1.0))
        else:
            yield entry, times


def _runs_once(computation: tuple[Entry, float]) -> bool:
    return computation[1] <= 1


def _all(blocks: Iterable[Block]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from _all(inner for step in block.steps for inner in step.inside)
