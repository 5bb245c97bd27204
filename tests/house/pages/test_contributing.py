"""Commands and files that the page for contributors names exist, and `make test` runs what the page says."""

import re

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def test_targets_exist():
    named = set(re.findall(r"`make ([a-z0-9-]+)`", PAGE))
    assert named <= set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.M)) and len(named) > 5


def test_make_test_leaves_out_what_the_page_says():
    recipe = re.search(r"^test: lint\n\t(.+)$", MAKEFILE, re.M)[1]
    (row,) = re.findall(r"^\| `make test` \| (.+) \|$", PAGE, re.M)
    assert ('-m "not slow"' in recipe) == ("except the slow ones" in row)


def test_files_exist():
    named = set(re.findall(r"`((?:tf_ipu_shim|tests|docs)/[\w/.*]+)`", PAGE)) - {"tf_ipu_shim/api/ipu/x/y.py"}
    assert [name for name in sorted(named) if not list(ROOT.glob(name.rstrip("/")))] == []
    below = set(re.findall(r"`((?:api|frontend|plugin|compiler|machine|runtime|messages)/[\w/.]+)`", PAGE))
    assert [name for name in sorted(below) if not (ROOT / "tf_ipu_shim" / name.rstrip("/")).exists()] == []
    assert len(named) > 15 and len(below) > 8
