"""The rows of validation/benchmarks.csv that `python -m benchmarks.rows` makes of results."""

import csv

import pytest
from checkout import ROOT

from benchmarks.results import Result
from benchmarks.rows import COLUMNS, rows

pytestmark = pytest.mark.without_tensorflow


def written(version, **results):
    return {
        "tensorflow": version,
        "benchmarks": {name: [result.as_json() for result in some] for name, some in results.items()},
    }


def test_a_row_has_figure_quartiles_target_and_verdict():
    document = written(
        "2.15.1",
        import_time=[Result("import", 121.4, 110.0, 133.0, "ms", 150.0, samples=5)],
        keras_fit=[
            Result("MLP", 1.234, 1.2, 1.3, "x", 1.0, samples=9),
            Result("peak", 1.04, 1.04, 1.04, "x", 1.1),
            Result("informs, against a loop", 0.5, 0.4, 0.6, "x", None, samples=9),
        ],
    )
    named = ("benchmark", "name", "baseline", "figure", "low", "high", "unit", "target", "verdict", "outputs_compared")
    found = [tuple(row[name] for name in named) for row in rows(document, "a machine", "a date")]
    assert found == [
        ("import_time", "import", "", "121", "110", "133", "ms", "150", "met", "not applicable"),
        ("keras_fit", "MLP", "", "1.23", "1.20", "1.30", "x", "1.00", "missed", "yes"),
        ("keras_fit", "peak", "", "1.04", "", "", "x", "1.10", "met", "yes"),
        ("keras_fit", "informs, against a loop", "a loop", "0.50", "0.40", "0.60", "x", "", "", "yes"),
    ]


def test_rows_have_the_columns_of_the_data_file():
    with (ROOT / "validation" / "benchmarks.csv").open(newline="") as file:
        assert next(csv.reader(file)) == COLUMNS
