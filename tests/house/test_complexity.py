"""No function decides more than fifteen things: one that does is two."""

import ast

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

LIMIT = 15
FOLDERS = ("tf_ipu_shim", "tools", "tutorials", "benchmarks")


def complexity(function):
    """Cyclomatic complexity: 1, and one for each place where the way through the function, or inside it, divides."""
    found = 1
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.IfExp, ast.ExceptHandler, ast.Assert)):
            found += 1
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            found += 1 + bool(node.orelse)
        elif isinstance(node, ast.comprehension):
            found += 1 + len(node.ifs)
        elif isinstance(node, ast.BoolOp):
            found += len(node.values) - 1
    return found


def functions(tree):
    """The functions of a file; those inside of others are part of these."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        else:
            yield from functions(node)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("return a", 1),
        ("return a if b else c", 2),
        ("return a and b and c or d", 4),
        ("return [a for b in c if b if d for e in b]", 5),
        ("if a:\n  pass\n elif b:\n  pass\n else:\n  pass", 3),
        ("for a in b:\n  pass\n else:\n  pass", 3),
        ("try:\n  pass\n except A:\n  pass\n except B:\n  pass", 3),
        ("def inner():\n  return a or b\n return inner", 2),
    ],
)
def test_complexity(text, expected):
    (function,) = functions(ast.parse(f"def f():\n {text}"))
    assert complexity(function) == expected


def test_functions_are_simple():
    found = {
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}": complexity(function)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for function in functions(ast.parse(path.read_text()))
    }
    assert len(found) > 1000
    assert {name: count for name, count in found.items() if count > LIMIT} == {}
