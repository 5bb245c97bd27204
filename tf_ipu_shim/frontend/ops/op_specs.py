"""Builds the op wrappers of Graphcore's `gen_*` modules from specs: a signature, and the function that computes the op.

A wrapper's arguments are the op's inputs, then its attributes, then `name`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow.compat.v2 as tf


def op(spec: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the wrapper of an op that a function of `ipu.ops` computes from the same arguments.

    The function gets `name` if it has such an argument. Otherwise it runs in a name scope.

    Example:
        >>> ipu_scale = op("ipu_scale(input, factor=2)", lambda x, factor: x * factor)
        >>> ipu_scale(3), ipu_scale(3, factor=4)
        (6, 12)
    """
    function: Any = ast.parse(f"def {spec}: pass").body[0]
    names = [argument.arg for argument in function.args.args]
    values = [ast.literal_eval(value) for value in function.args.defaults]
    signature = op_signature([*names, "name"], {"name": None, **dict(zip(reversed(names), reversed(values)))})
    op_name = "".join(word.capitalize() for word in function.name.split("_"))
    takes_name = "name" in inspect.signature(compute).parameters

    def call(arguments: Mapping[str, Any]) -> Any:
        *values, name = arguments.values()
        if takes_name:
            return compute(*values, name=name or op_name)
        with tf.name_scope(name or op_name):
            return compute(*values)

    return wrapper(function.name, signature, call, f"See `{compute.__module__.rpartition('.')[2]}.{compute.__name__}`.")


def op_signature(names: Sequence[str], defaults: Mapping[str, Any]) -> inspect.Signature:
    """Returns the signature of arguments that may be passed by position or by name."""
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    return inspect.Signature([inspect.Parameter(name, kind, default=defaults.get(name, empty)) for name in names])


def wrapper(
    name: str, signature: inspect.Signature, compute: Callable[[Mapping[str, Any]], Any], doc: str | None
) -> Callable[..., Any]:
    """Returns a function with a signature; `compute` gets all its arguments by name, in order."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"{name}: {error}. It has the arguments {', '.join(signature.parameters)}. Pass these only."
            ) from None
        bound.apply_defaults()
        return compute(bound.arguments)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call
