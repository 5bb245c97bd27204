"""Loads of what is not on the chip: right before what takes it, in branches too, those in branches included."""

import pytest

from tf_ipu_shim.machine.memory import Block, Mode, Step, Value, live
from tf_ipu_shim.memory_model.walk.load_sinking import Load, sink_loads

pytestmark = pytest.mark.without_tensorflow


def used(block, number, name):
    """Two steps: what is made of a value, and is gone then."""
    made = block.add(Value(100, name, "temporary", Mode.IN_PLACE, (number,)))
    block.run(name, (number,), (made,))
    block.run(f"end of {name}", (made,), ())


def branch(count, hands_on=False):
    """Uses each of so many values that it is given, one after the other."""
    block = Block("branch")
    given = [block.add(Value(100, f"state {number}", "optimizer_state", Mode.BORROWED)) for number in range(count)]
    for number in given:
        used(block, number, f"update {number}")
    block.results = given[:1] if hands_on else []
    return block


def around(inner, given):
    """A conditional whose second branch does nothing."""
    block = Block("around")
    numbers = [block.add(value) for value in given]
    which = block.add(Value(1, "which", "temporary"))
    block.run("which", (), (which,))
    idle = Block("idle")
    idle.values = list(inner.values[: len(given)])
    block.run("conditional", (which, *numbers, *numbers), (), (inner, idle))
    return block, numbers


def loads_of(block, numbers, stored=()):
    loads = {
        number: Load(
            Step(f"load {number}", (), (number,), late=True),
            Step(f"store {number}", (), ()) if number in stored else None,
        )
        for number in numbers
    }
    sink_loads(block, 0, loads)
    return [step.owner for step in block.steps]


STATES = [Value(100, f"state {number}", "optimizer_state") for number in range(3)]


def test_each_is_brought_where_it_is_wanted():
    block = Block("update")
    numbers = [block.add(value) for value in STATES]
    for number in numbers:
        used(block, number, f"update {number}")
    order = loads_of(block, numbers)
    assert [name for name in order if name.startswith("load")] == ["load 0", "load 1", "load 2"]
    assert order.index("load 1") > order.index("end of update 0")
    assert live(block).peak_bytes == 100


def test_what_one_branch_takes_is_brought_there():
    inner = branch(3)
    block, numbers = around(inner, STATES)
    assert loads_of(block, numbers) == ["which", "conditional"]
    assert [step.owner for step in inner.steps if not step.inputs] == ["load 0", "load 1", "load 2"]
    assert not block.steps[1].inside[1].steps and block.steps[1].inputs == (3,)
    assert live(block).peak_bytes == 101


def test_what_changes_is_stored_at_the_end():
    block = Block("update")
    numbers = [block.add(value) for value in STATES]
    for number in numbers:
        used(block, number, f"update {number}")
    assert loads_of(block, numbers, stored=numbers[:2])[-2:] == ["store 0", "store 1"]
    assert live(block).peak_bytes == 100


def test_a_branch_stores_what_it_changes():
    inner = branch(3)
    block, numbers = around(inner, STATES)
    assert loads_of(block, numbers, stored=numbers) == ["which", "conditional"]
    assert [step.owner for step in inner.steps][-3:] == ["store 0", "store 1", "store 2"]


def test_so_is_what_a_branch_in_a_branch_takes():
    innermost = branch(3)
    inner, numbers = around(innermost, [value._replace(mode=Mode.BORROWED) for value in STATES])
    block, numbers = around(inner, STATES)
    assert loads_of(block, numbers) == ["which", "conditional"]
    assert [step.owner for step in innermost.steps if not step.inputs] == ["load 0", "load 1", "load 2"]
    assert live(block).peak_bytes == 102


@pytest.mark.parametrize("elsewhere", [True, False])
def test_values_used_elsewhere_or_returned_are_loaded_before(elsewhere):
    block, numbers = around(branch(3, hands_on=not elsewhere), STATES)
    if elsewhere:
        used(block, numbers[0], "other")
    order = loads_of(block, numbers)
    assert [name for name in order if name.startswith("load")] == ["load 0"]
    assert order.index("load 0") < order.index("conditional")
