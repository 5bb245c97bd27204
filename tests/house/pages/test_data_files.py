"""The data in `validation/`: a page, a tool or a test names each file, so that a reader finds it."""

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

DATA = sorted(path for path in (ROOT / "validation").rglob("*.*") if path.is_file())
TEXTS = "".join(
    path.read_text(encoding="utf-8")
    for folder in ("docs", "tools", "tests", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".md", ".py") and path.name != "test_data_files.py"
)


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.name)
def test_a_data_file_is_named(path):
    assert path.name in TEXTS
