"""Reasons, shared by several options, why an option has no effect."""

from __future__ import annotations

PRODUCTS = (
    "`partialsType`: half sums take half the bytes, and where the chip has twice the units for them half the cycles; "
    "`availableMemoryProportion`: less of it, less temporary memory and more cycles; any other option has no effect"
)
"""What options of products change, not a reason for nothing."""
PLANNING = "guides how PopLibs plans over tiles; XLA's CPU library computes here"
COMPILER = "a pass of Poplar's compiler, which does not run here"
TRANSFERS = "how data travel between host and IPU, which share their memory here"
REPORTS = "how Poplar makes its own report; profiles here are those of the cycle model"
NO_CODE = "about Poplar's code for the IPU, of which there is none here"
