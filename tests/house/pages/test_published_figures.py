"""The summary of published figures in the page of accuracy follows from the data file."""

import csv
import re

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

with (ROOT / "validation" / "published.csv").open() as table:
    ROWS = list(csv.DictReader(table))


def test_ratios_follow_from_the_figures():
    wrong = [row for row in ROWS if abs(float(row["ours"]) / float(row["published"]) / float(row["ratio"]) - 1) > 0.03]
    assert wrong == []


def test_the_page_summarises_the_rows_that_judge():
    ratios: dict[str, list[float]] = {}
    for row in ROWS:
        if row["role"].startswith("judges"):
            ratios.setdefault(row["group"], []).append(float(row["ratio"]))
    page = (ROOT / "docs/results/accuracy.md").read_text()
    found = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d\.\d\d) \| (\d\.\d\d) \|$", page, re.M)
    expected = [(group, str(len(those)), f"{min(those):.2f}", f"{max(those):.2f}") for group, those in ratios.items()]
    assert found == expected
