"""Reads `TF_IPU_SHIM_CHECK_CODELETS`: whether codelets are compiled with checks of indices."""

from __future__ import annotations

import os

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_CHECK_CODELETS"


def is_on() -> bool:
    """Returns whether the variable is 1.

    Raises:
        ValueError: it is something other than 0 and 1.

    Example:
        >>> is_on() in (False, True)
        True
    """
    text = os.environ.get(ENVIRONMENT_VARIABLE) or "0"
    if text not in ("0", "1"):
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is {text!r}; expected '0' or '1'. Change it or unset it.")
    return text == "1"
