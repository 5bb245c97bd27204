"""Two profiles side by side: figures put down by hand, and what the command prints and writes."""

import json
import re

import pytest

from tf_ipu_shim import cli
from tf_ipu_shim.cycle_model import Computation, SyncPoint, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, HostSizes
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Mode, Value, plan_of
from tf_ipu_shim.profiling import collect, comparison, page, writer

pytestmark = pytest.mark.without_tensorflow

CHIP = CHIPS["gc200"]
ADD = 239  # cycles of 1000 numbers: 32 a tile, three vectors a worker
COPY = CHIP.cycles(0.363e-6 + 4000 * 8 / 44e9)


def profile(ops, times=4, name="train", options=None, variable="kernel"):
    """A weight of 800 bytes, a copy of 4000 bytes from the host, then a loop of additions of 4000 bytes each."""
    block, body = Block("IPU 0"), Block("body")
    weight = block.add(Value(800, variable, "weight", Mode.ALWAYS))
    fed = block.add(Value(4000, "x", "argument"))
    block.run("x", (), (fed,), work=Computation("host", "x", HostSizes(4000), 1))
    held = []
    for op in ops:
        held.append(body.add(Value(4000, op, "temporary")))
        body.run(op, (), held[-1:], work=Computation("elementwise", f"{op}/add/Op/Add", ElementwiseSizes(1000, 2)))
    body.run("all", held, ())
    block.run("loop", (weight, fed), (), (body,), True, SyncPoint(0, times, (0,)))
    plan = MemoryPlan(program=name, device="/device:IPU:0", chip=CHIP.title, ipus=(plan_of(0, block, CHIP),))
    timeline = timeline_of({0: block}, CHIP, 1)
    lines = {"a": "model.py:1", "b": "model.py:2", "c": "model.py:2"}
    facts = {"sdk": "3.4", "execution_mode": "xla"}
    return collect.make_profile(plan, {0: block}, timeline, CHIP, 1, 1, lines.get, options or {}, facts)


def test_what_grew_and_what_shrank():
    found = comparison.compare_profiles("train", profile("ab"), profile("bc", times=6, options={"debug.trace": "true"}))
    assert found.cycles[1:3] == (COPY + 8 * ADD, COPY + 12 * ADD)
    assert found.fullest[1:3] == (12_800, 12_800) == found.ipus[0][1:3] and found.fits == (True, True)
    assert {one.name: one[1:3] for one in found.categories} == {
        "weight": (800, 800), "argument": (4000, 4000), "temporary": (8000, 8000)
    }  # fmt: skip
    assert {one.name: one[1:3] for one in found.kinds} == {"host": (COPY, COPY), "compute": (8 * ADD, 12 * ADD)}
    assert found.op_cycles == [
        ("c", 0, 6 * ADD, "model.py:2"), ("a", 4 * ADD, 0, "model.py:1"), ("b", 4 * ADD, 6 * ADD, "model.py:2")
    ]  # fmt: skip
    assert found.op_bytes == [("a", 4000, 0, "model.py:1"), ("c", 0, 4000, "model.py:2")]
    assert found.line_cycles == [("model.py:2", 4 * ADD, 12 * ADD, ""), ("model.py:1", 4 * ADD, 0, "")]
    assert found.line_bytes == [("model.py:1", 4000, 0, ""), ("model.py:2", 4000, 8000, "")]
    assert found.facts == {"debug.trace": ("-", "true")}


def test_what_is_the_same_has_no_entry():
    found = comparison.compare_profiles("train", profile("ab"), profile("ab"))
    assert found.op_cycles == found.op_bytes == found.line_cycles == found.line_bytes == []
    assert not found.facts and not found.cycles.more


@pytest.fixture
def written(tmp_path):
    """Writes profiles into directories of their own; gives a function that does."""

    def write(directory, *profiles):
        for one in profiles:
            name = json.loads(next(row.value for row in one.facts if row.name == "program"))
            writer.write_profile(one, writer.make_profile_folder(tmp_path / directory, name))
        return str(tmp_path / directory)

    return write


def test_variables_match_whatever_tensorflow_counts_first():
    """In TensorFlow 2 a variable's name ends in the number of all variables before it."""
    found = comparison.compare_profiles("train", profile("a", variable="kernel/3"), profile("a", variable="kernel/5"))
    assert found.op_bytes == []
    found = comparison.compare_profiles("train", profile("a"), profile(["a/3"], variable="kernel/5"))
    assert [(one.name, one.more) for one in found.op_bytes] == [("a", -4000), ("a/3", 4000)]


def test_programs_of_two_directories_are_compared_by_name(written, tmp_path, capsys):
    before = written("before", profile("a"), profile("a", name="predict"))
    after = written("after", profile("a"), profile("ab"), profile("a", name="evaluate"))
    html = tmp_path / "c.html"
    assert cli.main(["compare", before, after, "--html", str(html)]) == 0
    out, err = capsys.readouterr()
    assert err == f"Page: {html}\n"
    assert "predict: only in BEFORE" in out and "evaluate: only in AFTER" in out and "train #2: only in AFTER" in out
    text = html.read_text()
    assert not re.search(r"(?:src|href)=|@import|https?://|/\*(?:DATA|STYLE|COMMON)\*/", text)
    data = json.loads(re.search(r"const D = (\{.*\});", text)[1])
    assert [one["program"] for one in data["programs"]] == ["train"]
    assert (data["gone"], data["new"]) == (["predict"], ["train #2", "evaluate"])


def test_two_single_programs_are_compared_whatever_their_names(written, capsys):
    before, after = written("before", profile("a", name="f")), written("after", profile("ab", name="g"))
    assert cli.main(["compare", before, after]) == 0
    out = capsys.readouterr().out
    assert re.search(rf"\+{4 * ADD:,}  b \(0 -> {4 * ADD:,}\), model\.py:2", out)
    assert re.search(rf"cycles a run +{COPY + 4 * ADD:,} +{COPY + 8 * ADD:,}  \+", out)


def test_columns_are_as_wide_as_their_figures(written, capsys):
    """A row that is wider than the terminal would be cut, and its last figure with it."""
    assert cli.main(["compare", written("before", profile("a")), written("after", profile("ab"))]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if re.search(r" (=|new|[+-][\d.]+ %)$", line)]
    assert len(rows) > 4 and max(map(len, rows)) < 60


def test_nothing_to_compare_is_an_error(written, tmp_path, capsys):
    before = written("before", profile("a"), profile("a", name="g"))
    after = written("after", profile("a", name="h"), profile("a", name="k"))
    assert cli.main(["compare", before, after]) == 2
    assert "no name is in both" in capsys.readouterr().err
    assert cli.main(["compare", before, str(tmp_path / "no")]) == 2
    assert "There is no profile" in capsys.readouterr().err


def test_a_name_cannot_end_the_script_of_a_comparison():
    one = comparison.compare_profiles("</script><b>", profile("a"), profile("b"))
    assert page.render_comparison([one], [], [], ("</script>", "x")).count("</script>") == 1
