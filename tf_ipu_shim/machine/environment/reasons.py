"""Fills in the reasons why options have no effect where a table of options names one in braces."""

from __future__ import annotations

PRODUCTS = (
    "`partialsType`: float16 partials take half the bytes, and on Mk2 chips half the cycles. "
    "`availableMemoryProportion`: a smaller one takes less temporary memory and more cycles"
)
"""The effect of options of matmuls and convolutions."""
PLANNING = "guides how PopLibs plans over tiles; XLA's CPU library computes here"
COMPILER = "a pass of Poplar's compiler, which does not run here"
TRANSFERS = "how data travel between host and IPU, which share their memory here"
REPORTS = "how Poplar makes its own report; profiles here are those of the cycle model"
LINKS = "collectives are computed in one place, without links"
WAITS = "host and device never wait for each other, so nothing times out"
NO_CODE = "about Poplar's code for the IPU, which does not exist here"


def fill(text: str) -> str:
    """Returns a text with the reasons that it names in braces.

    Example:
        >>> fill("of weights: {PLANNING}").startswith("of weights: guides")
        True
    """
    return text.format_map(globals())
