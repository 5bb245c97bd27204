"""What has its positional arguments in another order in some releases is called by name within the package."""

import ast
import functools
import pathlib

import pytest
from syntax_trees import trees

import tf_ipu_shim

pytestmark = pytest.mark.without_tensorflow

PACKAGE = pathlib.Path(tf_ipu_shim.__file__).parent
DECORATORS = ("argument_order", "accept_old_order")


@functools.cache
def reordered():
    """Functions and classes by name, each with how many arguments are in the same place in all releases."""
    found = {}

    def look(node, name):
        for decorator in getattr(node, "decorator_list", ()):
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).split(".")[-1] in DECORATORS:
                before = ast.literal_eval(decorator.args[0])
                found[name] = min(before, found.get(name, before))

    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for method in node.body:
                    name = getattr(method, "name", "")
                    look(method, node.name if name in ("__init__", "__new__") else name)
            elif isinstance(node, ast.Module):
                for function in node.body:
                    look(function, getattr(function, "name", ""))
    return found


def calls_by_position(source, names):
    """Calls in a tree, of functions of these names, with more positional arguments than are the same everywhere."""
    for node in ast.walk(source):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
        starred = any(isinstance(argument, ast.Starred) for argument in node.args)
        if name in names and (starred or len(node.args) > names[name]):
            yield ast.unparse(node)


def test_the_search_finds_what_it_should():
    names = reordered()
    assert names["IPURunConfig"] == names["reduce_scatter"] == 2 and names["set_gradient_accumulation_options"] == 1
    found = calls_by_position(ast.parse("a.f(1, 2)\nf(1)\nf(1, y=2)\nf(*x)\ng(1, 2)"), {"f": 1})
    assert list(found) == ["a.f(1, 2)", "f(*x)"]


def test_reordered_arguments_are_named():
    names = reordered()
    found = {
        f"{path.relative_to(PACKAGE)}: {call}"
        for path, tree in trees().items()
        for call in calls_by_position(tree, names)
        if not call.startswith("exporting.pipeline(")  # another function of that name
    }
    assert not found
