"""The ways to run a program on the host, and which one a script's environment asks for. See `docs/execution.md`."""

from __future__ import annotations

import os

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_EXECUTION_MODE"
XLA, KERNELS, AUTO = "xla", "kernels", "auto"
WAYS = (AUTO, XLA, KERNELS)


def asked_for() -> str:
    """The way that the environment asks for.

    Returns:
        One of `WAYS`; `"auto"`, the better one for each program, where nothing is asked for.

    Raises:
        ValueError: it asks for something else.

    Example:
        >>> asked_for() in WAYS
        True
    """
    value = os.environ.get(ENVIRONMENT_VARIABLE, "").lower() or AUTO
    if value not in WAYS:
        raise ValueError(f"{ENVIRONMENT_VARIABLE} is {value!r}. It has to be {AUTO!r}, {XLA!r} or {KERNELS!r}.")
    return value


def dumps_are_asked_for() -> bool:
    """Whether `XLA_FLAGS` has XLA write what it compiles: what runs by kernels would be missing there.

    Example:
        >>> os.environ["XLA_FLAGS"] = "--xla_dump_to=/tmp/dump --xla_dump_hlo_as_dot"
        >>> dumps_are_asked_for()
        True
    """
    return any(flag.startswith("--xla_dump_to=") for flag in os.environ.get("XLA_FLAGS", "").split())
