"""Marks functions and classes that always raise because they are not supported.

The mark that refuses a call is also the one that `tools/generate_coverage.py` reads, so no such name counts as
emulated.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tf_ipu_shim.errors import UnsupportedError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_MARK = "__ipu_refusal__"


def not_supported(reason: str, error: type[NotImplementedError] = UnsupportedError) -> Callable[[_Function], _Function]:
    """Makes every call of a function fail; of a class, if the function is its `__init__`.

    The function runs first, so that a call with wrong arguments is refused for these. The function's result is ignored.

    Args:
        reason: the text after the name: the refused feature, the reason, and the alternative.
        error: Graphcore's own exception type for this, if it has one.

    Returns:
        A decorator.

    Example:
        >>> @not_supported("is not emulated: there is no Poplar here. Use tf.function.")
        ... def make_codelet(path): ...
        >>> make_codelet("a.gp")
        Traceback (most recent call last):
        tf_ipu_shim.errors.UnsupportedError: make_codelet is not emulated: there is no Poplar here. Use tf.function.
    """

    def decorate(function: _Function) -> _Function:
        name = function.__name__ if function.__name__ != "__init__" else function.__qualname__.split(".")[-2]

        @functools.wraps(function)
        def refuse(*args: Any, **kwargs: Any) -> Any:
            function(*args, **kwargs)
            raise error(f"{name} {reason}")

        setattr(refuse, _MARK, reason)
        return cast(_Function, refuse)

    return decorate


def refusal_of(target: Any) -> str | None:
    """Returns why every call of a name fails; None if a call can succeed.

    A class is refused, too, if all its public methods are.

    Example:
        >>> refusal_of(len) is None
        True
    """
    if not isinstance(target, type):
        return cast("str | None", getattr(target, _MARK, None)) if callable(target) else None
    methods = {name: refusal_of(method) for name, method in vars(target).items() if callable(method)}
    reasons = [reason for name, reason in methods.items() if not name.startswith("_")]
    return methods.get("__init__") or (reasons[0] if reasons and all(reasons) else None)
