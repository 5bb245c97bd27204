"""Finds the examples of the package's docstrings, without importing anything of it."""

from __future__ import annotations

import ast
import doctest
import linecache
import os
import pathlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADINGS = ("Example:", "Examples:")


class Example(NamedTuple):
    """A docstring with something to run in it.

    Args:
        module: that it is in.
        name: of the function, class or method, with the classes around it; empty for the module itself.
        text: the docstring.
        path: of the module.
        line: where the docstring begins, from 0.
    """

    module: str
    name: str
    text: str
    path: pathlib.Path
    line: int

    def run(self, names: dict[str, Any]) -> None:
        """Runs the example; what differs from what it shows fails the test. The environment is as before then.

        Args:
            names: those that the example may use.
        """
        test = doctest.DocTestParser().get_doctest(self.text, names, str(self), str(self.path), self.line)
        for number, example in enumerate(test.examples):  # where autograph finds the source of functions
            lines = example.source.splitlines(keepends=True)
            name = f"<doctest {self}[{number}]>"
            linecache.cache[name] = (len(example.source), None, lines, name)
        runner = doctest.DebugRunner(optionflags=doctest.ELLIPSIS)
        try:
            with own_environment():
                runner.run(test, clear_globs=False)
        except doctest.DocTestFailure as failure:
            where = f"{self.path}:{self.line + failure.example.lineno + 1}"
            raise AssertionError(
                f"{where}: {failure.example.source}gave\n{failure.got}and not\n{failure.example.want}"
            ) from None
        except doctest.UnexpectedException as failure:
            raise failure.exc_info[1].with_traceback(failure.exc_info[2]) from None

    def __str__(self) -> str:
        return f"{self.module.removeprefix('tf_ipu_shim.')}:{self.name}"


@contextmanager
def own_environment() -> Iterator[None]:
    """What is done to the environment inside is undone.

    Not by `mock.patch.dict`: it empties the environment and fills it again. That moves what C's getenv reads, and
    threads of tf.data that tune a dataset read it at any time: the process ended with signal 11.
    """
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        for name, value in before.items():
            if os.environ.get(name) != value:
                os.environ[name] = value


def of(*rooms: str, but: tuple[str, ...] = ()) -> list[Example]:
    """All examples of some rooms, of the whole package if none is given.

    Args:
        *rooms: their names, such as `"machine"`.
        but: rooms that are left out.
    """
    package = ROOT / "tf_ipu_shim"
    paths = [path for room in rooms or ("",) for path in sorted((package / room).rglob("*.py"))]
    return [found for path in paths if path.relative_to(package).parts[0] not in but for found in _in(path)]


def _in(path: pathlib.Path) -> Iterator[Example]:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    source = path.read_text()
    if not any(mark in source for mark in (">>>", *HEADINGS)):  # parsing each file takes seconds
        return
    for name, node in _documented(ast.parse(source), ""):
        text = ast.get_docstring(node, clean=False)
        if text and (">>>" in text or any(line.strip() in HEADINGS for line in text.splitlines())):
            yield Example(module, name, text, path, node.body[0].lineno - 1)


def _documented(node: Any, around: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        name = "" if isinstance(node, ast.Module) else around + node.name
        yield name, node
        around = name and name + "."
    if not isinstance(node, ast.expr):
        for child in ast.iter_child_nodes(node):
            yield from _documented(child, around)
