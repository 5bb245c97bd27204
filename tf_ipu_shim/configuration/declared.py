"""Reads the options that a user's own configuration class declares in its constructor.

    class Options(_ConfigBase):
        def __init__(self):
            '''Sizes of the layers.'''
            self.sizes: typing.List[int] = []

Annotations and docstrings of attributes are not kept at run time, so they are read from the class's source once. As in
Graphcore's configurations, a docstring precedes its attribute. Without source (an interactive session) an option has
the type of its default and no docstring.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

MISSING: Any = object()


class Declaration(NamedTuple):
    """The declaration of one attribute in the source: its annotation (`MISSING` if it has none) and its docstring."""

    annotation: Any
    doc: str


@functools.cache
def read(cls: type) -> dict[str, Declaration]:
    """Returns the declarations in the constructors of a class and its bases, by attribute name."""
    declarations: dict[str, Declaration] = {}
    for base in reversed(cls.__mro__):
        constructor = base.__dict__.get("__init__")
        if inspect.isfunction(constructor):
            declarations.update(_read_constructor(constructor))
    return declarations


def _read_constructor(constructor: Any) -> Iterator[tuple[str, Declaration]]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(constructor)))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for preceding, statement in zip([None, *body], body):
            name, annotation = _target(statement)
            if name is not None:
                value = MISSING if annotation is None else _evaluate(annotation, constructor)
                yield name, Declaration(value, _text(preceding))


def _target(statement: ast.stmt) -> tuple[str | None, ast.expr | None]:
    target: ast.expr
    annotation: ast.expr | None
    if isinstance(statement, ast.AnnAssign):
        target, annotation = statement.target, statement.annotation
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, annotation = statement.targets[0], None
    else:
        return None, None
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return target.attr, annotation
    return None, None


def _evaluate(annotation: ast.expr, constructor: Any) -> Any:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    code = compile(ast.Expression(annotation), f"<annotation in {constructor.__qualname__}>", "eval")
    return eval(code, constructor.__globals__, dict(inspect.getclosurevars(constructor).nonlocals))


def _text(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        if isinstance(statement.value.value, str):
            return inspect.cleandoc(statement.value.value)
    return ""
