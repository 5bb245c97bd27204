"""Defines the cost of starting a program from the host, when it dominates a run, and the steps that amortise it."""

from __future__ import annotations

LAUNCH_SECONDS = 2.3e-3
"""The cost of a TensorFlow run: between SDK 2.6 and 3 in docs/reference/facts.md, section "Host traffic and syncs"."""
DOMINATES = 0.5
"""A program is bound by launches, or by the host link, if these are at least this part of its time."""
ACCEPTABLE = 0.1
"""The part of a run that its launch may have, in advice."""
MOST_STEPS = 1000
"""Steps of a run that advice asks for at most: an epoch of a small data set, as in Graphcore's tutorials."""


def steps_for(step_seconds: float) -> int:
    """Returns how many steps a run needs, so that its launch is at most `ACCEPTABLE` of it.

    Example:
        >>> steps_for(0.23e-3)
        90
    """
    seconds_per_launch = LAUNCH_SECONDS * (1 / ACCEPTABLE - 1)
    return max(1, round(seconds_per_launch / step_seconds)) if step_seconds else 1


def share_of(steps: float, step_seconds: float) -> float:
    """Returns the launch's part of a run of `steps` steps.

    Example:
        >>> share_of(1, LAUNCH_SECONDS)
        0.5
    """
    return LAUNCH_SECONDS / (LAUNCH_SECONDS + steps * step_seconds)
