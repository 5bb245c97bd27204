"""The systems that a script's programs are tried on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tf_ipu_shim.machine.chips import CHIPS, Chip
from tf_ipu_shim.machine.systems import SYSTEMS, System, named


def systems_for(names: Sequence[str], chips: Sequence[str], ipus: int) -> list[System]:
    """The systems that are asked for; of each chip the smallest with enough IPUs where none is.

    Args:
        names: of systems.
        chips: keys of `CHIPS`; all of them where there is none.
        ipus: how many the script's largest device has.

    Raises:
        ValueError: there is no such system or chip.

    Example:
        >>> [system.name for system in systems_for([], ["gc200", "bow"], 4)]
        ['m2000', 'bow-2000']
    """
    wanted = chips_of(chips)
    if names:
        found = [named(name) for name in names]
        return [system for system in found if not chips or system.chip in wanted]
    smallest_of = (
        next((one for one in by_size() if one.chip == chip and one.num_ipus >= ipus), None) for chip in wanted
    )
    return [system for system in smallest_of if system is not None]


def chips_of(names: Sequence[str]) -> list[Chip]:
    """Chips by name; all of them for no name.

    Raises:
        ValueError: there is no such chip.
    """
    unknown = [name for name in names if name not in CHIPS]
    if unknown:
        raise ValueError(f"There is no chip {unknown[0]!r}. Name some of: {', '.join(CHIPS)}.")
    return [CHIPS[name] for name in names or CHIPS]


def by_size() -> list[System]:
    """All systems, those with fewer IPUs and less memory first."""
    return sorted(SYSTEMS.values(), key=lambda system: (system.num_ipus, system.chip.total_bytes, system.chip.clock_hz))


def smallest(ipus: int, fits: Callable[[Chip], bool]) -> System | None:
    """The smallest system that has enough IPUs, of a chip on which everything fits.

    Args:
        ipus: how many are needed.
        fits: whether everything fits on that many IPUs of a chip.
    """
    return next((system for system in by_size() if system.num_ipus >= ipus and fits(system.chip)), None)
