"""What pages of the documentation show in a Python session is what a session shows."""

import doctest

import pytest
import tensorflow as tf
from checkout import ROOT

from tf_ipu_shim import ipu

DOCS = ROOT / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md") if "```pycon" in page.read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def nothing_configured():
    ipu.config.reset_ipu_configuration()
    yield
    ipu.config.reset_ipu_configuration()


@pytest.mark.parametrize("name", PAGES)
def test_page(name):
    text = (DOCS / name).read_text(encoding="utf-8").replace("```", "")
    page = doctest.DocTestParser().get_doctest(text, {"tf": tf}, name, str(DOCS / name), 0)
    said: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=said.append)
    assert results.attempted and not results.failed, "".join(said)


def test_there_are_pages():
    assert {"faq.md", "porting_away.md"} <= set(PAGES)
