"""Selects the IPU systems for which `tf-ipu fit` estimates a script's programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tf_ipu_shim.machine.chips import CHIPS, ChipSpec
from tf_ipu_shim.machine.systems import SYSTEMS, System, named


def systems_for(names: Sequence[str], chips: Sequence[str], ipus: int) -> list[System]:
    """Returns the named systems, or the smallest with enough IPUs for each chip.

    Example:
        >>> [system.name for system in systems_for([], ["gc200", "bow"], 4)]
        ['m2000', 'bow-2000']
    """
    chip_names = chips_of(chips)
    if names:
        named_systems = [named(name) for name in names]
        return [system for system in named_systems if not chips or system.chip in chip_names]
    smallest_of = (
        next((candidate for candidate in by_size() if candidate.chip == chip and candidate.num_ipus >= ipus), None)
        for chip in chip_names
    )
    return [system for system in smallest_of if system is not None]


def chips_of(names: Sequence[str]) -> list[ChipSpec]:
    """Returns chips by name; all for no names."""
    unknown = [name for name in names if name not in CHIPS]
    if unknown:
        raise ValueError(f"There is no chip {unknown[0]!r}. Name some of: {', '.join(CHIPS)}.")
    return [CHIPS[name] for name in names or CHIPS]


def by_size() -> list[System]:
    """Returns all systems, smaller ones (IPUs, memory) first."""
    return sorted(SYSTEMS.values(), key=lambda system: (system.num_ipus, system.chip.total_bytes, system.chip.clock_hz))


def smallest(ipus: int, fits: Callable[[ChipSpec], bool]) -> System | None:
    """Returns the smallest system with enough IPUs of a chip on which everything fits."""
    return next((system for system in by_size() if system.num_ipus >= ipus and fits(system.chip)), None)
