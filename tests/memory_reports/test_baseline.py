"""Baselines of memory: what grew since, by owner."""

import pytest

from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Mode, Value, plan_of
from tf_ipu_shim.profiling import baseline

pytestmark = pytest.mark.without_tensorflow


def plans(*sizes, chip="gc200", program="train"):
    """A program on one IPU with an argument of each size."""
    block = Block("IPU 0")
    values = [block.add(Value(size, f"x{number}", "argument")) for number, size in enumerate(sizes)]
    block.run("feed", (), values)
    block.run("sum", values, ())
    ipu = plan_of(0, block, CHIPS[chip])
    return MemoryPlan(program=program, device="/device:IPU:0", chip=CHIPS[chip].title, ipus=(ipu,))


def weights(*names, size=400):
    """Weights of `size` bytes, and one more byte for each that comes later."""
    block = Block("IPU 0")
    for number, name in enumerate(names):
        block.add(Value(size + number, name, "weight", Mode.ALWAYS))
    block.run("nothing", (), ())
    ipu = plan_of(0, block, CHIPS["gc200"])
    return MemoryPlan(program="train", device="/device:IPU:0", chip=CHIPS["gc200"].title, ipus=(ipu,))


def of(*made):
    return baseline.make_baseline({"/device:IPU:0": made})


def test_what_grew_is_named_by_owner():
    lines = baseline.find_growth(of(plans(400, 800)), of(plans(400, 1000)))
    assert [" ".join(line.split()) for line in lines] == [
        "/device:IPU:0 train, IPU 0: peak 1.17 KiB -> 1.37 KiB (+200 B, +16.7 %)",
        "+200 B argument x1 (800 B -> 1,000 B)",
    ]


def test_variables_match_whatever_tensorflow_counts_first(tmp_path):
    now = of(weights("new/kernel/0", "a/kernel/1"))
    lines = baseline.find_growth(of(weights("a/kernel/0", size=401)), now)
    assert [" ".join(line.split()) for line in lines[1:]] == ["+400 B weight new/kernel (0 B -> 400 B)"]
    old = {place: one._replace(owners={"weight a/kernel/0": 401}) for place, one in now.items()}
    baseline.write_baseline(old, tmp_path / "old.json")  # as files were before
    assert [one.owners for one in baseline.read_baseline(tmp_path / "old.json").values()] == [{"weight a/kernel": 401}]


@pytest.mark.parametrize(("percent", "counts"), [(0, True), (16, True), (17, False)])
def test_tolerance(percent, counts):
    assert bool(baseline.find_growth(of(plans(400, 800)), of(plans(400, 1000)), percent)) == counts


def test_what_shrinks_and_what_vanishes_passes():
    assert baseline.find_growth(of(plans(400, 800), plans(8, program="other")), of(plans(400, 100))) == []


def test_a_program_that_is_new_and_a_chip_that_is_another():
    (line,) = baseline.find_growth(of(plans(400)), of(plans(400), plans(400)))
    assert line == "/device:IPU:0 train #2, IPU 0: 400 B, and is not in the baseline"
    (line,) = baseline.find_growth(of(plans(400)), of(plans(400, chip="gc2")))
    assert line.endswith("on GC2 (Mk1), and the baseline is of GC200 (Mk2)")


def test_owners_add_up_to_the_peak():
    (figures,) = of(plans(*range(1, 200))).values()
    assert sum(figures.owners.values()) == figures.peak_bytes == sum(range(1, 200))
    lines = baseline.find_growth(
        {next(iter(of(plans(1)))): figures._replace(peak_bytes=0, owners={})}, of(plans(*range(1, 200)))
    )
    assert len(lines) == 10 and lines[-1].endswith("more")


def test_the_file_gives_what_was_written(tmp_path):
    baseline.write_baseline(of(plans(400, 800)), tmp_path / "memory.json")
    assert baseline.read_baseline(tmp_path / "memory.json") == of(plans(400, 800))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2, "programs": {}}', '{"version": 1, "programs": [1]}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "memory.json").write_text(text)
    with pytest.raises(ValueError, match=r"memory\.json is not a memory baseline: .* Write it again"):
        baseline.read_baseline(tmp_path / "memory.json")
