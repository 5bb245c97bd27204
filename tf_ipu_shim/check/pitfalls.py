"""Detects code that runs but behaves differently than IPU users expect, in TensorFlow, Keras and configurations.

Each is reported only if the files show it. Models passed to functions, and
batch sizes that a program computes, are not followed.
"""

from __future__ import annotations

import ast
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tf_ipu_shim import keras2
from tf_ipu_shim.check.scan import Scan, Use, assigned_strings, dotted_text
from tf_ipu_shim.check.sources import SourceFile
from tf_ipu_shim.errors import UnsupportedError
from tf_ipu_shim.keras2 import choice
from tf_ipu_shim.legacy.names import activation

NOT_CONFIGURED = "no configure_ipu_system"
NEEDS_TF1 = "of TensorFlow 1: run the script with `tf-ipu run --tf1`, or import tensorflow.compat.v1."
_CONFIGURE = ("configure_ipu_system", "set_ipu_config")
_USERS = ("ipu_scope", "IPUStrategy", "IPUStrategyV1", "compile", "IPUEstimator", "IPUPipelineEstimator")
_TF1 = ("Session", "placeholder", "get_variable", "ConfigProto", "variable_scope", "layers", "contrib", "app")
_MODELS = ("Sequential", "Model")
_RUNNING = ("fit", "evaluate")


class Pitfall(NamedTuple):
    """A line that may need a change: the line, a name for the problem, and its effect."""

    line: int
    name: str
    why: str


def find_pitfalls(scans: Iterable[tuple[SourceFile, Scan]]) -> Iterator[tuple[pathlib.Path, Pitfall]]:
    """Yields the pitfalls in a script's files."""
    scans = list(scans)
    uses = [use for _, scan in scans for use in scan.uses]
    if not any(not use.name.startswith(".") for use in uses):
        return  # nothing of IPUs: stock TensorFlow's ways are right
    first = _first_ipu_user(uses)
    configured = any(use.name.rpartition(".")[2] in _CONFIGURE for use in uses)
    for source, scan in scans:
        traps = [
            *_keras_pitfalls(source.tree, scan),
            *_partial_batch_pitfalls(source.tree),
            *_model_pitfalls(source.tree, scan),
            *_tf1_pitfalls(scan),
        ]
        if first is not None and first in scan.uses and not configured:
            traps.append(
                Pitfall(
                    first.line,
                    NOT_CONFIGURED,
                    "no file configures IPUs: the default device has one. Make an IPUConfig, set auto_select_ipus and "
                    "call configure_ipu_system() before the first use.",
                )
            )
        for trap in traps:
            yield source.path, trap


def _first_ipu_user(uses: list[Use]) -> Use | None:
    return next((use for use in uses if use.call and use.name.rpartition(".")[2] in _USERS), None)


def _keras_pitfalls(tree: ast.Module, scan: Scan) -> Iterator[Pitfall]:
    """Yields uses of Keras 3, which does not support IPUs: selected by the file, by the environment, or by default."""
    variable = choice.ENVIRONMENT_VARIABLE
    message = "models of Keras 3 are refused in a strategy's scope, because Keras 3 does not support IPUs"
    for line, setting in assigned_strings(tree, variable):
        if _selects_keras3(setting):
            yield Pitfall(
                line, "Keras 3 chosen", f"{variable}={setting} chooses Keras 3: {message}. Set it to 1 or unset it."
            )
    for node in _nodes_of_type(tree, (ast.Import, ast.ImportFrom)):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        is_keras = any(name.partition(".")[0] == "keras" and not name.startswith("keras.ipu") for name in names)
        if is_keras or "keras" in scan.aliases and any(name.startswith("tensorflow") for name in names):
            yield from _external_keras_choice(node.lineno, is_keras, message)


def _external_keras_choice(line: int, is_keras: bool, message: str) -> Iterator[Pitfall]:
    """Describes why Keras 3 is selected outside the file, which imports `keras` or uses TensorFlow's."""
    variable = choice.ENVIRONMENT_VARIABLE
    try:
        keras2.root()
    except UnsupportedError as error:
        yield Pitfall(line, "Keras 3 chosen", str(error))
        return
    if choice.is_separate_package() and not activation.is_requested() and (is_keras or variable not in os.environ):
        yield Pitfall(
            line,
            "Keras 3 chosen",
            f"{activation.ENVIRONMENT_VARIABLE}=stock in the environment keeps Keras 3: {message}. Unset it.",
        )
        return
    setting = os.environ.get(variable, "1")
    if _selects_keras3(setting):
        yield Pitfall(
            line, "Keras 3 chosen", f"{variable}={setting} in the environment chooses Keras 3: {message}. Unset it."
        )


def _selects_keras3(value: str) -> bool:
    """Returns whether a value of the environment variable selects Keras 3, if TensorFlow includes it."""
    return value not in choice.CHOSEN and not keras2.has_engine("keras.src")


def _partial_batch_pitfalls(tree: ast.Module) -> Iterator[Pitfall]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        positional = {"batch": 2, "padded_batch": 4}.get(node.func.attr)
        if positional is None or not (node.args or node.keywords) or len(node.args) >= positional:
            continue
        words = {word.arg: word.value for word in node.keywords}
        value = words.get("drop_remainder")
        if None not in words and (value is None or isinstance(value, ast.Constant) and not value.value):
            yield Pitfall(
                node.func.end_lineno or node.lineno,
                "batch without drop_remainder",
                "the last batch may be smaller, so that its size is not known when a program is compiled; an infeed "
                f"refuses such a dataset. Write .{node.func.attr}(..., drop_remainder=True).",
            )


def _model_pitfalls(tree: ast.Module, scan: Scan) -> Iterator[Pitfall]:
    """Models that the file itself makes outside every strategy's scope, and trains or evaluates."""
    strategies = {name for name, kind in scan.objects.items() if "Strategy" in kind.rpartition(".")[2]}
    scopes = list(_strategy_scopes(tree, scan, strategies))
    if not strategies and not scopes:
        return
    unscoped = _built_outside_scope(tree, scan, scopes)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _RUNNING:
            owner = dotted_text(node.func.value)
            if owner in unscoped:
                yield Pitfall(
                    unscoped[owner],
                    "model outside the scope",
                    f"{owner} is made outside the strategy's scope and line {node.lineno} calls {node.func.attr}: it "
                    "would run on the host's CPU, and is refused in the scope. Make it in `with strategy.scope():`.",
                )


def _built_outside_scope(tree: ast.Module, scan: Scan, scopes: list[ast.With]) -> dict[str, int]:
    """Returns the lines of models made outside every scope, by the name of their variable."""
    around = [*scopes, *_nodes_of_type(tree, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    inside = {id(below) for node in around for below in ast.walk(node)}  # who calls a function may be in a scope
    makers = _model_factories(tree, scan, scopes)
    constructed: dict[str, int] = {}
    for node in _nodes_of_type(tree, (ast.Assign,)):
        target = dotted_text(node.targets[0])
        if target and id(node) not in inside and _creates_model(node.value, scan, makers):
            constructed[target] = node.lineno
    return constructed


def _model_factories(tree: ast.Module, scan: Scan, scopes: list[ast.With]) -> set[str]:
    """Returns the model classes that the file defines, and its functions that create a model outside every scope."""
    makers: set[str] = set()
    for node in _nodes_of_type(tree, (ast.ClassDef,)):
        if any(_is_model(base, scan) or dotted_text(base) in makers for base in node.bases):
            makers.add(node.name)
    for node in _nodes_of_type(tree, (ast.FunctionDef,)):
        if any(below in scopes for below in ast.walk(node)):
            continue
        assigned = {
            dotted_text(assignment.targets[0]): assignment.value for assignment in _nodes_of_type(node, (ast.Assign,))
        }
        for returned in _nodes_of_type(node, (ast.Return,)):
            value = assigned.get(dotted_text(returned.value) if returned.value else None, returned.value)
            if _creates_model(value, scan, makers):
                makers.add(node.name)
    return makers


def _creates_model(value: ast.AST | None, scan: Scan, makers: set[str]) -> bool:
    return isinstance(value, ast.Call) and (_is_model(value.func, scan) or dotted_text(value.func) in makers)


def _is_model(node: ast.AST, scan: Scan) -> bool:
    kind = (scan.resolve_name(node) or "").split(".")
    return "keras" in kind and kind[-1] in _MODELS


def _nodes_of_type(tree: ast.AST, node_types: tuple[type[ast.AST], ...]) -> Iterator[Any]:
    return (node for node in ast.walk(tree) if isinstance(node, node_types))


def _strategy_scopes(tree: ast.AST, scan: Scan, strategies: set[str]) -> Iterator[ast.With]:
    """Scopes of strategies with a name, and of strategies made in the statement."""
    for node in _nodes_of_type(tree, (ast.With,)):
        for call in (item.context_expr for item in node.items):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "scope":
                continue
            owner = call.func.value
            constructor = scan.resolve_name(owner.func) or "" if isinstance(owner, ast.Call) else ""
            if dotted_text(owner) in strategies or "Strategy" in constructor.rpartition(".")[2]:
                yield node


def _tf1_pitfalls(scan: Scan) -> Iterator[Pitfall]:
    """Yields names of TensorFlow 1 that the file looks up in a TensorFlow 2 module."""
    for node in ast.walk(scan.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _TF1:
            if scan.aliases.get(node.value.id) == "tensorflow":
                yield Pitfall(node.lineno, f"tf.{node.attr}", NEEDS_TF1)
                return
