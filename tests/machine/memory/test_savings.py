"""What actions save, by hand; the IPU has four tiles of 638,976 bytes."""

import pytest

from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Saving, Value, best, plan_of, saving_between

pytestmark = pytest.mark.without_tensorflow

TILES, LIMIT = 4, 4 * 638_976


def plan(*ipus):
    """A program; each IPU has values of these kinds and sizes, all alive at once."""
    made = []
    for number, sizes in enumerate(ipus):
        block = Block(f"IPU {number}")
        values = [block.add(Value(size, f"{kind}{size}", kind)) for kind, size in sizes]
        block.run("make", (), values)
        block.run("use", values, ())
        made.append(plan_of(number, block, CHIPS["gc200"].with_tiles(TILES)))
    return MemoryPlan(program="p", device="/device:IPU:0", chip="GC200", ipus=tuple(made))


def test_another_plan():
    before, after = plan([("fifo", LIMIT + 4000)]), plan([("stash", 4000)])
    assert saving_between(before, before.ipus[0], after, "so") == Saving("so", LIMIT, True)


def test_the_best_three():
    some = [Saving("none", 0, False), *(Saving(str(size), size, size in (2, 3)) for size in (1, 2, 3, 4, 5))]
    assert [one.action for one in best(some)] == ["3", "2", "5"]


def test_tiny_savings_are_not_named_unless_they_suffice():
    some = [Saving("much", 10_000, False), Saving("little", 90, False), Saving("enough", 2, True)]
    assert [one.action for one in best(some)] == ["enough", "much"]
