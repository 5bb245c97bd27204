"""Lists the arguments of a call, and suggests the nearest one for a keyword that it does not have."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any

from tf_ipu_shim import spelling

_SHORTEST = 6  # of a name that is looked for within another


def names_of(function: Callable[..., Any]) -> list[str] | None:
    """Returns the arguments that a call may name; None if they are not known, or any is accepted.

    Example:
        >>> names_of(lambda x, *rest, size=1: x)
        ['x', 'size']
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [parameter.name for parameter in parameters if parameter.kind in named]


def nearest(name: str, arguments: Collection[str]) -> str:
    """Returns the argument that a keyword probably means; empty if none is near.

    Example:
        >>> nearest("gradient_accumulation_reduction_method", ["name", "reduction_method"])
        'reduction_method'
    """
    long = [argument for argument in arguments if min(len(argument), len(name)) >= _SHORTEST]
    parts = [argument for argument in long if argument in name or name in argument]
    return max(parts, key=len, default="") or spelling.nearest(name, arguments) or ""


def sentence(call: str, name: str, parameters: Collection[str]) -> str:
    """Says that a call does not have an argument, and which was probably meant.

    Example:
        >>> sentence("pipeline", "repeat_cout", ["inputs", "repeat_count"])
        "pipeline() does not have the argument 'repeat_cout'. Did you mean 'repeat_count'?"
    """
    near = nearest(name, parameters)
    arguments = [argument for argument in parameters if argument != "self"]
    hint = f"Did you mean {near!r}?" if near else f"It has {', '.join(arguments) or 'none'}. Leave it out."
    return f"{call}() does not have the argument {name!r}. {hint}"
