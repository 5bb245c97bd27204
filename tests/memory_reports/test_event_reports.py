"""What trace events tell of a program, where the options of SDKs up to 2.3 ask for reports."""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, scopes, utils
from tf_ipu_shim.poplar.ops import gen_ipu_ops

from tf_ipu_shim.runtime import log

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
RUNS = 5


@pytest.fixture
def warnings(monkeypatch):
    lines = []
    monkeypatch.setattr(log, "warning", lines.append)
    return lines


def reports(**options):
    """The reports of a compilation and of five runs: of `x @ w`, both of 4 x 8 and 8 x 2 float32."""
    configured = utils.create_ipu_config(profiling=True, **options)
    utils.configure_ipu_system(utils.auto_select_ipus(configured, 1))

    def network(x):
        return x @ v1.get_variable("w", [8, 2], use_resource=True)

    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x, events = v1.placeholder(tf.float32, [4, 8]), gen_ipu_ops.ipu_event_trace()
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(network, [x])
        session.run(v1.global_variables_initializer())
        session.run(events)
        for _ in range(RUNS):
            session.run(result, {x: np.ones([4, 8])})
        found = session.run(events)
    return utils.extract_compile_reports(found), utils.extract_execute_reports(found)


def test_a_compilation_and_its_first_run():
    [(name, graph)], [(of_run, execution)] = reports(profile_execution=True)
    assert name == of_run
    memory = json.loads(graph)["memory"]
    assert sum(memory["liveness"]["alwaysLive"]["bytesByTile"]) == 8 * 2 * 4
    assert sum(memory["byTile"]["total"]) >= (8 * 2 + 4 * 8 + 4 * 2) * 4
    assert any("Convolve" in name for name in json.loads(graph)["computeSets"]["names"])
    assert json.loads(execution)["simulation"]["cycles"] > 0


@pytest.mark.parametrize("every, expected", [(1, 5), (2, 3), (4, 2), (7, 1)])
def test_reports_of_some_runs(every, expected):
    _, executions = reports(profile_execution=True, report_every_nth_execution=every)
    assert len(executions) == expected
    assert len({text for _, text in executions}) == 1


def test_runs_have_none_unless_asked_for(warnings):
    compiled, executions = reports()
    assert (len(compiled), executions) == (1, [])
    assert len(warnings) == 1 and "have no execution report in them" in warnings[0]


def test_what_is_too_large_is_left_out(warnings):
    compiled, executions = reports(profile_execution=True, max_report_size=5000)
    assert (compiled, len(executions)) == ([], 1)
    assert "graph.json" in warnings[0] and "max_report_size is 5,000" in warnings[0]


def test_files_in_a_directory(tmp_path):
    [(_, graph)], [(_, execution)] = reports(profile_execution=True, report_directory=str(tmp_path))
    paths = [pathlib.Path(graph), pathlib.Path(execution)]
    assert [path.name for path in paths] == ["graph.json", "execution.json"]
    assert {path.parent.parent for path in paths} == {tmp_path}
    assert "memory" in json.loads(paths[0].read_text()) and "simulation" in json.loads(paths[1].read_text())


def test_a_directory_that_cannot_be_written(tmp_path, warnings):
    (tmp_path / "file").touch()
    [(_, graph)], _ = reports(report_directory=str(tmp_path / "file"))
    assert "memory" in json.loads(graph)
    assert "cannot be written, and are in its trace events" in warnings[0]
