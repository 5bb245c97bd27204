"""Each script of a fault that was found by trying (`validation/trials.csv`) has a test that CI runs."""

import ast
import csv

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

with (ROOT / "validation" / "trials.csv").open() as file:
    ROWS = list(csv.DictReader(file))


def named_tests(row):
    return [one.split("::") for one in row["tests"].split()]


def is_slow(function):
    return any(ast.unparse(one).startswith("pytest.mark.slow") for one in function.decorator_list)


@pytest.mark.parametrize("row", ROWS, ids=[row["script"] for row in ROWS])
def test_a_script_has_tests(row):
    assert named_tests(row), "no test is named"
    for file, name in named_tests(row):
        tree = ast.parse((ROOT / file).read_text())
        (function,) = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == name]
        assert not is_slow(function), f"CI leaves out {name}"


def test_scripts_are_right_or_refused_on_both_versions():
    assert len({(row["folder"], row["script"]) for row in ROWS}) == len(ROWS) > 0
    for row in ROWS:
        for version in ("2.15.1", "2.21.0"):
            assert row[f"result_{version}"].startswith(("right", "refused")), row["script"]
