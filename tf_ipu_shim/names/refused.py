"""Functions and classes of Graphcore's that are there to say, when called, why they cannot be had.

The mark that a call meets is the one that `tools/generate_coverage.py` reads, so that no such name counts as emulated.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar, cast

from tf_ipu_shim.errors import UnsupportedError

_Thing = TypeVar("_Thing")
_MARK = "__ipu_refusal__"


def refused(reason: str, error: type[NotImplementedError] = UnsupportedError) -> Any:
    """Makes every call of a function, or of a class, fail.

    The function runs first, so that a call with wrong arguments is refused for these. What it returns is not looked at.

    Args:
        reason: goes on from the name: what is refused, why, and what to do instead.
        error: where Graphcore has an exception type of its own for this.

    Returns:
        A decorator.

    Example:
        >>> @refused("is not emulated: there is no Poplar here. Use tf.function.")
        ... def make_codelet(path): ...
        >>> make_codelet("a.gp")
        Traceback (most recent call last):
        tf_ipu_shim.errors.UnsupportedError: make_codelet is not emulated: there is no Poplar here. Use tf.function.
    """

    def decorate(thing: _Thing) -> _Thing:
        def refusing(call: Any) -> Any:
            @functools.wraps(call)
            def refuse(*args: Any, **kwargs: Any) -> Any:
                call(*args, **kwargs)
                raise error(f"{cast(Any, thing).__name__} {reason}")

            return refuse

        if isinstance(thing, type):
            thing.__init__ = refusing(thing.__init__)  # type: ignore[misc]
            setattr(thing, _MARK, reason)
            return thing
        marked = refusing(thing)
        setattr(marked, _MARK, reason)
        return cast(_Thing, marked)

    return decorate


def refusal(thing: Any) -> str | None:
    """Why every call of a thing fails; None where one can succeed.

    A class is refused, too, where all its public methods are.

    Args:
        thing: a function, a class, or anything else, of which no call is known to fail.

    Example:
        >>> refusal(len) is None
        True
    """
    if not isinstance(thing, type):
        return cast("str | None", getattr(thing, _MARK, None)) if callable(thing) else None
    own = vars(thing)
    if _MARK in own:
        return cast(str, own[_MARK])
    reasons = [refusal(method) for name, method in own.items() if callable(method) and not name.startswith("_")]
    return reasons[0] if reasons and all(reasons) else None
