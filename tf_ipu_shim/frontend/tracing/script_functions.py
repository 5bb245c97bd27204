"""Describes a script's functions in messages by name and line, and checks that arguments fit them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def describe_function(function: Callable[..., Any]) -> str:
    """Returns a function with its line in the script.

    Example:
        >>> describe_function(len)
        '`len`'
    """
    while isinstance(function, functools.partial):
        function = function.func
    inner = inspect.unwrap(function)
    inner = getattr(inner, "python_function", inner)  # of a tf.function
    code = getattr(inner, "__code__", None) or getattr(getattr(inner, "call", None), "__code__", None)
    name = getattr(inner, "__name__", None) or type(inner).__name__
    return f"`{name}`" if code is None else f"`{name}`, defined at {code.co_filename}:{code.co_firstlineno},"


def explain_call_mismatch(
    function: Callable[..., Any], argument_count: int, keywords: Iterable[str] = ()
) -> str | None:
    """Returns why a function cannot be called with this number of arguments.

    Example:
        >>> explain_call_mismatch(lambda x, y: x, 1)
        "Missing a required argument: 'y'"
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None  # a built-in without a signature
    try:
        signature.bind(*[None] * argument_count, **dict.fromkeys(keywords))
    except TypeError as error:
        message = str(error)
        return message[:1].upper() + message[1:]
    return None
