"""The file of a profile: written, read, and what is refused."""

import json

import pytest

from tf_ipu_shim.cycle_model import Computation, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.environment import engine_options
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Mode, Value, plan_of
from tf_ipu_shim.profiling import collect, event_reports, reader, settings, writer

pytestmark = pytest.mark.without_tensorflow

CHIP = CHIPS["gc200"]
KNOWN = {"sdk": "3.4", "is_model": False}


def chain(steps):
    block = Block("IPU 0")
    last = block.add(Value(64, "w", "weight", Mode.ALWAYS))
    for step in range(steps):
        made = block.add(Value(4000, f"op {step}", "temporary"))
        work = Computation("elementwise", f"op {step}/add/Op/Add", ElementwiseSizes(1000, 2))
        block.run(f"op {step}", (last,), (made,), work=work)
        last = made
    return block


def profile(steps=3):
    blocks = {0: chain(steps)}
    plan = MemoryPlan(program="p", device="/device:IPU:0", chip=CHIP.title, ipus=(plan_of(0, blocks[0], CHIP),))
    timeline = timeline_of(blocks, CHIP, 1)
    lines = {"op 1": "train.py:7"}
    return collect.make_profile(plan, blocks, timeline, CHIP, 1, 1, lines.get, {"a": "b"}, KNOWN)


def test_what_is_written_is_read(tmp_path):
    made = profile()
    writer.write_profile(made, tmp_path)
    assert reader.read_profile(tmp_path) == reader.read_profile(tmp_path / writer.FILE) == made
    summary = json.loads((tmp_path / writer.SUMMARY).read_text())
    assert (summary["cycles"], summary["sdk"], summary["options"]) == (3 * 239, "3.4", {"a": "b"})
    assert summary["largest_variables"][0]["bytes"] == 4000


def test_records_of_a_chain():
    made = profile()
    assert [row.bytes for row in made.liveness] == [4000, 8000, 8000]
    assert [row.line for row in made.programs if row.kind == "step"] == [None, "train.py:7", None]
    assert [(row.name, row.runs, row.cycles) for row in made.compute_sets] == [
        *((f"op {step}/add/Op/Add", 1.0, 239) for step in range(3)),
        ("__seed/set/setMasterSeed", 0.0, 0),  # when a seed is set
        ("setStochasticRounding", 0.0, 0),  # before a program runs
    ]
    assert [(row.first, row.last) for row in made.variables if not row.always] == [(0, 1), (1, 2), (2, 2)]
    steps = {row.id: row for row in made.programs}
    assert [steps[row.program].op for row in made.liveness] == ["op 0", "op 1", "op 2"]


def test_reports_of_events():
    made = profile()
    graph, execution = event_reports.make_graph_report(made), event_reports.make_execution_report(made)
    assert graph["target"]["totalMemory"] == 1472 * 624 * 1024
    assert graph["computeSets"]["names"][:3] == [f"op {step}/add/Op/Add" for step in range(3)]
    memory = graph["memory"]
    assert [len(memory["byTile"][kind]) for kind in ("total", "totalIncludingGaps")] == [1472, 1472]
    assert sum(memory["byTile"]["total"]) == 64 + 8000
    assert sum(memory["liveness"]["alwaysLive"]["bytesByTile"]) == 64
    assert sum(memory["liveness"]["notAlwaysLive"]["maxBytesByTile"]) == 8000
    assert execution["simulation"]["cycles"] == 3 * 239
    assert execution["tf_ipu_shim"]["compute_sets"][0] == {"name": "op 0/add/Op/Add", "cycles": 239, "runs": 1.0}


def test_ten_thousand_steps(tmp_path):
    writer.write_profile(profile(10_000), tmp_path)
    assert len(reader.read_profile(tmp_path).liveness) == 10_000


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="autoReport.all"):
        reader.read_profile(tmp_path)
    (tmp_path / writer.FILE).write_bytes(b"no database")
    with pytest.raises(ValueError, match="Poplar's own profiler are not read"):
        reader.read_profile(tmp_path)


def test_runs_are_lines_beside_it(tmp_path):
    assert reader.read_runs(tmp_path) is None
    (tmp_path / writer.RUNS).write_text("10 20\n30 45\n50")
    assert reader.read_runs(tmp_path) == [(10, 20), (30, 45)]


@pytest.mark.parametrize(
    ("options", "graph", "execution"),
    [
        ({"autoReport.all": "true"}, True, True),
        ({"autoReport.outputGraphProfile": "true"}, True, False),
        ({"autoReport.outputExecutionProfile": "true"}, False, True),
        ({"autoReport.all": "true", "autoReport.outputGraphProfile": "false"}, False, True),
    ],
)
def test_what_is_asked_for(options, graph, execution):
    found = settings.parse_settings(options)
    assert (found.graph, found.execution, found.runs) == (graph, execution, 2)


def test_nothing_is_asked_for():
    assert settings.parse_settings({"autoReport.directory": "x", "autoReport.all": "false"}) is None
    assert all(map(engine_options.is_effective, ("autoReport.all", "autoReport.directory")))


def test_folders_do_not_collide(tmp_path):
    made = {writer.make_profile_folder(tmp_path, "a/b c") for _ in range(3)}
    assert len(made) == 3 and all(folder.name.endswith("__a_b_c") for folder in made)
