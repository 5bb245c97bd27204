"""Every message of an error that we raise: what is wrong and what to do, in sentences a user of the package can follow.

`docs/reference/errors.md` has those that users met first, with cause and fix; each of its phrases is in the code.
"""

import ast
import functools
import re

import error_messages
import message_parts
import pytest
from checkout import ROOT
from syntax_trees import trees

pytestmark = pytest.mark.without_tensorflow

PACKAGE = ROOT / "tf_ipu_shim"
# Files of the sources, which pip does not install, and commands that only real IPUs have.
OUT_OF_REACH = re.compile(r"(?<!in )\b(docs/\w+\.md|CONTRIBUTING\.md|README\.md|gc-info|gc-monitor)\b(?! in the)")
LONGEST = 600  # characters, without what is filled in


@functools.cache
def all_messages():
    return list(error_messages.messages())


def messages():
    return [(message.place, message.text) for message in all_messages()]


def test_messages_are_found():
    assert len(messages()) > 500


def test_messages_are_sentences():
    """Each ends as a sentence does; what begins with a small letter is a reason that another message gives."""
    wrong = [
        f"{place}: {text}"
        for place, text in messages()
        if not re.match(r"[a-z]", text) and not re.search(r"[.})`:?'\"]\s*$", text)
    ]
    assert wrong == []


def test_messages_point_to_what_is_there():
    assert [f"{place}: {text}" for place, text in messages() if OUT_OF_REACH.search(text)] == []


@functools.cache
def texts():
    """Every text that is no docstring: (place, text)."""
    return list(_texts())


def _texts():
    for path, tree in trees().items():
        unseen = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unseen:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def test_no_f_string_has_a_part_without_its_f():
    """A part of a text in several lines that lost its f shows the name in braces instead of the value."""
    parts = [
        (path, part)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
        if isinstance(part, ast.Constant)
    ]
    wrong = [f"{path.name}:{part.lineno}" for path, part in parts if re.search(r"\{[A-Za-z_][\w.]*[}!:]", part.value)]
    assert wrong == []


def test_no_text_points_to_files_that_pip_does_not_install():
    """Messages, warnings, help and descriptions of options."""
    assert [f"{place}: {text}" for place, text in texts() if re.search(r"\w+\.md\b(?! in the| there)", text)] == []


def test_the_page_of_all_errors_has_each():
    page = error_messages.page()
    assert len(page.splitlines()) > len({text for _, text in messages()})
    (text,) = (text for _, text in messages() if text.startswith("A ladder cannot be built from"))
    assert f"| `ValueError` | {text.replace('{}', '…')} |" in page
    assert all(line.count("|") - line.count("\\|") == 3 for line in page.splitlines() if line.startswith("| `"))


def test_messages_are_short():
    assert [place for place, text in messages() if len(text) > LONGEST] == []


def test_the_page_of_errors_is_about_errors_that_there_are():
    page = (ROOT / "docs/reference/errors.md").read_text()
    phrases = re.findall(r"^### `(.+)`$", page, re.M)
    assert len(phrases) >= 12
    sources = "".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text()) for path in PACKAGE.rglob("*.py"))
    sources += "".join(re.sub(r'",?\s*\n?\s*"', "", path.read_text()) for path in PACKAGE.rglob("*.cc"))
    sources += "".join(path.read_text() for path in PACKAGE.rglob("*.csv"))  # of hints
    assert [phrase for phrase in phrases if not all(part in sources for part in phrase.split(" ... "))] == []
    for part in page.split("### ")[1:]:
        assert "\nCause:" in part and "\nFix:" in part, part.splitlines()[0]


WHOLE = 0.985  # of the messages that a script's author can cause; raise it when more are whole


def test_messages_have_all_four_parts():
    """Where, received, expected and fix; the share of messages that have all of them may only rise."""
    of_authors = [message for message in all_messages() if message_parts.is_for_authors(message)]
    lacking = [message for message in of_authors if message_parts.parts(message.text) != set(message_parts.PARTS)]
    assert 1 - len(lacking) / len(of_authors) >= WHOLE, "\n".join(
        f"{message.place} lacks {set(message_parts.PARTS) - message_parts.parts(message.text)}: {message.text}"
        for message in lacking
    )


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("axis is {}; expected 0 to {}. Choose another axis.", set()),
        ("axis must be an integer, not {}. Pass an integer.", set()),
        ("axis must be an integer, not {}.", {"fix"}),
        ("axis is {}. Choose another axis.", {"expected"}),
        ("Layer must be stateful. Create it again.", {"where", "received"}),
    ],
)
def test_parts_of_a_message(text, missing):
    assert set(message_parts.PARTS) - message_parts.parts(text) == missing
