"""The table of docs/performance.md that `python -m benchmarks.page` makes of results."""

import pytest

from benchmarks.page import page
from benchmarks.results import Result

pytestmark = pytest.mark.without_tensorflow


def written(version, **results):
    return {
        "tensorflow": version,
        "benchmarks": {name: [result.as_json() for result in some] for name, some in results.items()},
    }


def test_a_row_has_the_figures_of_each_version_and_names_missed_targets():
    older = written(
        "2.15.1",
        import_time=[Result("import", 121.4, 110.0, 133.0, "ms", 150.0, samples=5)],
        keras_fit=[
            Result("MLP", 1.234, 1.2, 1.3, "x", 1.0, samples=9),
            Result("peak", 1.04, 1.04, 1.04, "x", 1.1),
            Result("informs", 0.5, 0.4, 0.6, "x", None, samples=9),
        ],
    )
    newer = written("2.21.0", keras_fit=[Result("MLP", 0.9, 0.8, 1.0, "x", 1.0, samples=9)])
    assert list(page([older, newer])) == [
        "|  | target | 2.15.1 | 2.21.0 |",
        "|---|---|---|---|",
        "| **Start** | | | |",
        "| import | 150 ms | 121 ms (110 to 133) |  |",
        "| **Keras `fit`, an epoch, against stock Keras** | | | |",
        "| MLP | 1.00 | 1.23 (1.20 to 1.30), missed | 0.90 (0.80 to 1.00) |",
        "| peak | 1.10 | 1.04 |  |",
        "| informs |  | 0.50 (0.40 to 0.60) |  |",
    ]
