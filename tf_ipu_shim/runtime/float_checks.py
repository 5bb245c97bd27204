"""Reads which floating-point exceptions stop a device."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.machine.environment import engine_options


class FloatCheck(enum.IntFlag):
    """The floating-point exceptions that stop a device, and its other settings; the same as in `float_checks.h`."""

    INVALID_OPERATION = 1
    DIVISION_BY_ZERO = 2
    OVERFLOW = 4
    NAN_ON_OVERFLOW = 8


def float_checks(behaviour: Any, engine: Mapping[str, str]) -> FloatCheck:
    """Returns the checks that a configuration asks for.

    Source: docs/reference/facts.md, section "POPLAR_ENGINE_OPTIONS".

    Example:
        >>> from tf_ipu_shim.messages import config_pb2
        >>> float_checks(config_pb2.IpuOptions.FloatingPointBehaviour(nanoo=True), {})
        <FloatCheck.NAN_ON_OVERFLOW: 8>
    """
    checks = FloatCheck(0)
    if behaviour.inv or engine_options.is_enabled(engine, engine_options.INVALID_OPERATIONS):
        checks |= FloatCheck.INVALID_OPERATION
    if behaviour.div0:
        checks |= FloatCheck.DIVISION_BY_ZERO
    if behaviour.oflo or engine_options.is_enabled(engine, engine_options.OVERFLOWS):
        checks |= FloatCheck.OVERFLOW
    if behaviour.nanoo or engine_options.is_enabled(engine, engine_options.NAN_ON_OVERFLOW):
        checks |= FloatCheck.NAN_ON_OVERFLOW
    return checks
