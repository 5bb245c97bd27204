"""The checks of text find what breaks a rule, and leave alone what does not."""

import ast
import pathlib

import pytest
from prose import exceptions, markdown, pages, ratchet, rules, sources
from prose.passages import ROOT, Finding

pytestmark = pytest.mark.without_tensorflow


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The loop runs on the IPU alone.", ["term"]),
        ("`alone` is the name of an option.", []),
        ("Read [the page](room/alone.md).", []),
        ("What a loop returns is kept.", ["headless-subject"]),
        ("What does a loop return?", ["headless-subject"]),
        ("Nothing is compiled that has no name.", ["double-negative"]),
        ("One; two; three.", ["semicolons"]),
        ("`a; b; c` is one line of code.", []),
        (" ".join(["word"] * 25) + ".", []),
        (" ".join(["word"] * 26) + ".", ["sentence-over-25"]),
        (" ".join(["word"] * 36) + ".", ["sentence-over-35"]),
        (" ".join(["word"] * 20) + ". " + " ".join(["Word"] * 20) + ".", []),
    ],
)
def test_rules_for_all_text(text, expected):
    assert [rule for rule, _ in rules.everywhere(text)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It took 12 ms.", ["figure-in-prose"]),
        ("A tile has 624 KiB.", []),
        ("Checked at 12:30.", ["record-of-work"]),
        ("Fixed in ab12cd34.", ["record-of-work"]),
        ("See `docs/explanation/memory.md`.", ["link-not-code"]),
        ("See [Memory](memory.md).", []),
    ],
)
def test_rules_for_pages(text, expected):
    assert [rule for rule, _ in rules.in_pages(text)] == expected


def test_markdown_splits_into_passages():
    text = "# Title\n\nOne\nparagraph.\n\n```\ncode alone\n```\n- item\n  goes on\n| a | b |\n|---|---|\n"
    found = [(passage.line, passage.text) for passage in markdown.passages(pathlib.Path("page.md"), text)]
    assert found == [(3, "One paragraph."), (9, "item goes on"), (11, "a"), (11, "b")]


def test_pages_as_a_whole(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n" + "word " * 2001 + "\n")
    assert [finding.rule for finding in pages.findings(page)] == [
        "sentence-over-35",
        "first-screen",
        "page-over-2000",
        "line-over-120",
    ]


def test_words_outside_code_are_counted(monkeypatch):
    text = "---\ntype: reference\n---\n# Two words\n\n- three `four`\n| five |\n|---|\n```\ncode\n```\n"
    assert pages.words(text) == 5
    assert not pages.too_many_words()
    monkeypatch.setattr(pages, "MOST_WORDS", 20_000)
    assert "at most 20000 are allowed" in pages.too_many_words()


def test_generated_pages_are_not_hand_written():
    names = {page.name for page in pages.hand_written()}
    assert {"README.md", "architecture.md", "faq.md", "pipelining.md"} <= names
    generated = {"coverage.md", "options.md", "benchmarks.md", "soak.md", "errors.md", "glossary.md"}
    assert not names & generated and generated <= {page.name for page in pages.generated()}


SOURCE = '''
"""A module alone.

Example:
    >>> alone
    alone
"""


def function(value):
    """Does it.

    Args:
        value: of the thing alone.
    """
    raise ValueError(f"The value {value} " "is alone in the room.")


parser.add_argument("--it", help="whether it is to be alone")
name = "alone"  # the loop
# that stands alone
'''


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("docstrings", ["A module alone.", "Does it.", "of the thing alone."]),
        ("messages", ["The value {} is alone in the room."]),
        ("help texts", ["whether it is to be alone"]),
    ],
)
def test_strings_of_a_source(kind, expected):
    found = sources.strings(pathlib.Path("file.py"), ast.parse(SOURCE), kind)
    assert sorted(passage.text for passage in found) == sorted(expected)


def test_comments_of_a_source():
    found = sources.comments(pathlib.Path("file.py"), SOURCE)
    assert [passage.text for passage in found] == ["the loop", "that stands alone"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("messages", ["The op {} is not in the program."]), ("comments", ["Two lines that are one."])],
)
def test_text_of_cpp(kind, expected):
    source = (
        '// Two lines\n// that are one.\nreturn Error("The op ", name(), " is not "\n    "in the program.");\nf("x");\n'
    )
    assert [passage.text for passage in sources.of_cpp(pathlib.Path("file.cc"), source, kind)] == expected


def test_arguments_and_code_in_cpp_comments():
    source = "// Sends.\n//\n//   void Send() {\n//     Go();\n//   }\n//\n//   to: where\n//     it goes\n//   x: y\n"
    found = [passage.text for passage in sources.of_cpp(pathlib.Path("file.cc"), source, "comments")]
    assert found == ["Sends.", "to: where it goes", "x: y"]


def test_a_count_above_its_limit_is_an_error():
    limits = {"messages": 2, "comments": 0}
    assert ratchet.judge({"messages": 2, "comments": 0}, limits) == []
    (line,) = ratchet.judge({"messages": 3, "comments": 0}, limits)
    assert line.startswith("messages: 3 findings, at most 2 are allowed.")


def test_limits_only_fall(tmp_path, monkeypatch):
    monkeypatch.setattr(ratchet, "LIMITS", tmp_path / "limits.tsv")
    ratchet.LIMITS.write_text("# kind\tlimit\nmessages\t4\ncomments\t4\n")
    ratchet.write_limits({"messages": 3, "comments": 5})
    assert ratchet.limits() == {"messages": 3, "comments": 4}


def test_each_exception_has_a_reason_and_allows_something():
    for one in exceptions.table():
        assert one.reason.strip() and list(ROOT.glob(one.files)), one
    finding = Finding(ROOT / "tools" / "nothing.py", 1, "term", "alone: write only")
    assert not exceptions.allow(finding)


def test_every_kind_has_a_limit():
    assert set(ratchet.limits()) == set(sources.KINDS)
