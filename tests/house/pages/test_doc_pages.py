"""What pages of the documentation show in a Python session is what a session shows."""

import doctest

import pytest
import tensorflow as tf
from checkout import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "```pycon" in page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page(path):
    text = path.read_text(encoding="utf-8").replace("```", "")
    page = doctest.DocTestParser().get_doctest(text, {"tf": tf}, path.name, str(path), 0)
    said: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=said.append)
    assert results.attempted and not results.failed, "".join(said)


def test_there_are_pages():
    assert {"faq.md", "porting_away.md"} <= {path.name for path in PAGES}
