"""What is alive at every step, against sums over all values made step by step."""

import random

import pytest

from tf_ipu_shim.machine.memory import Block, Mode, Value, smallest
from tf_ipu_shim.machine.memory.curve import curve_of

pytestmark = pytest.mark.without_tensorflow


@pytest.mark.parametrize("seed", range(20))
def test_a_value_is_live_from_its_step_to_its_last_use(seed):
    chance = random.Random(seed)
    block, made = Block("random"), []
    for step in range(30):
        takes = chance.sample(made, min(len(made), chance.randrange(3)))
        number = block.add(Value(chance.randrange(1, 1000), f"op {step}", "temporary"))
        block.run(f"op {step}", takes, (number,))
        block.begin_segment()  # so that the order stays
        made.append(number)
    block.results = chance.sample(made, 3)
    ends = {
        number: 29 if number in block.results else max(
            [number, *(index for index, step in enumerate(block.steps) if number in step.inputs)]
        )
        for number in made
    }  # fmt: skip
    alive = [sum(block.values[number].bytes for number in made if number <= step <= ends[number]) for step in range(30)]
    found = curve_of(block)
    assert [point.bytes for point in found.points] == alive
    assert max(alive) == smallest(block).peak_bytes
    lifetimes = {(one.value.owner, one.first, one.last) for one in found.lifetimes}
    assert lifetimes == {(f"op {number}", number, ends[number]) for number in made}


@pytest.mark.parametrize("seed", range(30))
def test_its_highest_point_is_the_peak(seed):
    chance = random.Random(seed)

    def some(depth):
        block, made = Block("random"), []
        if depth < 2:
            made.append(block.add(Value(64, "given", "temporary", chance.choice((Mode.CARRIED, Mode.BORROWED)))))
        for step in range(chance.randrange(1, 12)):
            takes = chance.sample(made, min(len(made), chance.randrange(3)))
            mode = chance.choice((Mode.NEW, Mode.NEW, Mode.IN_PLACE, Mode.VIEW)) if takes else Mode.NEW
            of = tuple(takes) if mode is not Mode.NEW else ()
            number = block.add(Value(chance.choice((8, 64, 512)), f"op {step}", "temporary", mode, of))
            inside = [some(depth - 1) for _ in range(chance.randrange(3))] if depth else []
            block.run(f"op {step}", takes, (number,), inside, loops=chance.random() < 0.5)
            made.append(number)
        block.results = chance.sample(made, 1)
        return block

    block = some(2)
    assert max(point.bytes for point in curve_of(block).points) == smallest(block).peak_bytes


@pytest.mark.parametrize("seed", range(30))
def test_kinds_at_the_peak_are_those_of_the_plan(seed):
    """Also where a value of one kind is written in place of one of another, as an activation over a temporary."""
    chance = random.Random(seed)
    block, made = Block("random"), []
    for step in range(40):
        takes = chance.sample(made[-4:], min(len(made), chance.randrange(3)))
        mode = chance.choice((Mode.NEW, Mode.IN_PLACE)) if takes else Mode.NEW
        kind = chance.choice(("temporary", "activation", "gradient"))
        number = block.add(Value(64, f"op {step}", kind, mode, tuple(takes) if mode is Mode.IN_PLACE else ()))
        block.run(f"op {step}", takes, (number,))
        made.append(number)
    found, peak = curve_of(block), smallest(block)
    there = [point.bytes for point in found.points].index(peak.peak_bytes)
    alive = [one.value.kind for one in found.lifetimes if one.first <= there <= one.last]
    assert sorted(alive) == sorted(value.kind for value in peak.at_peak)


def test_what_is_in_a_loop_stands_on_what_is_around_it():
    body = Block("body")
    body.run("inside", (), (body.add(Value(50, "inside", "temporary")),))
    block = Block("outer")
    kept = block.add(Value(100, "kept", "temporary"))
    block.run("kept", (), (kept,))
    given = block.add(Value(7, "given", "temporary"))
    block.run("loop", (kept,), (given,), (body,), True)
    assert [(point.block.name, point.bytes) for point in curve_of(block).points] == [
        ("outer", 100),
        ("body", 157),
        ("outer", 107),
    ]
