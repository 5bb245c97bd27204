"""Finds the Graphcore names that a file uses, from its syntax tree, without running it."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from tf_ipu_shim.names import finder, suggestions

CONFIGURATION = "tensorflow.python.ipu.config.IPUConfig"
_CONFIGURATIONS = (CONFIGURATION, "tensorflow.python.ipu.IPUConfig", "tensorflow.python.ipu.utils.IPUConfig")


@dataclasses.dataclass(frozen=True)
class Use:
    """One use of a Graphcore name in a file.

    Args:
        name: dotted, with Graphcore's name of the module; a method of an object that is not known begins with a dot.
    """

    line: int
    name: str
    call: ast.Call | None = None


@dataclasses.dataclass(frozen=True)
class Setting:
    """An option of a configuration that a file sets: its line and path, such as `matmuls.poplar_options`; its value."""

    line: int
    path: str
    value: ast.expr | None = None


class Scan:
    """One file: the names that it imports, and their uses.

    Example:
        >>> scan = Scan(ast.parse("from tensorflow.python import ipu\\nipu.utils.reset_ipu_seed(1)"))
        >>> [(use.line, use.name) for use in scan.uses]
        [(1, 'tensorflow.python.ipu'), (2, 'tensorflow.python.ipu.utils.reset_ipu_seed')]
    """

    def __init__(self, tree: ast.Module):
        self.tree = tree
        self.aliases: dict[str, str] = {}
        for node in ast.walk(tree):
            self._import(node)
        # Names that hold an object of a known class: the last assignment counts, as scripts seldom reuse a name.
        self.objects: dict[str, str] = {}
        self._assigned = {
            id(target): node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
                constructor, target = self.resolve_name(node.value.func), dotted_text(node.targets[0])
                if constructor and target and is_graphcore(constructor):
                    self.objects[target] = constructor
        self.uses: list[Use] = []
        self.settings: list[Setting] = []
        self.misnamed_lines = sorted({*self._misnamed(tree)})
        self._imports_of_names(tree)
        self._visit(tree)

    def resolve_name(self, node: ast.AST) -> str | None:
        """Returns the full name of a dotted expression, resolved through the imports; None for any other."""
        dotted_name = dotted_text(node)
        if dotted_name is None:
            return None
        first, _, rest = dotted_name.partition(".")
        qualified = self.aliases.get(first)
        return None if qualified is None else _canonical_name(f"{qualified}.{rest}" if rest else qualified)

    def _misnamed(self, tree: ast.Module) -> Iterator[int]:
        """Yields lines that look for Graphcore's module where it is not."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                names = [f"{self.aliases.get(node.value.id)}.{node.attr}"]
            else:
                continue
            if any(_is_below(name, suggestions.MISNAMED) for name in names):
                yield node.lineno

    def _import(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                self.aliases[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self.aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def _imports_of_names(self, tree: ast.Module) -> None:
        """The names that import statements request, which fail if missing."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*"]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            self.uses += [
                Use(node.lineno, _canonical_name(name)) for name in names if is_graphcore(_canonical_name(name))
            ]

    def _visit(self, node: ast.AST, called: ast.Call | None = None) -> None:
        if isinstance(node, (ast.Attribute, ast.Name)):
            name = self.resolve_name(node)
            if name is not None and is_graphcore(name):
                self._note(node, name, called)
                return
            dotted_name = dotted_text(node)
            if dotted_name is not None and isinstance(node, ast.Attribute):
                self._method(node, dotted_name, called)
                return
        for child in ast.iter_child_nodes(node):
            self._visit(child, node if isinstance(node, ast.Call) and child is node.func else None)

    def _note(self, node: ast.Attribute | ast.Name, name: str, called: ast.Call | None) -> None:
        # A name that holds only a package or module says nothing: what is taken from it does.
        if isinstance(node, ast.Attribute) or called is not None:
            self.uses.append(Use(node.lineno, name, called))

    def _method(self, node: ast.Attribute, dotted_name: str, called: ast.Call | None) -> None:
        """An attribute of an object: an option of a configuration, or a method."""
        parts = dotted_name.split(".")
        for length in range(len(parts) - 1, 0, -1):
            kind = self.objects.get(".".join(parts[:length]))
            if kind in _CONFIGURATIONS and isinstance(node.ctx, ast.Store):
                self.settings.append(Setting(node.lineno, ".".join(parts[length:]), self._assigned.get(id(node))))
                return
        if called is not None:
            self.uses.append(Use(node.lineno, f".{parts[-1]}", called))


def dotted_text(node: ast.AST) -> str | None:
    """The dotted name (`a.b.c`) in the file; None for other expressions.

    Example:
        >>> dotted_text(ast.parse("a.b", mode="eval").body)
        'a.b'
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def is_graphcore(name: str) -> bool:
    """Returns whether a dotted name is Graphcore's, or in a module of theirs."""
    return finder.own_name(name) is not None


def _canonical_name(name: str) -> str:
    """Returns Graphcore's name for a name that a script may also import from this package."""
    for theirs, ours in finder.ALIASES.items():
        if theirs.startswith("tf_ipu_shim.") and _is_below(name, theirs):
            return (finder.graphcore_name(ours) or theirs) + name[len(theirs) :]
    if _is_below(name, suggestions.MISNAMED):
        return finder.IPU + name.removeprefix(suggestions.MISNAMED)
    if name.startswith("tensorflow.keras.ipu"):
        return name.removeprefix("tensorflow.")
    return name


def _is_below(name: str, package: str) -> bool:
    """Returns whether a dotted name is a package's, or of something in it."""
    return name == package or name.startswith(f"{package}.")


def assigned_strings(tree: ast.Module, variable: str) -> Iterator[tuple[int, str]]:
    """Lines on which a file sets an environment variable to a literal string, and the string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            key, value = node.targets[0].slice, node.value
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setdefault" and len(node.args) == 2:
            key, value = node.args
        else:
            continue
        if isinstance(key, ast.Constant) and key.value == variable:
            string_value = _string_value(value)
            if string_value is not None:
                yield node.lineno, string_value


def _string_value(value: ast.expr) -> str | None:
    """Returns a literal string, or the string that `json.dumps` makes of a literal."""
    if isinstance(value, ast.Constant):
        return str(value.value)
    if isinstance(value, ast.Call) and (dotted_text(value.func) or "").endswith("dumps") and len(value.args) == 1:
        options = literal_value(value.args[0])
        return None if options is None else json.dumps(options)
    return None


def literal_value(value: ast.expr | None) -> Any:
    """Returns the value of a constant expression; None for any other.

    Example:
        >>> literal_value(ast.parse("{'a': 'b'}", mode="eval").body)
        {'a': 'b'}
    """
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None
