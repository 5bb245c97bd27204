"""Reads `TF_IPU_SHIM_MEMORY_PLAN`: which memory figures are computed."""

from __future__ import annotations

import os

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_MEMORY_PLAN"
ON, OFF, CALLS = "on", "off", "calls"


def current() -> str:
    """Returns the current value of `TF_IPU_SHIM_MEMORY_PLAN`.

    Example:
        >>> current()
        'on'
    """
    value = os.environ.get(ENVIRONMENT_VARIABLE, "").lower() or ON
    if value not in (ON, OFF, CALLS):
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE} is {value!r}. It has to be {ON!r}, {OFF!r} or {CALLS!r}. Set it to one of these."
        )
    return value
