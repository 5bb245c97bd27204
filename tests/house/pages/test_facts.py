"""Figures and texts of the real thing stand on one page, `facts.md`, and whoever rests on one names its section."""

import re

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

PAGE = "docs/reference/" + "facts.md"
CITATION = re.compile(re.escape(PAGE) + r', section "([^"]+)"')


def headings():
    return re.findall(r"^## (.+)$", (ROOT / PAGE).read_text(), re.MULTILINE)


def citing_files():
    """Every text of the checkout that names the page: path and text, with each run of white space (and the sign of a
    comment at the start of a line) as one space."""
    for folder in ("tf_ipu_shim", "tests", "docs", "benchmarks", "tools"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".cc", ".h") and path != ROOT / PAGE:
                text = path.read_text()
                if PAGE in text:
                    yield path.relative_to(ROOT), re.sub(r"\s+(?:(?:#|//) )?", " ", text)


CITING = dict(citing_files())


@pytest.mark.parametrize("path", CITING, ids=str)
def test_cited_sections_exist(path):
    found = CITATION.findall(CITING[path])
    assert len(found) == CITING[path].count(PAGE), f'{path}: cite as {PAGE}, section "..."'
    assert set(found) <= set(headings())


def test_no_section_is_there_for_nothing():
    cited = {section for text in CITING.values() for section in CITATION.findall(text)}
    assert cited == set(headings())
    assert len(headings()) == len(set(headings()))


def test_nothing_cites_a_page_outside_the_repository():
    old = "FACT" + "S"
    left = [
        str(path.relative_to(ROOT))
        for folder in ("tf_ipu_shim", "tests", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".cc", ".h") and old in path.read_text()
    ]
    assert left == []
