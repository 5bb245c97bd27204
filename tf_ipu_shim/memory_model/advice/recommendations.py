"""Recommends changes for a program that does not fit, each with the memory it saves.

Each action changes the program or the bytes of its tensors, and the whole plan is computed again. Actions are other
storage, float16, a smaller mini-batch, and layers on other IPUs.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

from tensorflow.compat.v2 import errors

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.machine.memory import IpuPlan, MemoryPlan, Saving, best, fullest_ipu, saving_between
from tf_ipu_shim.machine.pipelines import pipeline_schedule
from tf_ipu_shim.memory_model.advice.accumulation_options import accumulation_advice, may_accumulate, same_update_advice
from tf_ipu_shim.memory_model.advice.partitioning import Layer, Layers, Partition, in_flight_mini_batches
from tf_ipu_shim.memory_model.advice.scenarios import Group, Named, Scenario, as_option, first_fitting_pair
from tf_ipu_shim.memory_model.hlo.compiler_ir import ConversionError
from tf_ipu_shim.memory_model.shapes.shape_inference import ShapeInferenceError
from tf_ipu_shim.memory_model.shapes.sizes import Sizes
from tf_ipu_shim.memory_model.variables import variable_kinds
from tf_ipu_shim.memory_model.variables.pipeline_memory import find_pipelines
from tf_ipu_shim.memory_model.walk.analysis_context import AnalysisContext, batch_size_of
from tf_ipu_shim.tf_private.protos import function_pb2, types_pb2

MAX_INSTRUCTIONS = 20_000
"""The size limit of programs that are planned again; a larger one would delay the error."""
_MAX_IPUS = 256
_MAX_PARTITIONS = 3
_MAX_LAYERS = 4  # that are named in one action
_BATCH_PARTS = (2, 4, 8, 16)
_DIVIDING = re.compile(r"Adamax|Nadam|Adam|RMSprop|RMSProp|Adagrad|Adadelta|LAMB")
_FLOAT16_EPSILON = "1e-4"
_OFFLOADING = {
    variable_kinds.STATE: "offload_weight_update_variables=True",
    variable_kinds.ACCUMULATOR: "offload_gradient_accumulation_buffers=True",
    variable_kinds.WEIGHT: "offload_weights=True",
}


def recommend(
    request: ProgramRequest,
    plan: MemoryPlan,
    context: AnalysisContext,
    plan_with: Callable[[Scenario], MemoryPlan],
    line_of: Callable[[str], str | None],
) -> tuple[Saving, ...]:
    """Returns the actions that save most memory on the fullest IPU."""
    full = fullest_ipu(plan)
    if full is None or sum(size.instructions for size in context.work.compiled.values()) > MAX_INSTRUCTIONS:
        return ()
    now = Scenario(context.storage, Sizes(), request, len(plan.ipus))
    found: list[Saving] = []
    groups: list[Group] = []
    for changes in _changes(now, plan, context):
        planned, group = _plan_changes(now, changes, plan, full, plan_with)
        found += planned
        groups += group
    partitions = _PartitionAdvice(now, plan, context, line_of)
    if partitions.lacks_parts:
        found += partitions.as_pipeline(full)
    else:
        planned, group = partitions.plan(full, plan_with)
        found += planned
        groups += group
    if not any(saving.fits for saving in found):
        pair = first_fitting_pair(groups, now, full, lambda change: _plan_or_none(plan_with, change))
        found += [pair] if pair is not None else []
    return best(found)


def _plan_or_none(plan_with: Callable[[Scenario], MemoryPlan], change: Scenario) -> MemoryPlan | None:
    try:
        return plan_with(change)
    except (errors.OpError, ConversionError, ShapeInferenceError):
        return None  # the changed program cannot be compiled


def _plan_changes(
    now: Scenario,
    changes: Iterable[Named],
    plan: MemoryPlan,
    full: IpuPlan,
    plan_with: Callable[[Scenario], MemoryPlan],
) -> tuple[list[Saving], list[Group]]:
    """Returns the first change that suffices, else the best one, and changes to combine.

    A smaller mini-batch saves at most twice as much as half of it: if that is not enough, no other is tried.
    """
    tried: list[tuple[Saving, Named]] = []
    half: Saving | None = None
    waiting = list(changes)
    while waiting and (half is None or 2 * half.bytes >= full.peak_bytes - full.limit_bytes):
        action, change = waiting.pop(0)
        saving = saving_between(plan, full, plan_with(change), action)
        if saving.fits:
            return [saving], []
        tried.append((saving, (action, change)))
        half = saving if change.sizes.batch_divisor == 2 else half
    most = max(tried, key=lambda attempt: attempt[0].bytes, default=None)
    if most is None or most[0].bytes <= 0:
        return [], []
    options = [as_option(now, *named) for named in [most[1], *waiting]]
    return [most[0]], [Group(options, most[0].bytes * (2 if waiting else 1))]


def _changes(now: Scenario, plan: MemoryPlan, context: AnalysisContext) -> Iterator[list[Named]]:
    """Yields groups of changes that move no layers; one of a group, the first that fits, is named."""
    training = [pipeline for pipeline in find_pipelines(now.request.library.values()) if pipeline.training]
    yield from _tensor_changes(now, context)
    if any(pipeline.stages > 1 for pipeline in training):
        if not now.storage.recomputes:
            yield [("recomputation (allow_recompute=True)", _stored(now, recomputes=True))]
        yield list(_pipeline_changes(now, training))
    categories = {kind for ipu in plan.ipus for kind, size in ipu.categories.items() if size}
    accumulates = bool(training) or _accumulates(now.request.library.values())
    if not accumulates and all(may_accumulate(now.request, block) for block in context.blocks.values()):
        state = max(ipu.categories[variable_kinds.STATE] for ipu in plan.ipus)
        yield list(_accumulation_changes(now, context, state >= now.storage.minimum_bytes))
    yield from _variable_changes(now, _movable(now.request, bool(training)) & categories)


def _tensor_changes(now: Scenario, context: AnalysisContext) -> Iterator[list[Named]]:
    """Yields changes that make tensors smaller."""
    request, samples = now.request, _samples(now, context)
    yield [
        (
            f"a mini-batch of {samples // part:,} instead of {samples:,}{same_update_advice(request, part)}",
            now._replace(sizes=Sizes(batch_divisor=part)),
        )
        for part in _parts(samples)
    ]
    if types_pb2.DT_FLOAT in request.variable_types:
        how = 'tf.keras.backend.set_floatx("float16")' if request.is_keras else "of weights and what is fed"
        how += _epsilon_advice(request)
        yield [(f"float16 instead of float32 ({how})", now._replace(sizes=Sizes(float16=True)))]


def _epsilon_advice(request: ProgramRequest) -> str:
    """Returns advice on the epsilon of optimizers in float16, in which squares of small gradients are zero."""
    ops = (node.op for function in request.library.values() for node in function.node_def)
    found = next(filter(None, map(_DIVIDING.search, itertools.chain(request.variable_names, ops))), None)
    return f"; with {found.group()}, epsilon={_FLOAT16_EPSILON} or larger" if found else ""


def _samples(now: Scenario, context: AnalysisContext) -> int:
    """Returns the number of samples in a mini-batch."""
    return round(
        max((items / steps for steps, items in context.work.feeds.values()), default=batch_size_of(now.request))
    )


def _parts(samples: int) -> list[int]:
    """Returns the divisors tried for a mini-batch."""
    return [parts for parts in _BATCH_PARTS if samples > 1 and samples % parts == 0]


def _accumulation_changes(now: Scenario, context: AnalysisContext, has_state: bool) -> Iterator[Named]:
    """Yields gradient accumulation, and optimizer state in Streaming Memory, which accumulation allows.

    First over two unchanged mini-batches, then over parts of one, which result in the same update.
    """
    state, option = "", ""
    if has_state:
        option = f", {_OFFLOADING[variable_kinds.STATE]}"
        state = ", optimizer state in Streaming Memory"
        now = _stored(now, offloaded=now.storage.offloaded | {variable_kinds.STATE})
        how = accumulation_advice(now.request, 2)
        yield f"gradients of 2 mini-batches accumulated{state} ({how}{option}))", now._replace(accumulates=True)
    samples = _samples(now, context)
    for part in _parts(samples):
        named = f"gradients of {part} mini-batches of {samples // part:,} accumulated{state}"
        smaller = now._replace(accumulates=True, sizes=Sizes(batch_divisor=part))
        yield f"{named} ({accumulation_advice(now.request, part)}{option}))", smaller


def _variable_changes(now: Scenario, movable: Set[str]) -> Iterator[list[Named]]:
    """Yields changes of the memory that stores variables, for the kinds that may move."""
    storage = now.storage
    for kind, option in _OFFLOADING.items():
        if kind in movable - storage.offloaded:
            offloaded = storage.offloaded | {kind}
            yield [(f"{kind.replace('_', ' ')} in Streaming Memory ({option})", _stored(now, offloaded=offloaded))]
    if variable_kinds.STATE in movable - storage.shared and storage.replicas > 1:
        action = "optimizer state shared by the replicas (replicated_optimizer_state_sharding=True)"
        yield [(action, _stored(now, shared=storage.shared | {variable_kinds.STATE}))]


def _pipeline_changes(now: Scenario, training: Iterable[PipelineDescription]) -> Iterator[Named]:
    """Yields changes of how pipelines store in-flight mini-batches."""
    schedules = {pipeline.schedule for pipeline in training}
    if "Grouped" in schedules:
        yield "another schedule (PipelineSchedule.Interleaved)", _stored(now, schedule="Interleaved")
    if not any(pipeline.offload_activations for pipeline in training):
        action = "activations that wait in Streaming Memory (offload_activations=True)"
        yield action, _stored(now, offloads_activations=True)
    if schedules != {"Sequential"}:
        action = "another schedule (PipelineSchedule.Sequential: its stages never run at the same time)"
        yield action, _stored(now, schedule="Sequential")


def _stored(now: Scenario, **options: Any) -> Scenario:
    return now._replace(storage=dataclasses.replace(now.storage, **options))


class _PartitionAdvice:
    """Plans the program with its layers on other IPUs.

    Args:
        line_of: returns the user's line for an op.
    """

    def __init__(
        self, now: Scenario, plan: MemoryPlan, context: AnalysisContext, line_of: Callable[[str], str | None]
    ) -> None:
        self._now, self._plan, self._line_of = now, plan, line_of
        self._layers = Layers(now.request, context)
        self._pipeline = next(iter(find_pipelines(now.request.library.values())), None)
        self._replicas = max(1, context.storage.replicas)
        self._shards = max(1, len(plan.ipus) // self._replicas)
        self._is_keras = now.request.is_keras

    @property
    def lacks_parts(self) -> bool:
        """Returns whether the script has no parts to move yet and no way to annotate ops: a Keras model on one IPU."""
        return self._is_keras and self._pipeline is None

    def _counts(self) -> Iterator[int]:
        count = 1 << (self._shards - 1).bit_length()
        if count > 1:
            yield count
        while (count := 2 * count) * self._replicas <= _MAX_IPUS:
            yield count

    def _by_weight(self) -> float:
        """Returns the bytes needed per byte of weights: optimizer state, accumulator, pipeline gradient."""
        sums = {
            kind: sum(ipu.categories[kind] for ipu in self._plan.ipus)
            for kind in (variable_kinds.WEIGHT, variable_kinds.STATE, variable_kinds.ACCUMULATOR)
        }
        weights = sums[variable_kinds.WEIGHT]
        return sum(sums.values()) / weights + (self._pipeline is not None) if weights else 1.0

    def plan(self, full: IpuPlan, plan_with: Callable[[Scenario], MemoryPlan]) -> tuple[list[Saving], list[Group]]:
        """Lowers the program with its layers on more and more IPUs until it fits.

        If it never fits, also returns the options to combine with other changes.
        """
        found: list[Saving] = []
        counts: list[int] = []
        for count in itertools.islice(self._counts(), _MAX_PARTITIONS):
            named = self._repartitioned(count, self._now)
            planned = None if named is None else _plan_or_none(plan_with, named[1])
            if named is None or planned is None:
                break
            largest = max(ipu.peak_bytes for ipu in planned.ipus)
            found.append(Saving(named[0], full.peak_bytes - largest, planned.fits))
            if planned.fits:
                return found, []
            counts.append(count)
        most = max((partition.bytes for partition in found), default=0)
        options = [functools.partial(self._repartitioned, count) for count in counts]
        return found, [Group(options, most, moves=True)] if most > 0 else []

    def _repartitioned(self, count: int, base: Scenario) -> Named | None:
        """Returns the program with its layers on this many IPUs."""
        cut = self._partition(count, base.storage.recomputes)
        if cut is None or base.accumulates or base.request is not self._now.request:
            return None
        request = self._layers.apply(cut)
        return self._named(count, cut), base._replace(request=request, ipus=count * self._replicas)

    def _partition(self, count: int, recomputes: bool) -> Partition | None:
        slots = in_flight_mini_batches(self._pipeline, count)
        if self._pipeline is None or not (self._pipeline.training and recomputes):
            return self._layers.partition(self._by_weight(), slots)
        return self._layers.stages(self._by_weight() - 1, [slot - 1 for slot in slots], recomputes=True)

    def as_pipeline(self, full: IpuPlan) -> Sequence[Saving]:
        """Estimates the fullest stage if the script were turned into a pipeline.

        Under Sequential if it fits under no other schedule.
        """
        trains = self._layers.trains
        by_weight = self._by_weight() + float(trains)  # and what accumulates the gradients
        tried: list[Saving] = []
        for schedule in ("Grouped", "Sequential") if trains else ("Grouped",):
            for count in self._counts():
                waiting = [pipeline_schedule.fifo_slots(schedule, count, n, trains) for n in range(count)]
                cut = self._layers.stages(by_weight, waiting)
                if cut is None:
                    break
                named = self._named(count, cut, "" if schedule == "Grouped" else f", {schedule}")
                tried.append(Saving(named, full.peak_bytes - cut.bytes, cut.bytes <= full.limit_bytes))
                if tried[-1].fits:
                    return tried[-1:]
        return best(tried, 1)

    def _named(self, count: int, cut: Partition, schedule: str = "") -> str:
        begins = self._describe([self._layers.all[layer] for layer in cut.first_layers[1:]])
        part = "shard" if self._pipeline is None and not self._is_keras else "stage"
        later_parts = f"{part} 1" if count == 2 else f"{part}s 1 to {count - 1}"
        how = "ipu_shard" if part == "shard" else "model.set_pipeline_stage_assignment" if self._is_keras else "stages"
        if count == self._shards:
            ipus = f"other {part}s on the same {count} IPUs ({how})"
        elif self.lacks_parts:
            ipus = f"about, with a pipeline of {count} stages, an IPU each{schedule} (auto_select_ipus, {how})"
        else:
            ipus = f"{count} IPUs to a replica instead of {self._shards} (auto_select_ipus, {how})"
        return f"{ipus}, {later_parts} from {begins} on"

    def _describe(self, layers: Sequence[Layer]) -> str:
        """Describes layers: of Keras by name, others by first op and source line, only a few."""
        names = [layer.name if self._is_keras else layer.first for layer in layers[:_MAX_LAYERS]]
        lines = [None if self._is_keras else self._line_of(layer.first) for layer in layers[:_MAX_LAYERS]]
        alike = len(set(lines)) == 1 and len(names) > 1
        shown = ", ".join(name if alike or line is None else f"{name} ({line})" for name, line in zip(names, lines))
        more = f" and {len(layers) - len(names)} more" if len(layers) > len(names) else ""
        return f"{shown}{more}" + (f" ({lines[0]})" if alike and lines[0] is not None else "")


def _movable(request: ProgramRequest, trains_in_pipeline: bool) -> set[str]:
    """Returns the kinds of variables whose storage the program's options can change."""
    movable = {variable_kinds.ACCUMULATOR, variable_kinds.WEIGHT} if trains_in_pipeline else set()
    if trains_in_pipeline or _accumulates(request.library.values()):
        movable.add(variable_kinds.STATE)
    return movable


def _accumulates(functions: Iterable[function_pb2.FunctionDef]) -> bool:
    """Returns whether an optimizer of the program accumulates gradients, and so has these options."""
    return any(
        vocabulary.ACCUMULATOR_ATTRIBUTE in node.attr or vocabulary.UPDATE_ATTRIBUTE in node.attr
        for function in functions
        for node in function.node_def
    )
