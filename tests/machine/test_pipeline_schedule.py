"""Timetables of pipelines: slots written down by hand, the driver's FIFO formulas, and the pictures in the docs."""

import re

import pytest
from checkout import ROOT

from tf_ipu_shim import cli
from tf_ipu_shim.machine.pipelines.pipeline_schedule import SCHEDULES, PipelineTimetable, fifo_slots, multiple_of

pytestmark = pytest.mark.without_tensorflow

PAGES = ROOT / "tutorials"

# Two stages, as many mini-batches as the schedule runs at least (three for Sequential): a string a slot, "forward of
# IPU 0, backward of IPU 0 / the same for IPU 1", a dash where nothing is done.
BY_HAND = {
    "Grouped": ["0- --", "1- 0-", "2- 10", "30 21", "-1 32", "-2 -3", "-3 --"],
    "Interleaved": ["0- --", "-- 0-", "1- -0", "-0 1-", "-- -1", "-1 --"],
    "Sequential": ["0- --", "-- 0-", "-- -0", "-0 --", "1- --", "-- 1-", "-- -1", "-1 --"],
}


def as_by_hand(timetable):
    slots = [[["-", "-"] for _ in range(timetable.stages)] for _ in range(timetable.slots)]
    for work in timetable.work():
        assert slots[work.slot][work.stage][work.backward] == "-", "one mini-batch at a time in each direction"
        slots[work.slot][work.stage][work.backward] = str(work.mini_batch)
    return [" ".join("".join(stage) for stage in slot) for slot in slots]


@pytest.mark.parametrize(("schedule", "stage_times"), [("Grouped", 10), ("Interleaved", 6), ("Sequential", 8)])
def test_two_stages(schedule, stage_times):
    count = {"Grouped": 4, "Interleaved": 2, "Sequential": 2}[schedule]
    timetable = PipelineTimetable(schedule=schedule, stages=2, mini_batches=count)
    assert as_by_hand(timetable) == BY_HAND[schedule]
    assert timetable.stage_times == stage_times
    assert timetable.idle_share == pytest.approx(1 - 2 * count / stage_times)


def test_inference():
    grouped = PipelineTimetable(schedule="Grouped", stages=2, mini_batches=2, training=False)
    assert as_by_hand(grouped) == ["0- --", "1- 0-", "-- 1-"]
    assert as_by_hand(PipelineTimetable(schedule="Sequential", stages=2, mini_batches=2, training=False)) == [
        "0- --",
        "-- 0-",
        "1- --",
        "-- 1-",
    ]
    assert fifo_slots("Grouped", 2, 0, training=False) == 0


@pytest.mark.parametrize("stages", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_driver_s_formulas(schedule, stages):
    times = 2
    count = times * multiple_of(schedule, stages, training=True)
    timetable = PipelineTimetable(schedule=schedule, stages=stages, mini_batches=count)
    slots = {
        "Grouped": count + 2 * stages - 1,
        "Interleaved": 2 * count + 2 * stages - 2,
        "Sequential": 2 * stages * count,
    }[schedule]
    assert timetable.slots == slots
    done = {(work.stage, work.mini_batch, work.backward): work.slot for work in timetable.work()}
    assert len(done) == 2 * stages * count
    for stage in range(stages):
        there, back = ([done[stage, number, way] for number in range(count)] for way in (False, True))
        # While the first mini-batch waits for its backward stage, these go forward.
        assert fifo_slots(schedule, stages, stage, training=True) == sum(there[0] < slot < back[0] for slot in there)
    for (stage, mini_batch, backward), slot in done.items():
        # What a stage takes was made in an earlier slot: stages exchange at the end of a slot.
        if backward:
            source = (stage, mini_batch, False) if stage == stages - 1 else (stage + 1, mini_batch, True)
        else:
            source = (stage - 1, mini_batch, False)
        assert done.get(source, -1) < slot


def test_only_grouped_schedules_do_both_directions_in_a_slot():
    for schedule in ("Interleaved", "Sequential"):
        work = PipelineTimetable(schedule=schedule, stages=4, mini_batches=8).work()
        assert len({(item.slot, item.stage) for item in work}) == len(work)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mini-batches", "6"], "multiples of 8 mini-batches, not 6. Sequential runs any number"),
        (["--mini-batches", "6", "--schedule", "interleaved"], "multiples of 4 mini-batches, not 6"),
        (["--mini-batches", "6", "--inference"], "multiples of 4 mini-batches, not 6"),
        (["--mini-batches", "0", "--schedule", "sequential"], "not 0"),
        (["--stages", "0"], "at least one stage, not 0"),
    ],
)
def test_counts_that_a_schedule_does_not_run(arguments, message, capsys):
    assert cli.main(["schedule", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_command_prints_a_column_for_each_slot(capsys):
    assert cli.main(["schedule", "--stages", "2", "--mini-batches", "4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        "slot 0 1 2 3 4 5 6".split(),
        "IPU 0 F0 F1 F2 F3+B0 B1 B2 B3 U".split(),
        "IPU 1 . F0 F1+B0 F2+B1 F3+B2 B3 . U".split(),
    ]
    assert lines[4:] == [
        "7 slots, together 10 times as long as a stage. An IPU waits for 20% of that.",
        "Mini-batches that wait for their backward stage, on IPU 0 and on: 2, 0",
    ]


@pytest.mark.parametrize(("schedule", "count"), [("Grouped", 8), ("Interleaved", 8), ("Sequential", 3)])
def test_the_tutorial_s_pictures_are_what_the_command_draws(schedule, count, tmp_path, capsys):
    drawn = tmp_path / "drawn.svg"
    arguments = ["schedule", "--stages", "4", "--mini-batches", str(count), "--schedule", schedule]
    assert cli.main([*arguments, "--svg", str(drawn)]) == 0
    assert drawn.read_text() == (PAGES / f"{schedule.lower()}.svg").read_text(), f"run: tf-ipu {' '.join(arguments)}"
    # Each stage's work is drawn once, in a box that no other one covers.
    boxes = re.findall(r'<rect x="(\d+)" y="(\d+)" width="32".*\n.*>([FB]\d+|U)<', drawn.read_text())
    assert sorted(text for *_, text in boxes if text != "U") == sorted(
        f"{direction}{number}" for direction in "FB" for number in range(count) for _ in range(4)
    )
    assert len({box[:2] for box in boxes}) == len(boxes) == 8 * count + 4
    text = capsys.readouterr().out
    assert text.strip() in (PAGES / "pipelining.md").read_text(), "the page shows what the command prints"
