"""Reads how a device rounds float16."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.machine.environment import engine_options
from tf_ipu_shim.messages import config_pb2


class Rounding(enum.IntFlag):
    """The rounding of a device; the first two members are the same as in `stochastic_rounding.h`."""

    STOCHASTIC = 1
    SAME_FOR_SAME = 2
    """Replicas round shared values in the same way."""
    COMMON_ONLY = 4
    """In a program with several replicas, only the values that these share are rounded stochastically."""


def rounding(options: Any, engine: Mapping[str, str]) -> Rounding:
    """Returns the rounding that a configuration asks for.

    Source: docs/reference/facts.md, section "Stochastic rounding".

    Example:
        >>> options = config_pb2.IpuOptions(enable_experimental_prng_stability=True)
        >>> rounding(options, {"prng.enableStochasticRounding": "true"}) == Rounding.STOCHASTIC | Rounding.SAME_FOR_SAME
        True
    """
    esr = options.floating_point_behaviour.esr
    names = engine_options.STOCHASTIC_ROUNDING, engine_options.OLD_STOCHASTIC_ROUNDING
    if not esr and not any(engine_options.is_enabled(engine, name) for name in names):
        return Rounding(0)
    requested = Rounding.STOCHASTIC
    if options.enable_experimental_prng_stability:
        requested |= Rounding.SAME_FOR_SAME
    if esr == config_pb2.StochasticRounding_ReplicaIdenticalOnly:
        requested |= Rounding.SAME_FOR_SAME | Rounding.COMMON_ONLY
    return requested
