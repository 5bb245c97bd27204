"""Floating-point exceptions: what a device is to stop at."""

from __future__ import annotations

import enum
from typing import Any


class FloatCheck(enum.IntFlag):
    """What a device stops at, or does, where results are no numbers; the same as in `float_checks.h`."""

    INVALID_OPERATION = 1
    DIVISION_BY_ZERO = 2
    OVERFLOW = 4
    NAN_ON_OVERFLOW = 8


def float_checks(behaviour: Any) -> FloatCheck:
    """What a configuration asks for.

    Args:
        behaviour: an `IpuOptions.FloatingPointBehaviour`.

    Example:
        >>> from tf_ipu_shim.messages import config_pb2
        >>> float_checks(config_pb2.IpuOptions.FloatingPointBehaviour(nanoo=True))
        <FloatCheck.NAN_ON_OVERFLOW: 8>
    """
    checks = FloatCheck(0)
    if behaviour.inv:
        checks |= FloatCheck.INVALID_OPERATION
    if behaviour.div0:
        checks |= FloatCheck.DIVISION_BY_ZERO
    if behaviour.oflo:
        checks |= FloatCheck.OVERFLOW
    if behaviour.nanoo:
        checks |= FloatCheck.NAN_ON_OVERFLOW
    return checks
