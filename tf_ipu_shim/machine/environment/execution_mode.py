"""Reads the execution mode (`kernels`, `xla` or automatic) and checks of indices from the environment.

See `docs/explanation/execution.md`.
"""

from __future__ import annotations

import os

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_EXECUTION_MODE"
CHECK_INDICES = "TF_IPU_SHIM_CHECK_INDICES"
"""If it is 1, programs run in mode `kernels`, whose kernels refuse indices and labels that are out of range."""
XLA, KERNELS, AUTO = "xla", "kernels", "auto"
MODES = (AUTO, XLA, KERNELS)


def requested_mode() -> str:
    """Returns the requested execution mode.

    Example:
        >>> requested_mode() in MODES
        True
    """
    value = os.environ.get(ENVIRONMENT_VARIABLE, "").lower() or AUTO
    if value not in MODES:
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE} is {value!r}. It has to be {AUTO!r}, {XLA!r} or {KERNELS!r}. Set it to one of "
            "these."
        )
    if not checks_indices():
        return value
    if value == XLA:
        raise ValueError(
            f"{CHECK_INDICES} is 1 and {ENVIRONMENT_VARIABLE} is {XLA!r}; expected {KERNELS!r} or {AUTO!r}, as XLA "
            "does not check indices. Unset one of the two."
        )
    return KERNELS


def checks_indices() -> bool:
    """Returns whether an index or a label that is out of range is an error.

    Example:
        >>> checks_indices()
        False
    """
    value = os.environ.get(CHECK_INDICES, "")
    if value not in ("", "0", "1"):
        raise ValueError(f"{CHECK_INDICES} is {value!r}; expected 0 or 1. Change it or unset it.")
    return value == "1"


def requests_xla_dumps() -> bool:
    """Returns whether `XLA_FLAGS` requests dumps of XLA's compilations, which mode `kernels` does not have.

    Example:
        >>> os.environ["XLA_FLAGS"] = "--xla_dump_to=/tmp/dump --xla_dump_hlo_as_dot"
        >>> requests_xla_dumps()
        True
    """
    return any(flag.startswith("--xla_dump_to=") for flag in os.environ.get("XLA_FLAGS", "").split())
