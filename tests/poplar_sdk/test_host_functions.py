"""Functions of the host, cycle counters and the floating-point control of programs in Poplar alone."""

import pathlib
import subprocess

import pytest
from poplar_programs import compile_program

pytestmark = pytest.mark.without_tensorflow

SOURCE = pathlib.Path(__file__).parent / "programs" / "host_cases.cpp"


@pytest.fixture(scope="module")
def facts():
    words = [str(compile_program(SOURCE, "popops", "poputil"))]
    printed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    return dict(line.split(": ", 1) for line in printed.splitlines())


def test_host_functions_get_and_give_data(facts):
    # Each replica has its own callback; results are written to a reversed view, three times.
    assert facts["y"] == "40 30 20 10 -4 -3 -2 -1"
    assert facts["n"] == "8 8"


def test_errors_of_host_functions(facts):
    assert facts["handle"].startswith("graph_object_creation_error: addHostFunction: there is a host function 'scale'")
    assert "Host function 'scale' of replica 0 is not connected" in facts["unconnected"]
    assert facts["unknown"].startswith(
        "stream_connection_error: connectHostFunction: there is no host function 'other'"
    )
    assert "'scale' of replica 2" in facts["replica"]
    assert "the arguments of host function 'scale' differ" in facts["types"]
    assert facts["throws"] == "poplar_error: refused"


def test_cycle_stamps_count_what_ran(facts):
    step = int(facts["static"])
    assert step > 0
    assert int(facts["seven"]) == 7 * step
    # Ten more iterations, each with the step and the loop's own counter.
    assert int(facts["longer"]) > 10 * step
    assert int(facts["longer"]) % 10 == 0


def test_floating_point_control_is_refused(facts):
    assert facts["behaviour"].startswith("poplar_error: setFloatingPointBehaviour failed: control of exceptions")
    assert "setStochasticRounding failed: stochastic rounding is not supported" in facts["rounding on"]
    assert facts["rounding off"] == "no exception"
