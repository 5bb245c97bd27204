"""Reads how long processes of a job, and replicas of a program, wait for each other."""

from __future__ import annotations

import os

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_COLLECTIVE_TIMEOUT"
DEFAULT_SECONDS = 600


def seconds() -> float:
    """Reads the time limit from the environment.

    Example:
        >>> seconds()
        600.0
    """
    setting = os.environ.get(ENVIRONMENT_VARIABLE) or str(DEFAULT_SECONDS)
    try:
        value = float(setting)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE} is {setting!r}; expected a number of seconds above 0. Change it or unset it."
        )
    return value
