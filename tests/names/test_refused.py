"""Names that are there to refuse: every call fails, and the coverage page knows it from the same mark."""

import ast

import pytest
from checkout import ROOT

from tf_ipu_shim import errors
from tf_ipu_shim.names.not_supported_marker import not_supported, refusal_of

pytestmark = pytest.mark.without_tensorflow

PACKAGE = ROOT / "tf_ipu_shim"


@not_supported("is not emulated: no reason.")
def make(path, count=1):
    """Refused."""
    if count < 1:
        raise ValueError("count")


class Maker:
    @not_supported("is not emulated: no reason.")
    def __init__(self, path):
        self.path = path


class Child(Maker):
    def __init__(self):
        self.path = None


class Assertions:
    compare = not_supported("is about reports.")(lambda self: None)
    _private = len


class Half(Assertions):
    compare = not_supported("is about reports.")(lambda self: None)

    def works(self):
        return 1


def test_every_call_fails():
    for call in (make, Maker):
        with pytest.raises(errors.UnsupportedError, match=rf"^{call.__name__} is not emulated: no reason\.$"):
            call("a")
        with pytest.raises(TypeError, match="path"):
            call()
    with pytest.raises(ValueError, match="count"):
        make("a", 0)


def test_exception_type_of_graphcore():
    stop = not_supported("stops nothing.", NotImplementedError)(make)
    with pytest.raises(NotImplementedError, match=r"make (is not emulated|stops nothing)"):
        stop("a")
    assert refusal_of(stop) == "stops nothing."


def test_the_mark_is_on_what_refuses_and_nothing_else():
    assert refusal_of(make) == refusal_of(Maker) == "is not emulated: no reason."
    assert make.__name__ == "make"
    assert make.__doc__ == "Refused."
    assert refusal_of(Child) is None, "a class with a constructor of its own can be made"
    assert Child().path is None
    assert refusal_of(Assertions) == "is about reports."
    assert refusal_of(Half) is None
    assert Half().works() == 1
    assert refusal_of(len) is refusal_of(3) is refusal_of(errors) is None


def always_raises(function):
    """Whether no call of a function can return, as far as its statements tell."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    inside = [inner for node in body for inner in ast.walk(node)]
    return (
        bool(body)
        and isinstance(body[-1], ast.Raise)
        and not any(isinstance(n, (ast.Return, ast.Yield)) for n in inside)
    )


def unmarked(tree):
    """Functions that always raise and lack the mark, and methods that always raise `UnsupportedError`."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and always_raises(node):
            yield node.name
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and always_raises(method):
                    if "UnsupportedError" in ast.unparse(method.body[-1]):
                        yield f"{node.name}.{method.name}"


def test_a_function_that_always_raises_is_found():
    tree = ast.parse("def f():\n    '''Text.'''\n    raise E\ndef g(x):\n    if x:\n        return 1\n    raise E")
    assert list(unmarked(tree)) == ["f"]


@pytest.mark.parametrize("room", ["api", "frontend"])
def test_whatever_always_refuses_bears_the_mark(room):
    found = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for name in unmarked(ast.parse(path.read_text()))
    ]
    assert found == [], "use names.not_supported_marker"
