"""The documentation site: each page is in its navigation once, says its kind, and its first screen shows something."""

import re

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

NAVIGATION = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
PAGES = sorted(page for folder in ("docs", "tutorials") for page in (ROOT / folder).glob("*.md"))
# Of these the tools write all, or a table of data follows the head.
GENERATED = {"applications", "benchmarks", "conformance", "soak", "coverage", "options"} | {
    "command_line",
    "compatibility",
    "environment_variables",
    "accuracy",
    "patches",
    *(f"options_{part}" for part in ("flags", "layers", "arguments")),
    *(f"coverage_{part}" for part in ("ipu", "keras", "older")),
}
WRITTEN = [page for page in PAGES if page.stem not in GENERATED]
KINDS = {"tutorial": 2000, "how-to": 1200, "reference": 2000, "explanation": 2000}
"""Kind of a page -> its longest length in words."""
VERBS = set(
    "Add Check Choose Compare Compile Convert Estimate Find Fix Install Make Migrate Move Profile Read Run Serve "
    "Soak-test Stop Test Use".split()
)
# A reference that code cites section by section.
LONG = {"facts"}


def kind(page):
    found = re.match(r"---\ntype: ([\w-]+)\n", page.read_text())
    return found and found[1]


def test_each_page_is_in_the_navigation_once():
    shown = re.findall(r"([\w/]+\.md)$", NAVIGATION, re.MULTILINE)
    assert len(shown) == len(set(shown))
    added = {"index.md", "all_errors.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "tutorials/will_it_fit.md"}
    here = {page.name if page.parent.name == "docs" else f"tutorials/{page.name}" for page in PAGES}
    assert set(shown) - added == here


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_a_page_says_its_kind_and_is_short(page):
    assert kind(page) in KINDS
    assert page.stem in LONG or len(page.read_text().split()) <= KINDS[kind(page)]


@pytest.mark.parametrize("page", [page for page in WRITTEN if kind(page) == "how-to"], ids=lambda page: page.stem)
def test_a_how_to_shows_a_command_or_code_at_once(page):
    assert "```" in "\n".join(page.read_text().splitlines()[:25])


@pytest.mark.parametrize("page", [page for page in WRITTEN if kind(page) == "how-to"], ids=lambda page: page.stem)
def test_the_title_of_a_how_to_is_an_instruction(page):
    title = re.search(r"^# (.+)$", page.read_text(), re.MULTILINE)[1]
    assert title.split()[0] in VERBS
