"""Holds the error bars of modelled cycles: of a computation by kind, of a program by the resource that limits it.

`python -m benchmarks.calibration` computes those of programs from published figures to which nothing is fitted.
"""

from __future__ import annotations

ERROR_FACTORS = {
    "product": 2.0,
    "elementwise": 1.5,
    "cast": 1.5,
    "reduce": 2.0,
    "window": 3.0,
    "gather": 3.0,
    "update": 3.0,
    "fifo": 3.0,
    "norm": 2.0,
    "copy": 2.0,
    "random": 3.0,
    "sort": 4.0,
    "solve": 3.0,
    "factor": 3.0,
    "other": 10.0,
    "host": 2.0,
    "feed": 2.0,
    "remote": 2.0,
    "exchange": 2.0,
    "collective": 2.0,
    "user_op": 3.0,
}
"""By kind of computation: the real figure is expected between ours divided by this and ours times it."""

COMPUTE, SMALL, HOST, LAUNCH = "compute", "small", "host", "launch"
SMALL_CYCLES = 500_000
"""A mini-batch with fewer cycles is small: syncs and fixed costs of vertices decide, not the work."""

BARS = {COMPUTE: 1.5, SMALL: 2.0, HOST: 1.8, LAUNCH: 1.5}
"""The real figure of nine programs of ten is between ours divided by this and ours times it.

Source: validation/model/published.csv, with the ratios of validation/model/modelled.csv. For launches all rows are
fitted: SDK 2.6 and 3 are within this factor of each other.
"""


def regime_of(cycles_per_step: float, host_share: float) -> str:
    """Returns the regime of a program between two launches.

    Args:
        cycles_per_step: cycles of a mini-batch.
        host_share: part of the time in which data moves over the host link.

    Example:
        >>> regime_of(1e6, 0.1), regime_of(1e5, 0.1), regime_of(1e6, 0.7)
        ('compute', 'small', 'host')
    """
    if host_share >= 0.5:
        return HOST
    return SMALL if cycles_per_step < SMALL_CYCLES else COMPUTE
