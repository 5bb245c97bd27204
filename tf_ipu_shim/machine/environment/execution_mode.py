"""Reads the execution mode (`kernels`, `xla` or automatic) that the environment requests. See `docs/execution.md`."""

from __future__ import annotations

import os

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_EXECUTION_MODE"
XLA, KERNELS, AUTO = "xla", "kernels", "auto"
WAYS = (AUTO, XLA, KERNELS)


def requested_mode() -> str:
    """Returns the requested execution mode.

    Example:
        >>> requested_mode() in WAYS
        True
    """
    value = os.environ.get(ENVIRONMENT_VARIABLE, "").lower() or AUTO
    if value not in WAYS:
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE} is {value!r}. It has to be {AUTO!r}, {XLA!r} or {KERNELS!r}. Set it to one of "
            "these."
        )
    return value


def requests_xla_dumps() -> bool:
    """Returns whether `XLA_FLAGS` requests dumps of what XLA compiles, which mode `kernels` would lack.

    Example:
        >>> os.environ["XLA_FLAGS"] = "--xla_dump_to=/tmp/dump --xla_dump_hlo_as_dot"
        >>> requests_xla_dumps()
        True
    """
    return any(flag.startswith("--xla_dump_to=") for flag in os.environ.get("XLA_FLAGS", "").split())
