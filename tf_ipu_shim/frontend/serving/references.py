"""Finds the resources that Python functions reference, so that TensorFlow saves them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from tf_ipu_shim.tf_private.saved_models import base

_LIBRARIES = ("tensorflow", "keras", "tf_keras", "numpy")


def find_referenced(functions: Iterable[Any]) -> list[Any]:
    """Finds trackable objects that functions reference, directly or through other functions.

    Example:
        >>> table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0)
        >>> find_referenced([lambda text: table.lookup(text)]) == [table]
        True
    """
    referenced: list[Any] = []
    pending, seen = list(functions), set()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        function = getattr(value, "python_function", value)
        if isinstance(value, base.Trackable) and function is value:
            referenced.append(value)
        elif isinstance(value, (list, tuple)):
            pending.extend(value)
        elif isinstance(value, Mapping):
            pending.extend(value.values())
        else:
            pending.extend(_direct_references(inspect.unwrap(function) if callable(function) else function))
    return referenced


def _direct_references(function: Any) -> list[Any]:
    method = getattr(function, "__func__", function)
    if not inspect.isfunction(method) or method.__module__.partition(".")[0] in _LIBRARIES:
        return []
    variables = inspect.getclosurevars(method)
    return [getattr(function, "__self__", None), *variables.nonlocals.values(), *variables.globals.values()]
