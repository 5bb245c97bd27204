"""Detects whether a model's code uses `PipelineStage`, which requires a symbolic trace first."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator

from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import PipelineStage

_NOT_THE_USERS = ("builtins", "keras", "tensorflow", "tf_ipu_shim", "tf_keras")


def are_named_in(kind: type) -> bool:
    """Returns whether a method of a user's class names `PipelineStage`, by whichever name the script imports it."""
    user_bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] not in _NOT_THE_USERS]
    methods = [inspect.unwrap(var) for base in user_bases for var in vars(base).values() if callable(var)]
    return any(_is_named(method) for method in methods if isinstance(method, types.FunctionType))


def _is_named(method: types.FunctionType) -> bool:
    names, closure = set(_names(method.__code__)), method.__closure__ or ()
    if PipelineStage.__name__ in names or any(method.__globals__.get(name) is PipelineStage for name in names):
        return True
    return any(_content(cell) is PipelineStage for cell in closure)


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return None


def _names(code: types.CodeType) -> Iterator[str]:
    """Yields the objects that a function's code refers to, and the functions inside it."""
    yield from (*code.co_names, *code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
