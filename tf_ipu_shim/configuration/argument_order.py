"""Accepts a call's positional arguments in the order of the emulated SDK release."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from tf_ipu_shim import sdk

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def argument_order(
    before: int,
    names: str,
    *,
    since: tuple[int, int] = sdk.OLDEST,
    until: tuple[int, int] = sdk.NEWEST,
    when: Callable[[Any], bool] | None = None,
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Reorders a function's positional arguments for some releases.

    Arguments that a release put between others would else be taken for their neighbours, mostly without an error.
    Releases between two with a known order use the older one's order.

    Example:
        >>> @argument_order(1, "name", when=lambda second: isinstance(second, str))
        ... def total(x, group=None, name=None):
        ...     return group, name
        >>> total([1], "sum"), total([1], 2, "sum")
        ((None, 'sum'), (2, 'sum'))
    """
    order = names.split()

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        bound = next(iter(inspect.signature(function).parameters), None) in ("self", "cls")
        first = before + bound

        @functools.wraps(function)
        def in_order(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            if len(args) <= first or not since <= sdk.current() <= until or (when and not when(args[first])):
                return function(*args, **kwargs)
            rest = args[first:]
            if len(rest) > len(order):
                raise TypeError(
                    f"{function.__qualname__}: {before + len(rest)} positional arguments were given. Under SDK "
                    f"{sdk.current()} it takes {before + len(order)} at most, the last of them {', '.join(order)}."
                    " Pass the others by keyword."
                )
            named = {name: value for name, value in zip(order, rest, strict=False) if name != "-"}
            twice = sorted(named.keys() & kwargs.keys())
            if twice:
                raise TypeError(
                    f"{function.__qualname__}: argument {twice[0]!r} was given twice; expected once. Pass it "
                    "by position or by keyword only."
                )
            return function(*args[:first], **named, **kwargs)  # type: ignore[arg-type]

        return in_order

    return decorate
