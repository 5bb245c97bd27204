"""Says whether a program fits on an IPU, is close to its memory, or does not fit."""

from __future__ import annotations

import enum

PEAK_ERROR_FACTOR = 1.5
"""A program fits if its peak, code and library temporaries included, times this is within the memory of a tile.

Source: the bar of memory in docs/results/accuracy.md, of rows to which no number is fitted, rounded up.
"""


class Verdict(str, enum.Enum):
    """Whether a program fits: with the peak's error, perhaps, or not even its tensors."""

    FITS = "fits"
    CLOSE = "close"
    DOES_NOT_FIT = "does not fit"


def verdict_of(tensor_bytes: int, other_bytes: int, limit_bytes: int) -> Verdict:
    """Returns the verdict on the fullest tile.

    Args:
        tensor_bytes: tensors on the tile.
        other_bytes: code and library temporaries.
        limit_bytes: memory of the tile.

    Example:
        >>> verdict_of(300, 50, 600).value, verdict_of(400, 150, 600).value, verdict_of(601, 0, 600).value
        ('fits', 'close', 'does not fit')
    """
    if tensor_bytes > limit_bytes:
        return Verdict.DOES_NOT_FIT
    return Verdict.FITS if (tensor_bytes + other_bytes) * PEAK_ERROR_FACTOR <= limit_bytes else Verdict.CLOSE


def worst(verdicts: list[Verdict]) -> Verdict:
    """Returns the worst verdict; of none, that the program fits."""
    return max(verdicts, key=list(Verdict).index, default=Verdict.FITS)
