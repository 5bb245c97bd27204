"""The data of generated pages: the parts of the soak, and the glossary's order."""

import csv

import pytest
from checkout import ROOT


def test_every_part_of_the_soak_is_described():
    parts = pytest.importorskip("soak.parts")
    with (ROOT / "tools" / "soak" / "parts.csv").open(newline="") as file:
        described = [name for row in csv.DictReader(file) for name in row["parts"].split(", ")]
    assert sorted(described) == sorted(parts.PARTS)
