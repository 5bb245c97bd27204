"""The documentation site: each page is in its navigation once, says its kind, and its first screen shows something."""

import importlib.util
import re
import sys

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

NAVIGATION = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
PAGES = sorted(page for folder in ("docs", "tutorials") for page in (ROOT / folder).rglob("*.md"))
# Of these the tools write all, or a table of data follows the head.
GENERATED = {"applications", "benchmarks", "conformance", "soak", "coverage", "options"} | {
    "command_line",
    "compatibility",
    "facts",
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


def load(path):
    """A file of the tools as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kind(page):
    found = re.match(r"---\ntype: ([\w-]+)\n", page.read_text())
    return found and found[1]


def test_each_page_is_in_the_navigation_once():
    shown = re.findall(r"([\w/]+\.md)$", NAVIGATION, re.MULTILINE)
    assert len(shown) == len(set(shown))
    added = {
        "index.md",
        "reference/all_errors.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "tutorials/will_it_fit.md",
    }
    here = {page.relative_to(ROOT).as_posix().removeprefix("docs/") for page in PAGES}
    assert set(shown) - added == here


def test_a_warning_ends_make_site():
    """MkDocs counts the warnings that it logs: with `--quiet`, strict builds pass whatever is broken."""
    (command,) = re.findall(r"mkdocs build(.*)", (ROOT / "Makefile").read_text())
    assert not {"-q", "--quiet"} & set(command.split())
    assert "\nstrict: true\n" in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_a_page_says_its_kind_and_is_short(page):
    assert kind(page) in KINDS
    assert len(page.read_text().split()) <= KINDS[kind(page)]


@pytest.mark.parametrize("page", [page for page in WRITTEN if kind(page) == "how-to"], ids=lambda page: page.stem)
def test_a_how_to_shows_a_command_or_code_at_once(page):
    assert "```" in "\n".join(page.read_text().splitlines()[:25])


@pytest.mark.parametrize("page", [page for page in WRITTEN if kind(page) == "how-to"], ids=lambda page: page.stem)
def test_the_title_of_a_how_to_is_an_instruction(page):
    title = re.search(r"^# (.+)$", page.read_text(), re.MULTILINE)[1]
    assert title.split()[0] in VERBS


def test_the_packages_own_names_have_pages():
    """Below the tab "Reference", which opens an index."""
    api_pages = load(ROOT / "tools" / "site" / "api_pages.py")
    shown = {name.rpartition(".")[2] for _, _, _, objects in api_pages.OWN.values() for name in objects}
    fixtures = re.findall(
        r"^@pytest\.fixture.*\ndef (\w+)", (ROOT / "tf_ipu_shim/pytest_plugin/__init__.py").read_text(), re.M
    )
    assert {"ipus", "ipu_strategy", "ipu_memory", "ipu_baseline"} <= set(fixtures) <= shown
    assertions = re.findall(r"^def (assert_\w+)", (ROOT / "tf_ipu_shim/testing/memory.py").read_text(), re.M)
    assert len(assertions) == 3 and {"memory_report", "TensorFile", "register_emulation", *assertions} <= shown
    assert '"Reference": ("reference/index.md"' in (ROOT / "tools" / "site" / "pages.py").read_text()


def test_a_block_of_commands_is_copied_without_prompts():
    module = load(ROOT / "tools/site/console_blocks.py")
    page = "<pre><code>$ tf-ipu run \\\n    a.py\nloss 1\n$ ls\na.py\n</code></pre><pre><code>x = 1\n</code></pre>"
    marked = module.marked(page)
    copied = re.sub(r'<span class="g[op]">.*?</span>', "", marked, flags=re.DOTALL)
    assert copied == "<pre><code>tf-ipu run \\\n    a.py\nls\n</code></pre><pre><code>x = 1\n</code></pre>"
    assert re.sub(r"</?span[^>]*>", "", marked) == page
