"""What Python's own library took in the time of Python 3.6 to 3.8, and takes no more, for scripts alone.

`json.loads(text, encoding=...)`, whose argument did nothing, and `inspect.getargspec`. Checked on Python 3.11.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from tf_ipu_shim import patches
from tf_ipu_shim.names import removed_names


class ArgSpec(NamedTuple):
    """What a function takes.

    Args:
        args: names of its arguments.
        varargs: the name after `*`, if there is one.
        keywords: the name after `**`, if there is one.
        defaults: those of the last arguments; None without any.
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
    serving = functools.partial(removed_names.serving, "inspect", {"getargspec": getargspec})
    patches.replace(inspect, "__getattr__", serving, why="`inspect.getargspec`")


def getargspec(function: Callable[..., Any]) -> ArgSpec:
    """What a function takes, as Python told it until 3.10.

    Args:
        function: without keyword-only arguments and annotations.

    Raises:
        ValueError: it has some, which the result has no place for.

    Example:
        >>> getargspec(lambda size, scale=1.0: size * scale)
        ArgSpec(args=['size', 'scale'], varargs=None, keywords=None, defaults=(1.0,))
    """
    found = inspect.getfullargspec(function)
    if found.kwonlyargs or found.annotations:
        raise ValueError(
            f"getargspec({getattr(function, '__qualname__', function)!r}): the function has keyword-only arguments or "
            "annotations. Use inspect.getfullargspec, which can tell them."
        )
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def _without_encoding(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def load(*args: Any, **kwargs: Any) -> Any:
        if "encoding" in kwargs and removed_names.is_script(sys._getframe(1).f_code.co_filename):
            del kwargs["encoding"]
        return stock(*args, **kwargs)

    return load
