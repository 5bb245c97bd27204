"""Builds a program's profile from its HLO computations, memory plan and timeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tf_ipu_shim.cycle_model import ERROR_FACTORS, Computation, Entry, Phase, PipelineSlots, Timeline
from tf_ipu_shim.cycle_model.sizes import ExchangeSizes, FeedSizes, HostSizes
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory import Block, MemoryPlan
from tf_ipu_shim.machine.memory.curve import curve_of
from tf_ipu_shim.machine.memory.liveness import smallest
from tf_ipu_shim.profiling import pipeline_timeline
from tf_ipu_shim.profiling.profile import (
    HOST,
    ComputeSetRow,
    ExchangeRow,
    IpuRow,
    LivenessRow,
    PairRow,
    Profile,
    ProgramRow,
    VariableRow,
)

SEEDS, ROUNDING = "__seed/set/setMasterSeed", "setStochasticRounding"
LineOf = Callable[[str], "str | None"]


def make_profile(
    plan: MemoryPlan,
    blocks: Mapping[int, Block],
    timeline: Timeline,
    chip: ChipSpec,
    num_ipus: int,
    replicas: int,
    line_of: LineOf,
    options: Mapping[str, str],
    facts: Mapping[str, Any],
) -> Profile:
    """Returns the profile of a program's first replica: the others are the same."""
    programs = _Programs(line_of)
    for entry in timeline.entries:
        programs.add(entry, -1, 1.0)
    variables, liveness = _memory(blocks, programs.of_step, line_of)
    ipus_per_replica = num_ipus // max(1, replicas)
    fields = {
        "program": plan.program,
        "device": plan.device,
        "chip": chip.name,
        "chip_title": chip.title,
        "target": chip.target,
        "tiles_per_ipu": chip.tiles,
        "bytes_per_tile": chip.bytes_per_tile,
        "clock_hz": chip.clock_hz,
        "ipus": num_ipus,
        "ipus_per_replica": ipus_per_replica,
        "replicas": replicas,
        "cycles": timeline.cycles,
        "peak_bytes": plan.peak_bytes // max(1, replicas),
        "fits": plan.fits,
        "savings": [{"action": saving.action, "bytes": saving.bytes, "fits": saving.fits} for saving in plan.savings],
        "coarse": dict(plan.coarse),
        "io_tiles": {str(ipu): block.io_tiles for ipu, block in sorted(blocks.items()) if block.io_tiles},
        "error_factors": ERROR_FACTORS,
        pipeline_timeline.FACT: programs.pipelines,
        **facts,
    }
    return Profile(
        facts=[PairRow(name, json.dumps(value)) for name, value in fields.items()],
        options=[PairRow(name, value) for name, value in sorted(options.items())],
        ipus=_ipus(plan, timeline, ipus_per_replica, chip.tiles),
        variables=variables,
        liveness=liveness,
        programs=programs.rows,
        compute_sets=[*programs.sets(), *_control_sets(len(programs.sets()), chip, facts.get("is_model", True))],
        exchanges=[ExchangeRow(source, to, size) for (source, to), size in sorted(plan.exchanges.items())],
    )


def _control_sets(first: int, chip: ChipSpec, is_model: bool) -> list[ComputeSetRow]:
    """Returns the compute sets of every program that a run of it does not execute.

    One seeds each tile. On hardware, another one sets its stochastic rounding, as `replication_normalise_test` of
    Graphcore's releases shows; its vertices are not known.
    """
    seeds = ComputeSetRow(first, SEEDS, "poprand::SetSeedSupervisor", chip.tiles, chip.tiles, 0, 0.0)
    return [seeds] if is_model else [seeds, ComputeSetRow(first + 1, ROUNDING, "", 0, 0, 0, 0.0)]


def _ipus(plan: MemoryPlan, timeline: Timeline, ipus_per_replica: int, tiles: int) -> list[IpuRow]:
    ipu_plans = {ipu.ipu: ipu for ipu in plan.ipus}
    rows = []
    for ipu_id in range(max([ipus_per_replica, *(ipu_id + 1 for ipu_id in timeline.busy)])):
        ipu = ipu_plans.get(ipu_id)
        if ipu is None:
            rows.append(IpuRow(ipu_id, 0, 0, 0, "", "{}", "{}", json.dumps([0] * tiles), 0.0))
            continue
        rows.append(
            IpuRow(
                ipu_id,
                1,
                ipu.always_live_bytes,
                ipu.not_always_live_bytes,
                ipu.largest_step,
                json.dumps(dict(ipu.categories)),
                json.dumps(dict(ipu.remote)),
                json.dumps(list(ipu.tile_bytes)),
                timeline.busy.get(ipu_id, 0.0),
            )
        )
    return rows


class _Programs:
    """Numbers the nodes of a timeline, and finds the compute sets among them.

    Attributes:
        of_step: the id of the node of a step, by block and number.
        pipelines: how the mini-batches of each pipeline follow each other, by the id of its loop.
    """

    def __init__(self, line_of: LineOf) -> None:
        self.rows: list[ProgramRow] = []
        self.of_step: dict[tuple[int, int], int] = {}
        self.pipelines: dict[int, PipelineSlots] = {}
        self._line_of = line_of
        self._lines: dict[str, str | None] = {}
        self._sets: dict[str, ComputeSetRow] = {}

    def add(
        self, entry: Entry, parent: int, times: float, op: str = "", computation: Computation | None = None
    ) -> None:
        """Adds a node with its children, the trip count of its loop, and its computation."""
        row_id, phase = len(self.rows), entry.phase
        computation = entry.computation or computation
        if entry.slots is not None:
            self.pipelines[row_id] = entry.slots
        for block, step in entry.steps:
            self.of_step[id(block), step] = row_id
            op = block.steps[step].owner
        if op not in self._lines:
            self._lines[op] = self._line_of(op) if op else None
        self.rows.append(
            ProgramRow(
                row_id,
                parent,
                entry.kind,
                entry.name,
                op,
                self._lines[op],
                json.dumps(entry.ipus),
                entry.start,
                entry.cycles,
                entry.times,
                int(entry.exact),
                phase.tiles if phase is not None else 0,
                phase.total if phase is not None else 0,
                phase.bytes if phase is not None else 0,
                phase.temporary_bytes if phase is not None else 0,
                self._compute_set(entry, phase, times) if entry.kind == "compute" and phase is not None else -1,
                entry.computation.kind if entry.computation is not None else "",
                _transfers(entry, computation),
            )
        )
        for child in entry.children:
            self.add(child, row_id, times * (entry.times if entry.kind == "loop" else 1), op, computation)

    def _compute_set(self, entry: Entry, phase: Phase, times: float) -> int:
        recorded = self._sets.get(entry.name)
        if recorded is not None:
            self._sets[entry.name] = recorded._replace(runs=recorded.runs + times)
            return recorded.id
        compute_set = ComputeSetRow(
            len(self._sets), entry.name, phase.vertex, phase.vertices, phase.tiles, entry.cycles, times
        )
        self._sets[entry.name] = compute_set
        return compute_set.id

    def sets(self) -> list[ComputeSetRow]:
        """Returns all compute sets, in the order in which they first run."""
        return list(self._sets.values())


def _transfers(entry: Entry, computation: Computation | None) -> str:
    """Returns the copies between IPUs and with the host as JSON; collectives are not included."""
    if computation is None or entry.phase is None:
        return ""
    sizes = computation.sizes
    if entry.kind == "links" and isinstance(sizes, ExchangeSizes):
        return json.dumps(sizes.moves)
    if entry.kind == "host" and isinstance(sizes, HostSizes | FeedSizes):
        (ipu,), size = entry.ipus, sizes.bytes
        return json.dumps([(size, HOST, ipu) if size > 0 else (-size, ipu, HOST)])
    return ""


def _memory(
    blocks: Mapping[int, Block], of_step: Mapping[tuple[int, int], int], line_of: LineOf
) -> tuple[list[VariableRow], list[LivenessRow]]:
    variables: list[VariableRow] = []
    liveness: list[LivenessRow] = []
    lines: dict[str, str | None] = {}

    def line(name: str) -> str | None:
        if name not in lines:
            lines[name] = line_of(name)
        return lines[name]

    for ipu, block in sorted(blocks.items()):
        curve = curve_of(block)
        last = max(0, len(curve.points) - 1)
        for value in smallest(block).always:
            variables.append(
                VariableRow(len(variables), ipu, value.owner, value.kind, value.bytes, 1, 0, last, line(value.owner))
            )
        for value, first, end in curve.lifetimes:
            variables.append(
                VariableRow(len(variables), ipu, value.owner, value.kind, value.bytes, 0, first, end, line(value.owner))
            )
        liveness.extend(
            LivenessRow(
                ipu, index, point.block.steps[point.step].owner, point.bytes,
                of_step.get((id(point.block), point.step), -1),
            )
            for index, point in enumerate(curve.points)
        )  # fmt: skip
    return variables, liveness


def leaves(profile: Profile) -> Iterator[ProgramRow]:
    """Returns the leaf nodes of a profile's program tree."""
    holders = {row.parent for row in profile.programs}
    return (row for row in profile.programs if row.id not in holders)
