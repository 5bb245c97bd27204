"""Selects the chip that a configuration compiles for, on the IPU Model and on IPUs."""

from __future__ import annotations

from tf_ipu_shim.machine import chips
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.environment.flags import PoplarFlags

DEFAULT_VERSION = "ipu2"


def chip_for(system_chip: ChipSpec, flags: PoplarFlags, *, version: str = "", tiles_per_ipu: int = 0) -> ChipSpec:
    """Returns the chip that programs are compiled for.

    On IPUs it is the system's own, and `ipu_model` is ignored. On the IPU Model (`--use_ipu_model`) it is the one of
    `ipu_model.version`. Its number of tiles is `ipu_model.tiles_per_ipu`, `--ipu_model_tiles`, or all.

    Source: docs/reference/facts.md, section "IPU Model".

    Example:
        >>> chip_for(chips.CHIPS["bow"], PoplarFlags(use_ipu_model=True), tiles_per_ipu=16).tiles
        16
    """
    if not flags.use_ipu_model:
        return system_chip
    chip = for_version(system_chip, version or DEFAULT_VERSION)
    tiles = tiles_per_ipu or flags.ipu_model_tiles
    if tiles_per_ipu < 0 or tiles > chip.tiles:
        raise ValueError(
            f"The IPU Model was asked for {tiles} tiles per IPU, but {chip.target} has {chip.tiles}. Set "
            "ipu_model.tiles_per_ipu (or --ipu_model_tiles) to at most that, or to 0 for all of them."
        )
    return chip.with_tiles(tiles) if tiles > 0 else chip


def for_version(system_chip: ChipSpec, version: str) -> ChipSpec:
    """Returns the chip of a target version: the system's chip if it has that version, which Bow and GC200 share.

    Example:
        >>> for_version(chips.CHIPS["bow"], "ipu2").name
        'bow'
    """
    return system_chip if system_chip.target == version else chips.for_target(version)
