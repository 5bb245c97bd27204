"""Restores functions and arguments of Python 3.6 that later releases removed, for scripts only.

`json.loads(text, encoding=...)`, whose argument did nothing, `inspect.getargspec`, and `time.clock` and others.
Checked on Python 3.11.
"""

from __future__ import annotations

import base64
import errno
import fractions
import functools
import inspect
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tf_ipu_shim import patches
from tf_ipu_shim.imports import import_callers
from tf_ipu_shim.legacy.names.python import removed_names


class ArgSpec(NamedTuple):
    """The arguments of a function.

    Args:
        args: names of its arguments.
        varargs: the name after `*`, if there is one.
        keywords: the name after `**`, if there is one.
        defaults: default values of the last arguments; None without any.
    """

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def install() -> None:
    """Serves them to modules that are no installed package's."""
    why = "`json.load(file, encoding=...)` of scripts"
    for name in ("load", "loads"):
        patches.replace(json, name, _without_encoding, why=why)
    for module, names in _GONE:
        serving = functools.partial(removed_names.serving, module.__name__, names)
        why = f"{' and '.join(f'`{module.__name__}.{name}`' for name in names)} of scripts"
        patches.replace(module, "__getattr__", serving, why=why)


def gcd(a: Any, b: Any) -> Any:
    """Returns the greatest common divisor, with the sign of `b` as `fractions.gcd` had it.

    Args:
        a: a whole number.
        b: another one.

    Example:
        >>> gcd(12, 18), gcd(12, -18)
        (6, -6)
    """
    while b:
        a, b = b, a % b
    return a


def getargspec(function: Callable[..., Any]) -> ArgSpec:
    """Returns the arguments of a function, in the form Python used until 3.10.

    Args:
        function: without keyword-only arguments and annotations.

    Raises:
        ValueError: it has them, and the result cannot hold them.

    Example:
        >>> getargspec(lambda size, scale=1.0: size * scale)
        ArgSpec(args=['size', 'scale'], varargs=None, keywords=None, defaults=(1.0,))
    """
    spec = inspect.getfullargspec(function)
    if spec.kwonlyargs or spec.annotations:
        raise ValueError(
            f"getargspec({getattr(function, '__qualname__', function)!r}): the function has keyword-only arguments or "
            "annotations. Use inspect.getfullargspec, which returns them."
        )
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


# Modules, and the names that they have lost.
_GONE: tuple[tuple[Any, dict[str, Any]], ...] = (
    (inspect, {"getargspec": getargspec, "ArgSpec": ArgSpec}),
    (time, {"clock": time.process_time}),
    (fractions, {"gcd": gcd}),
    (os, {"errno": errno}),
    (base64, {"encodestring": base64.encodebytes, "decodestring": base64.decodebytes}),
)


def _without_encoding(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def load(*args: Any, **kwargs: Any) -> Any:
        if "encoding" in kwargs and import_callers.is_script_file(sys._getframe(1).f_code.co_filename):
            del kwargs["encoding"]
        return stock(*args, **kwargs)

    return load
