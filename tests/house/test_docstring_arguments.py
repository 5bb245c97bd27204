"""Each argument that a docstring describes is one of the function, and begins a line of its own."""

import ast
import re

import pytest
from syntax_trees import trees

pytestmark = pytest.mark.without_tensorflow


def described(node):
    """The names that the Args or Attributes of a function's or class's docstring may describe."""
    functions = (
        [node] if isinstance(node, ast.FunctionDef) else [f for f in node.body if getattr(f, "name", "") == "__init__"]
    )
    for function in functions:
        yield from (argument.arg for argument in (*function.args.args, *function.args.kwonlyargs))
    if isinstance(node, ast.ClassDef):
        yield from (field.target.id for field in node.body if isinstance(field, ast.AnnAssign))


def merged_entries(tree):
    """Entries that follow another one in its paragraph: (function or class, name)."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            text = ast.get_docstring(node) or ""
            if re.search(r"^(Args|Attributes):$", text, re.M):
                names = "|".join(map(re.escape, described(node)))
                yield from (
                    (node.name, name) for name in re.findall(rf"[.)`\]] +({names}):(?= |$)", text, re.M) if name
                )


def test_merged_entries_are_found():
    text = "def f(x, y):\n    '''Adds.\n\n    Args:\n        x: first. y:\n            second.\n    '''\n"
    assert list(merged_entries(ast.parse(text))) == [("f", "y")]
    assert list(merged_entries(ast.parse(text.replace(" y:\n    ", "\n        y:")))) == []


def test_each_entry_begins_a_line():
    merged = {str(path): entries for path, tree in trees().items() if (entries := list(merged_entries(tree)))}
    assert merged == {}


def undeclared_entries(tree):
    """Entries of a function's Args that are none of its arguments: (function, name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            section = re.search(r"^Args:\n((?:    .*\n?|\n)+)", ast.get_docstring(node) or "", re.M)
            names = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
            entries = re.findall(r"^    (?! )([*\w, ]+):(?= |$)", section[1], re.M) if section else []
            described_names = [name for entry in entries for name in re.findall(r"\w+", entry)]
            yield from ((node.name, name) for name in described_names if name not in names)


def test_undeclared_entries_are_found():
    text = "def f(x, **y):\n    '''Adds.\n\n    Args:\n        x: first.\n        **y: second.\n    '''\n"
    assert list(undeclared_entries(ast.parse(text))) == []
    assert list(undeclared_entries(ast.parse(text.replace("x:", "z:")))) == [("f", "z")]


def test_each_entry_is_an_argument():
    undeclared = {str(path): entries for path, tree in trees().items() if (entries := list(undeclared_entries(tree)))}
    assert undeclared == {}
