"""Every benchmark runs once: both sides give the same outputs, and the JSON is complete. No times are judged."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from checkout import ROOT

from benchmarks import BENCHMARKS
from benchmarks.results import Result, table
from benchmarks.runner import QUICK, Call, OutputsDiffer, compare, judge, quartiles

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    path = tmp_path_factory.mktemp("benchmarks") / "results.json"
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--json", str(path)],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return json.loads(path.read_text())


def test_the_document_says_what_it_was_measured_with(document):
    assert document["quick"] is True
    assert document["cores"] == os.cpu_count()
    assert document["tensorflow"].startswith("2.")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_figures(document, name):
    results = [Result.from_json(fields) for fields in document["benchmarks"][name]]
    assert results
    assert len({result.name for result in results}) == len(results)
    for result in results:
        assert math.isfinite(result.figure) and result.low <= result.figure <= result.high
        assert result.unit in ("x", "us", "ms")
    assert all(result.name in table(results) for result in results)


def test_outputs_are_compared_before_anything_is_timed():
    class Untimed(Call):
        def seconds(self, calls):
            raise AssertionError("timed")

    with pytest.raises(OutputsDiffer, match="sum: output 1 of call 0"):
        compare("sum", Untimed(lambda: (1.0, 2.0)), Untimed(lambda: (1.0, 3.0)), QUICK, ratio=1.0)
    with pytest.raises(OutputsDiffer, match="2 outputs, the reference gives 1"):
        compare("sum", Untimed(lambda: [1.0, 2.0]), Untimed(lambda: 1.0), QUICK, ratio=1.0)
    with pytest.raises(OutputsDiffer):
        compare("sum", Untimed(lambda: np.zeros(2)), Untimed(lambda: np.zeros((2, 1))), QUICK, ratio=1.0)


def test_results_are_paired_so_that_machine_speed_cancels():
    result = judge("a", [(2.0, 1.0), (20.0, 10.0), (200.0, 100.0)], ratio=2.0)
    assert (result.figure, result.unit, result.met) == (2.0, "x", True)
    result = judge("a", [(3e-6, 1e-6), (13e-6, 10e-6), (24e-6, 20e-6)], extra_us=2.5)
    assert result.figure == pytest.approx(3.0) and result.unit == "us" and result.met is False


def test_quartiles():
    assert quartiles([1.0]) == (1.0, 1.0, 1.0)
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 3.0, 4.0)
