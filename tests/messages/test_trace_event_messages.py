"""Trace events, taken apart."""

import numpy as np
import pytest
from tf_ipu_shim.ipu import utils
from tf_ipu_shim.poplar.driver import trace_pb2

pytestmark = pytest.mark.one_version

EVENT = trace_pb2.IpuTraceEvent


@pytest.fixture
def events():
    made = [EVENT(type=kind, timestamp=kind) for kind in (EVENT.COMPILE_BEGIN, EVENT.COMPILE_END, EVENT.EXECUTE)]
    made[0].compile_begin.module_name = b"cluster"
    made[1].compile_end.module_name = made[2].execute.module_name = b"cluster"
    made[1].compile_end.compilation_report = b"report"
    made[2].execute.execution_report = b"run"
    made.append(EVENT(type=EVENT.COMPILE_END))
    made[3].compile_end.poplar_graph = b"graph"
    return made


@pytest.mark.parametrize("form", [list, lambda e: np.array(e, dtype=object), lambda e: [[e[:1]], e[1:]], tuple])
def test_all_forms(events, form):
    serialised = form([event.SerializeToString() for event in events])
    assert utils.extract_all_events(serialised) == events
    assert utils.extract_all_types_from_event_trace(serialised) == [0, 1, 5, 1]


def test_reports(events):
    serialised = [event.SerializeToString() for event in events]
    assert utils.extract_compile_reports(serialised) == [("cluster", "report")]
    assert utils.extract_execute_reports(serialised) == [("cluster", "run")]
    assert utils.extract_poplar_serialized_graphs(serialised) == [("", "graph")]
    text = utils.extract_all_strings_from_event_trace(serialised)
    assert "COMPILE_END" in text and '"report"' in text


def test_events_without_a_report_say_where_there_is_one(events, monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    assert utils.extract_compile_reports([events[0].SerializeToString()]) == []
    assert "compilation report" not in capfd.readouterr().err, "nothing was compiled"
    events[1].compile_end.compilation_report = b""
    assert utils.extract_compile_reports([event.SerializeToString() for event in events[:3]]) == []
    said = capfd.readouterr().err
    assert "no compilation report in them" in said and "tf-ipu run --profile DIR" in said


def test_nothing():
    assert utils.extract_all_events([]) == []
    assert utils.extract_all_strings_from_event_trace(np.array([], dtype=object)) == ""


@pytest.mark.parametrize("wrong", ["text", 3, [1]])
def test_wrong_input(wrong):
    with pytest.raises(TypeError, match="Trace events must be serialised messages"):
        utils.extract_all_events(wrong)
