"""The trace of a profile for TensorBoard, as TensorFlow's own converters, which its profiler calls, make it."""

import argparse
import gzip
import importlib
import json

import pytest
from tensorflow.python.profiler import internal
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tf_ipu_shim.cli import profile as command
from tf_ipu_shim.cli import tensorboard
from tf_ipu_shim.cycle_model import Computation, SyncPoint, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, ExchangeSizes, Move
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Value, plan_of
from tf_ipu_shim.profiling import collect, trace, writer

CHIP = CHIPS["gc200"]
IS_2_15 = hasattr(importlib.import_module(f"{internal.__name__}._pywrap_profiler"), "xspace_to_tools_data")
CONVERTERS = importlib.import_module(f"{internal.__name__}._pywrap_profiler{'' if IS_2_15 else '_plugin'}")


@pytest.fixture
def profile():
    """Two IPUs: one adds, the other adds four times; bytes go from one to the other."""
    blocks = {ipu: Block(f"IPU {ipu}") for ipu in (0, 1)}
    work = Computation("elementwise", "a/add/Op/Add", ElementwiseSizes(1000, 2))
    sent = SyncPoint(0, computation=Computation("exchange", "sent", ExchangeSizes((Move(4000, 0, 1),)), 1))
    value = blocks[0].add(Value(4000, "a", "temporary"))
    blocks[0].run("a", (), (value,), work=work)
    blocks[0].run("sent", (value,), (), work=sent)
    blocks[1].run("sent", (), (blocks[1].add(Value(4000, "sent", "exchange")),), work=sent)
    body = Block("body")
    body.run("b", (), (body.add(Value(4000, "b", "temporary")),), work=work._replace(name="b/add/Op/Add"))
    blocks[1].run("loop", (), (), (body,), True, SyncPoint(1, 4, (0,)))
    plans = tuple(plan_of(ipu, block, CHIP) for ipu, block in blocks.items())
    plan = MemoryPlan(program="train/step", device="/device:IPU:0", chip=CHIP.title, ipus=plans)
    timeline = timeline_of(blocks, CHIP, 2)
    lines = {"a": "train.py:3, in <module>"}
    facts = {"sdk": "3.4", "execution_mode": "xla"}
    return collect.make_profile(plan, blocks, timeline, CHIP, 2, 1, lines.get, {}, facts)


def test_tensorflow_makes_the_same_trace_of_it(profile, tmp_path):
    path = tensorboard.write_log(profile, str(tmp_path))
    assert path.parent.parent == tmp_path / "plugins" / "profile" and path.parent.name.endswith("_train_step")
    options = {"resolution": "10000", "full_dma": True}
    made, is_made = CONVERTERS.xspace_to_tools_data([str(path)], "trace_viewer@", options)
    assert is_made
    shown = json.loads(made)["traceEvents"]
    events = trace.make_trace(profile)["traceEvents"]
    assert times(shown) == times(events)
    processes = {event["args"]["name"] for event in shown if event.get("name") == "process_name"}
    assert processes == {"ipu /device:CUSTOM:IPU 0", "ipu /device:CUSTOM:IPU 1"}  # behind the name of the host


def times(events):
    """Names of events with begin and end in nanoseconds."""
    drawn = [event for event in events if event.get("ph") == "X"]
    return sorted((event["name"], round(1000 * event["ts"]), round(1000 * event["dur"])) for event in drawn)


@pytest.mark.parametrize(
    ("installed", "suffix"),
    [((), ".pb"), (("tensorboard_plugin_profile",), ".gz"), (("tensorboard_plugin_profile", "xprof"), ".pb")],
)
def test_profiler_offers_no_empty_tool(profile, tmp_path, monkeypatch, installed, suffix):
    """Of a trace file it offers the trace viewer only. Which profiler is installed is told by its modules."""
    for name in installed:
        (tmp_path / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    path = tensorboard.write_log(profile, str(tmp_path / "logs"))
    assert path.suffix == suffix
    if suffix == ".gz":
        assert path.name.endswith(".trace.json.gz")  # as the profiler knows the tool
        assert json.loads(gzip.decompress(path.read_bytes())) == trace.make_trace(profile)
    else:
        kept = json.loads((path.parent / ".cached_tools.json").read_text())  # where and how xprof keeps them
        files = {path.name: f"{int(path.stat().st_mtime)}-{path.stat().st_size}"}
        assert kept == {"version": 1, "files": files, "tools": ["trace_viewer@"]}


def test_what_an_event_says(profile):
    (plane,) = [plane for plane in tensorboard.make_xspace(profile).planes if plane.name.endswith("IPU 0")]
    (line,) = [line for line in plane.lines if line.name == "compute"]
    (event,) = line.events
    assert plane.event_metadata[event.metadata_id].name == "a/add/Op/Add"
    said = {plane.stat_metadata[stat.metadata_id].name: stat.str_value or stat.double_value for stat in event.stats}
    assert said["line"] == "train.py:3, in <module>" and said["op"] == "a" and said["cycles"] == 239


def test_the_command(profile, tmp_path, capsys):
    folder = tmp_path / "report"
    folder.mkdir()
    writer.write_profile(profile, folder)
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args([str(folder), "--tensorboard", str(tmp_path / "logs")])) == 0
    (path,) = (tmp_path / "logs").glob("plugins/profile/*/*.xplane.pb")
    assert str(path) in capsys.readouterr().err
    assert len(xplane_pb2.XSpace.FromString(path.read_bytes()).planes) == 3  # two IPUs and the host
