"""Names of tests are short enough to be read in one line of a summary."""

import ast

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

LONGEST = 60


def long_names(source):
    """Tests in a text of Python whose names are longer than `LONGEST`."""
    functions = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef))
    return [node.name for node in functions if node.name.startswith("test_") and len(node.name) > LONGEST]


def test_names_are_short():
    found = {str(path.relative_to(ROOT)): long_names(path.read_text()) for path in (ROOT / "tests").rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_long_name_is_found():
    long = "test_" + "x" * LONGEST
    assert long_names(f"def {long}(): pass\nclass A:\n  def {long[:LONGEST]}(self): pass") == [long]
