"""Functions of the host alone: conversions to half, against NumPy, traces, and what is planned."""

import json
import os
import pathlib
import subprocess

import numpy
import pytest
from poplar_programs import compile_program

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

SOURCE = pathlib.Path(__file__).parents[1] / "programs" / "host_libraries.cpp"


def run(options):
    variables = {name: value for name, value in os.environ.items() if name != "PVTI_OPTIONS"}
    program = compile_program(SOURCE, "popfloat", "pvti", "poplin", "poputil")
    done = subprocess.run([program], env={**variables, **options}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), done.stderr


def test_halves_of_the_host():
    lines = run({})[0][4:]
    floats = numpy.array([0.1, -2.5, 65504, 70000, -1e9, 6e-8, 1e-9], numpy.float32)
    saturated = numpy.clip(floats, -65504, 65504).astype(numpy.float16)
    for value, half, line in zip(floats, saturated, lines):
        bits, back, with_nan = line.split()
        assert int(bits) == half.view(numpy.uint16)
        assert numpy.float32(back) == pytest.approx(float(half), rel=1e-5, abs=0)
        assert int(with_nan) == (0x7E00 if abs(value) > 65504 else half.view(numpy.uint16))


def test_products_of_a_layer_are_planned_by_pass():
    *products, refused = run({})[0][:4]
    assert products == [  # {groups, rows, depth} times {groups, depth, columns}
        "product TRAINING_FWD 2 3 4 2 4 5",
        "product TRAINING_BWD 2 3 5 2 5 4",
        "product TRAINING_WU 2 4 3 2 3 5",
    ]
    assert refused.startswith("refused Unrecognised option 'plan' of poplin::preplan.")


def test_nothing_is_traced_unless_asked():
    lines, error = run({})
    assert lines[-2:] == ["traced 00", "file "]
    assert error == ""


def test_traces_have_spans_moments_and_points(tmp_path):
    lines, _ = run({"PVTI_OPTIONS": json.dumps({"enable": "true", "directory": str(tmp_path)})})
    assert lines[-2] == "traced 10"
    (path,) = tmp_path.iterdir()
    assert lines[-1] == f"file {path}"
    events = json.loads(path.read_text())
    assert [(event["ph"], event["cat"], event["name"]) for event in events] == [
        ("B", "my channel", 'a "span"'),
        ("B", "my channel", "part"),
        ("i", "my channel", "moment"),
        ("E", "my channel", "part"),
        ("E", "my channel", 'a "span"'),
        ("C", "graph", "Throughput (paths/sec)"),
    ]
    assert events[0]["tid"] != events[2]["tid"]
    assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
    assert events[-1]["args"] == {"Samples/sec": 2.5}


def test_a_folder_that_is_missing_is_named(tmp_path):
    options = {"enable": "true", "directory": str(tmp_path / "none")}
    lines, error = run({"PVTI_OPTIONS": json.dumps(options)})
    assert lines[-1] == "file "
    assert str(tmp_path / "none") in error
