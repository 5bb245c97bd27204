"""The page and the trace of a profile: where things are in time, and that no text of a script's breaks the page."""

import argparse
import json
import os
import re

import pytest

from tf_ipu_shim.cli import profile as command
from tf_ipu_shim.cli import report as run_options
from tf_ipu_shim.cycle_model import Computation, SyncPoint, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, ExchangeSizes, Move
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.environment import engine_options
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Value, plan_of
from tf_ipu_shim.profiling import collect, page, settings, timeline_layout, trace, writer

pytestmark = pytest.mark.without_tensorflow

CHIP = CHIPS["gc200"]
ADD = 239  # cycles of 1000 numbers: 32 a tile, three vectors a worker


def profile(name="a"):
    """An addition, then a loop of four additions."""
    block, body = Block("IPU 0"), Block("body")
    work = Computation("elementwise", f"{name}/add/Op/Add", ElementwiseSizes(1000, 2))
    body.run("b", (), (body.add(Value(4000, "b", "temporary")),), work=work._replace(name="b/add/Op/Add"))
    block.run(name, (), (block.add(Value(4000, name, "temporary")),), work=work)
    block.run("loop", (), (), (body,), True, SyncPoint(0, 4, (0,)))
    plan = MemoryPlan(program=name, device="/device:IPU:0", chip=CHIP.title, ipus=(plan_of(0, block, CHIP),))
    timeline = timeline_of({0: block}, CHIP, 1)
    facts = {"sdk": "3.4", "execution_mode": "xla"}
    return collect.make_profile(plan, {0: block}, timeline, CHIP, 1, 1, {}.get, {}, facts)


def test_iterations_of_a_loop_are_stretched():
    leaves, loops = timeline_layout.lay_out_timeline(profile())
    assert [(one.begin, one.end, one.times) for one in leaves] == [(0, ADD, 1), (ADD, 5 * ADD, 4)]
    assert [(one.begin, one.end, one.row.times) for one in loops] == [(ADD, 5 * ADD, 4)]


def test_trace():
    events = trace.make_trace(profile())["traceEvents"]
    microsecond = CHIP.clock_hz / 1e6
    drawn = {event["name"]: event for event in events if event["ph"] == "X"}
    assert drawn["a/add/Op/Add"]["dur"] == pytest.approx(ADD / microsecond)
    assert drawn["b/add/Op/Add"]["ts"] == pytest.approx(ADD / microsecond)
    assert drawn["loop (4 times)"]["dur"] == pytest.approx(4 * ADD / microsecond)
    assert {event["args"]["name"] for event in events if event["name"] == "process_name"} == {"IPU 0"}


def data(text):
    return json.loads(re.search(r"const D = (\{.*\}), F = D\.facts;", text)[1])


def test_page():
    found = data(page.render_page(profile()))
    assert [(op[0], op[3]) for op in found["ops"]] == [("a", ADD), ("b", 4 * ADD)]
    assert found["loops"] == [[[0], "loop", ADD, 5 * ADD, 4, 1, ""]]
    assert found["ipus"][0]["liveness"] == [["a", 4000], ["b", 4000], ["loop", 0]]
    assert found["error"] == pytest.approx([1 / 1.5, 1.5])  # of element-wise work


def test_ops_have_a_column_for_each_part_of_their_cycles():
    """Cycles of copies with the host were in the sum and in no column."""
    text = page.render_page(profile())
    columns = re.search(r'table\("ops", \[(.*?)\], opRows', text, re.S)[1]
    titles = re.findall(r'\["([^"]+)"', columns)
    values = re.search(r"\.map\(o => \[(.*?)\]\);", text)[1].split(", ")
    parts = dict(zip(titles, values, strict=True))
    whole = {parts[title] for title in ("compute", "exchange, sync", "host")}
    assert parts["cycles"].split(" + ") == sorted(whole)


def test_a_name_cannot_end_the_script():
    text = page.render_page(profile("</script><b>"))
    assert text.count("</script>") == 1
    assert data(text)["ops"][0][0] == "</script><b>"


def test_the_page_needs_no_network():
    text = page.render_page(profile())
    assert not re.search(r"(?:src|href)=|@import|https?://", text)


def command_line(*words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(word) for word in words]))


def test_command(tmp_path, capsys):
    writer.write_profile(profile(), tmp_path)
    html, traced = tmp_path / "p.html", tmp_path / "t.json"
    assert command_line(tmp_path, "--html", html, "--trace", traced) == 0
    out, err = capsys.readouterr()
    assert f"a: {5 * ADD:,} cycles a run" in out
    assert err.splitlines() == [f"Page: {html}", f"Trace: {traced}"]
    assert "<canvas" in html.read_text() and json.loads(traced.read_text())["traceEvents"]
    (tmp_path / "empty").mkdir()
    for missing, told in (("no", f"'{tmp_path}/no'"), ("empty", f"in the directory '{tmp_path}/empty'")):
        assert command_line(tmp_path / missing) == 2
        assert f"There is no profile {told}; expected profile.pop" in capsys.readouterr().err


@pytest.mark.parametrize("given", [".", "tf_report__*", "tf_report__1* tf_report__2* tf_report__2*", "*/profile.pop"])
def test_command_with_several_programs(tmp_path, capsys, monkeypatch, given):
    for name in ("train", "evaluate", "train"):
        writer.write_profile(profile(name), writer.make_profile_folder(tmp_path / "made", name))
    monkeypatch.chdir(tmp_path / "made")
    for number, folder in enumerate(sorted((tmp_path / "made").iterdir()), 1):
        folder.rename(f"tf_report__{min(number, 2)}_{number}")
    assert command_line(*given.split(), "--html", tmp_path / "page.html") == 0
    shown = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines() if "cycles a run" in line]
    assert sorted(shown) == ["evaluate", "train", "train"]
    assert sorted(path.name for path in tmp_path.glob("*.html")) == [
        "page.evaluate.html",
        "page.train.html",
        "page.train_2.html",
    ]


def test_open_shows_the_page(tmp_path, capsys, monkeypatch):
    writer.write_profile(profile(), tmp_path)
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert command_line(tmp_path, "--open") == 0
    assert opened == [(tmp_path / "profile.html").as_uri()] and (tmp_path / "profile.html").exists()


def asked(*words):
    parser = argparse.ArgumentParser()
    run_options.add_arguments(parser)
    return parser.parse_args(words)


def test_a_runner_asks_for_profiles_beside_what_is_set(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"debug.trace": "true", "autoReport.all": "false"}')
    monkeypatch.setenv(settings.DIRECTORY_VARIABLE, "")  # is put back after the test
    options = asked("--profile", str(tmp_path / "kept"))
    assert run_options.find_problem(options) is None
    run_options.begin_report(options)
    own = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / "own")}
    runs = {"autoReport.executionProfileProgramRunCount": "7"}
    asked_for = settings.all_settings({**engine_options.current(), **runs})
    assert asked_for == (settings.ReportSettings(tmp_path / "kept", graph=True, execution=True, runs=7),)
    both = settings.all_settings({**own, **runs, "autoReport.outputExecutionProfile": "false"})
    assert both == (
        settings.ReportSettings(tmp_path / "kept", graph=True, execution=True, runs=7),
        settings.ReportSettings(tmp_path / "own", graph=True, execution=False, runs=7),
    )
    assert len(settings.all_settings({**own, "autoReport.directory": f"{tmp_path}/own/../kept"})) == 1
    tmp_path = tmp_path / "kept"
    writer.write_profile(profile(), writer.make_profile_folder(tmp_path, "train"))
    run_options.write_reports(options)
    assert re.fullmatch(r"Profile: .*__train/profile.pop\n", capsys.readouterr().err)


def test_without_profiles_nothing_is_set(monkeypatch):
    monkeypatch.delenv(settings.DIRECTORY_VARIABLE, raising=False)
    run_options.begin_report(asked())
    assert settings.DIRECTORY_VARIABLE not in os.environ
    assert settings.all_settings({}) == ()


def test_options_that_cannot_be_read_stop_it_at_once(monkeypatch, tmp_path):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "{")
    assert "not JSON" in run_options.find_problem(asked("--profile", str(tmp_path)))


def test_trace_has_the_memory_of_each_step():
    events = trace.make_trace(profile())["traceEvents"]
    counters = [(event["ts"], event["args"]) for event in events if event["ph"] == "C"]
    microsecond = CHIP.clock_hz / 1e6
    assert [ts for ts, _ in counters[:2]] == pytest.approx([0, ADD / microsecond])
    assert [args for _, args in counters[:2]] == [{"always live": 0, "not always live": 4000}] * 2


def test_trace_has_an_arrow_for_each_copy_between_ipus():
    blocks = {ipu: Block(f"IPU {ipu}") for ipu in (0, 1)}
    sent = SyncPoint(0, computation=Computation("exchange", "sent", ExchangeSizes((Move(4000, 0, 1),)), 1))
    value = blocks[0].add(Value(4000, "a", "temporary"))
    blocks[0].run("a", (), (value,), work=Computation("elementwise", "a/add/Op/Add", ElementwiseSizes(1000, 2, 1)))
    blocks[0].run("sent", (value,), (), work=sent)
    blocks[1].run("sent", (), (blocks[1].add(Value(4000, "sent", "exchange")),), work=sent)
    plans = tuple(plan_of(ipu, block, CHIP) for ipu, block in blocks.items())
    plan = MemoryPlan(program="a", device="/device:IPU:0", chip=CHIP.title, ipus=plans)
    facts = {"sdk": "3.4", "execution_mode": "xla"}
    made = collect.make_profile(plan, blocks, timeline_of(blocks, CHIP, 2), CHIP, 2, 1, {}.get, {}, facts)
    events = trace.make_trace(made)["traceEvents"]
    begins = [event for event in events if event["ph"] == "s"]
    ends = [event for event in events if event["ph"] == "f"]
    assert [(event["id"], event["pid"], event["args"]["bytes"]) for event in begins] == [(1, 0, 4000)]
    assert [(event["id"], event["pid"]) for event in ends] == [(1, 1)] and ends[0]["ts"] > begins[0]["ts"]
    for arrow in (*begins, *ends):  # a viewer draws an arrow from a slice to a slice
        assert any(
            event["ph"] == "X" and (event["pid"], event["tid"]) == (arrow["pid"], arrow["tid"])
            and event["ts"] <= arrow["ts"] <= event["ts"] + event["dur"] + 1e-9
            for event in events
        )  # fmt: skip


def test_page_has_the_program_tree():
    found = data(page.render_page(profile()))
    assert [(parent, kind) for parent, kind, *_ in found["tree"] if parent == -1][-1] == (-1, "loop")
    assert all(node[0] < at for at, node in enumerate(found["tree"])) and found["tree_left_out"] == 0
