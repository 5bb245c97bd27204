"""The slots of pipelines in profiles, against the timetable that tells which mini-batch is where when."""

import collections
import itertools
import json
import re

import pva
import pytest

from tf_ipu_shim.cycle_model import Computation, SyncPoint, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, ExchangeSizes, Move
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Value, plan_of
from tf_ipu_shim.machine.pipelines.pipeline_schedule import PipelineTimetable
from tf_ipu_shim.profiling import collect, page, pipeline_timeline, trace, writer

pytestmark = pytest.mark.without_tensorflow

CHIP = CHIPS["gc200"]
STAGES, COUNT = 3, 12
SIZES = [(40_000, 80_000), (90_000, 30_000), (20_000, 50_000)]
"""Numbers that each stage adds up, forward and backward."""


def add(name, size):
    return Computation("elementwise", name, ElementwiseSizes(size, 2))


def bodies(training, labels=False):
    """A mini-batch: each stage forward, an exchange after it, and back again; stage s is on IPU s.

    The last one may take labels before all that, long before it has what it needs them for.
    """
    made = [Block(f"IPU {ipu}") for ipu in range(STAGES)]
    values = [() for _ in made]
    keys = itertools.count(1)

    def step(ipu, name, work):
        given = (made[ipu].add(Value(4, name, "temporary")),)
        made[ipu].run(name, values[ipu], given, work=work)
        values[ipu] = given

    def run(stage, name, size):
        step(stage, name, add(name, size))

    def exchange(source, target):
        moved = Computation("exchange", f"{source} to {target}", ExchangeSizes((Move(4096, source, target),)), 1)
        key = next(keys)
        for ipu in (source, target):
            step(ipu, "exchange", SyncPoint(key, computation=moved))

    if labels:
        run(STAGES - 1, "labels", 4)
    for stage in range(STAGES):
        run(stage, f"F{stage}", SIZES[stage][0])
        if stage < STAGES - 1:
            exchange(stage, stage + 1)
    for stage in reversed(range(STAGES) if training else ()):
        run(stage, f"B{stage}", SIZES[stage][1])
        if stage:
            exchange(stage, stage - 1)
    return made


def profile_of(schedule, training, outer=1, labels=False):
    blocks = {}
    for ipu, body in enumerate(bodies(training, labels)):
        block, around = Block(f"IPU {ipu}"), Block("around")
        work = SyncPoint(0, COUNT, (0,), schedule=schedule, stages=STAGES, training=training)
        around.run("pipeline", (), (), (body,), True, work)
        block.run("loop", (), (), (around,), True, SyncPoint(99, outer, (0,)))
        blocks[ipu] = block
    plans = tuple(plan_of(ipu, block, CHIP) for ipu, block in blocks.items())
    plan = MemoryPlan(program="train", device="/device:IPU:0", chip=CHIP.title, ipus=plans)
    facts = {"sdk": "3.4", "execution_mode": "xla", "stages": [[stage] for stage in range(STAGES)], "is_model": True}
    return collect.make_profile(plan, blocks, timeline_of(blocks, CHIP, STAGES), CHIP, STAGES, 1, {}.get, {}, facts)


def opened(profile, tmp_path):
    writer.write_profile(profile, tmp_path)
    (tmp_path / writer.RUNS).write_text("10 20\n")
    return pva.openReport(str(tmp_path / writer.FILE))


def schedule_of(profile):
    facts = {row.name: json.loads(row.value) for row in profile.facts}
    ((loop, found),) = pipeline_timeline.find_schedules(profile.programs, facts).items()
    return loop, found


WAYS = [("Grouped", True), ("Interleaved", True), ("Grouped", False), ("Interleaved", False)]


@pytest.mark.parametrize(("schedule", "training"), WAYS)
def test_each_stage_is_in_its_slot(schedule, training):
    loop, found = schedule_of(profile_of(schedule, training))
    table = PipelineTimetable(schedule=schedule, stages=STAGES, mini_batches=COUNT, training=training)
    expected = collections.Counter()
    for work in table.work():
        # The last stage goes back at once: what it does backward is drawn in the slot of its forward stage.
        slot = table.first_slot(STAGES - 1, False) + table.between * work.mini_batch
        here = slot if work.backward and work.stage == STAGES - 1 else work.slot
        expected[here, f"{'B' if work.backward else 'F'}{work.stage}", work.mini_batch] += 1
    seen = collections.Counter(
        (slot, turn.row.op, mini_batch)
        for slot in range(found.slots)
        for turn, mini_batch, _ in found.in_slot(slot)
        if turn.row.op != "exchange"
    )
    assert seen == expected
    assert found.loop.id == loop and found.slots * found.cycles <= found.loop.cycles + 1


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(("schedule", "training"), WAYS)
def test_no_ipu_does_two_things_at_once(schedule, training, labels):
    _, found = schedule_of(profile_of(schedule, training, labels=labels))
    busy = collections.defaultdict(list)
    for slot in range(found.slots):
        for turn, _, begin in found.in_slot(slot):
            busy[turn.ipu].append((begin, begin + turn.row.cycles))
    for intervals in busy.values():
        intervals.sort()
        assert all(end <= begin + 1e-6 for (_, end), (begin, _) in zip(intervals, intervals[1:]))
        # A slot of an interleaved pipeline is half of what an IPU does for a mini-batch: the last one may take longer.
        longer = found.cycles if schedule == "Interleaved" and training else 0
        assert intervals[-1][1] <= found.loop.cycles + longer


@pytest.mark.parametrize(("schedule", "training"), WAYS)
def test_steps_of_a_run(schedule, training, tmp_path):
    profile = profile_of(schedule, training, outer=2)
    steps = opened(profile, tmp_path).execution.runs[0].steps
    unrolled = list(steps)
    assert len(unrolled) == len(steps)
    counts = collections.Counter(step.program.name for step in unrolled)
    assert {counts[f"F{stage}"] for stage in range(STAGES)} == {2 * COUNT}
    for number, step in enumerate(unrolled):
        assert (steps[number].program, steps[number].ipus) == (step.program, step.ipus)
    facts = {row.name: json.loads(row.value) for row in profile.facts}
    ends = [step.ipus[0].activeCycles.cyclesTo.max for step in unrolled]
    last = max(max(ipu.activeCycles.cyclesTo.max for ipu in step.ipus) for step in unrolled)
    assert max(ends) <= last <= facts["cycles"] and last > 0.5 * facts["cycles"]
    # The second run of the loop is the first one, later by its length.
    firsts = [step.ipus[0].activeCycles.cyclesFrom.max for step in unrolled if step.program.name == "F0"]
    assert {later - first for first, later in zip(firsts, firsts[COUNT:])} == {facts["cycles"] // 2}


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(("schedule", "training"), WAYS)
def test_no_step_of_an_ipu_begins_before_its_last_one_ends(schedule, training, labels, tmp_path):
    """Nor an exchange, which is one step of two IPUs: on each it has a time of its own."""
    steps = opened(profile_of(schedule, training, labels=labels), tmp_path).execution.runs[0].steps
    exchanges = 0
    for ipu in range(STAGES):
        active = [(step, step.ipus[ipu].activeCycles) for step in steps if step.ipus[ipu].cycles]
        spans = sorted((when.cyclesFrom.min, when.cyclesTo.max) for _, when in active)
        assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:]))
        exchanges += sum(sum(bool(one.cycles) for one in step.ipus) == 2 for step, _ in active)
    # Two between three stages, on two IPUs each, a sync and a copy.
    assert exchanges == 2 * 2 * 2 * (2 if training else 1) * COUNT


@pytest.mark.parametrize(("schedule", "training"), WAYS)
def test_pages_and_traces_have_each_mini_batch(schedule, training):
    profile = profile_of(schedule, training, outer=2)
    events = trace.make_trace(profile)["traceEvents"]
    for stage in range(STAGES):
        begins = [event["ts"] for event in events if event["name"] == f"F{stage}"]
        assert len(begins) == COUNT and {event["pid"] for event in events if event["name"] == f"F{stage}"} == {stage}
        assert begins == sorted(begins)
    (pipeline,) = json.loads(re.search(r"const D = (.*?), F = D.facts;", page.render_page(profile))[1])["pipelines"]
    loop, found = schedule_of(profile)
    assert (pipeline["count"], pipeline["slots"], pipeline["cycles"]) == (COUNT, found.slots, found.cycles)
    # Twice the loop is drawn as one that takes twice as long.
    assert pipeline["scale"] == pytest.approx(2)
    first = [part for part in pipeline["drawn"] if part[2] == "F1"]
    assert first == [[1, "compute", "F1", 1, *first[0][4:]]]


def test_a_profile_without_pipelines_has_none():
    assert pipeline_timeline.find_schedules([], {}) == {}


def test_under_sequential_the_program_runs_as_it_stands(tmp_path):
    profile = profile_of("Sequential", True)
    facts = {row.name: json.loads(row.value) for row in profile.facts}
    assert facts["pipelines"] == {}
    steps = [step for step in opened(profile, tmp_path).execution.steps if step.program.name == "F0"]
    starts = [step.ipus[0].activeCycles.cyclesFrom.max for step in steps]
    assert len({later - first for first, later in zip(starts, starts[1:])}) == 1
