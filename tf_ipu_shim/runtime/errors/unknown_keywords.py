"""Suggests the nearest argument for a keyword that one of our calls does not have."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from tf_ipu_shim.names import keywords

_UNKNOWN = re.compile(r"(?P<call>[\w.]+)\(\) got an unexpected keyword argument '(?P<name>\w+)'")
_PACKAGES = ("tf_ipu_shim.frontend.", "tf_ipu_shim.api.", "tf_ipu_shim.configuration.", "tf_ipu_shim.legacy.")


def suggestion(error: TypeError, message: str) -> str:
    """Returns a sentence with the argument that was probably meant; empty for a call that is not ours."""
    match = _UNKNOWN.search(message)
    if match is None or _is_users(error, match["call"]):
        return ""
    for function in _functions(match["call"]):
        parameters = keywords.names_of(function)
        if parameters is not None and match["name"] not in parameters:
            return keywords.sentence(match["call"].removesuffix(".__init__"), match["name"], parameters)
    return ""


def _is_users(error: TypeError, call: str) -> bool:
    """Returns whether the frame that made the call has another function of that name."""
    first = call.partition(".")[0]
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    scopes: tuple[dict[str, Any], ...] = (frames[-1].f_locals, frames[-1].f_globals) if frames else ()
    named = next((scope[first] for scope in scopes if first in scope), None)
    return named is not None and not str(getattr(named, "__module__", "")).startswith("tf_ipu_shim.")


def _functions(call: str) -> Iterator[Callable[..., Any]]:
    """Our functions and methods of that qualified name that are loaded."""
    first, *attributes = call.split(".")
    for name, module in list(sys.modules.items()):
        candidate = vars(module).get(first) if name.startswith(_PACKAGES) else None
        if not str(getattr(candidate, "__module__", "")).startswith(_PACKAGES):
            continue
        for part in attributes:
            candidate = getattr(candidate, part, None)
        if callable(candidate):
            yield candidate
