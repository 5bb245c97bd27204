"""Lists the servers that can be simulated, and reads from `TF_IPU_SHIM_SYSTEM` which one is."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Iterable

from tf_ipu_shim import spelling
from tf_ipu_shim.machine import device_table
from tf_ipu_shim.machine.chips import CHIPS, ChipSpec
from tf_ipu_shim.machine.device_table import PoplarDevice

__all__ = ["DEFAULT", "ENVIRONMENT_VARIABLE", "SYSTEMS", "PoplarDevice", "System", "current", "named"]

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_SYSTEM"
DEFAULT = "ipu16"


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """A simulated server: its chips, and the list of devices that Poplar would offer on it.

    Source: docs/reference/facts.md, section "Device ids"; for the chips of machines, docs/reference/facts.md, section
        "Chips".

    Example:
        >>> named("ipu16").devices_with(4)[0].id
        24
    """

    name: str
    """Name as given in `TF_IPU_SHIM_SYSTEM`."""
    title: str
    """The description for people."""
    chip: ChipSpec
    """The chip, the same in the whole system."""
    devices: tuple[PoplarDevice, ...]
    """All Poplar devices in id order; the first `num_ipus` hold one IPU each."""
    board: str
    """Board type, as `gc-info` prints it."""
    ipus_per_board: int
    """IPUs on one card or in one IPU-Machine."""
    fabric: bool
    """Whether the IPUs are reached over the network (IPU-Machines, pods) instead of as PCIe cards."""

    @property
    def num_ipus(self) -> int:
        """IPUs in the system."""
        return (len(self.devices) + 1) // 2

    def devices_with(self, num_ipus: int) -> tuple[PoplarDevice, ...]:
        """Returns the devices with exactly this number of IPUs, in id order; none if no device has."""
        return tuple(device for device in self.devices if device.num_ipus == num_ipus)

    def device(self, device_id: int) -> PoplarDevice:
        """Returns the device with this Poplar id.

        Example:
            >>> named("m2000").device(4).ipus
            (0, 1)
        """
        if isinstance(device_id, bool) or not isinstance(device_id, int) or not 0 <= device_id < len(self.devices):
            raise ValueError(
                f"There is no IPU device with id {device_id!r} in system {self.name!r}; expected 0 to "
                f"{len(self.devices) - 1}. Run `tf-ipu info -l` to list them."
            )
        return self.devices[device_id]

    def board_of(self, ipu: int) -> int:
        """Returns the card or IPU-Machine that holds this IPU, counted from 0."""
        return ipu // self.ipus_per_board

    def index_on_board(self, ipu: int) -> int:
        """Returns the IPU's number on its board. IPU-Machines number theirs from the other end: id 0 is IPU# 3."""
        index = ipu % self.ipus_per_board
        return self.ipus_per_board - 1 - index if self.fabric else index


def _cards(name: str, title: str, chip: str, order: tuple[int, ...], board: str, ipus_per_board: int) -> System:
    return System(
        name=name,
        title=title,
        chip=CHIPS[chip],
        devices=device_table.enumerate_devices(order),
        board=board,
        ipus_per_board=ipus_per_board,
        fabric=False,
    )


def _machines(name: str, title: str, chip: str, num_ipus: int, board: str) -> System:
    return System(
        name=name,
        title=title,
        chip=CHIPS[chip],
        devices=device_table.enumerate_devices(range(num_ipus)),
        board=board,
        ipus_per_board=4,
        fabric=True,
    )


def _all() -> dict[str, System]:
    systems = [
        _cards("ipu16", "16 GC200 chips under the ids of a DSS8440", "gc200", device_table.EIGHT_CARDS, "PCIe card", 2),
        _cards("dss8440", "Dell DSS8440: eight C2 cards, 16 GC2 chips", "gc2", device_table.EIGHT_CARDS, "C2", 2),
        _machines("m2000", "IPU-M2000: 4 GC200 chips", "gc200", 4, "M2000"),
        _machines("bow-2000", "Bow-2000: 4 Bow chips", "bow", 4, "Bow-2000"),
    ]
    for num_ipus in (4, 8, 16, 32, 64, 128, 256):
        systems += [
            _machines(f"pod{num_ipus}", f"{num_ipus} GC200 chips in IPU-M2000s", "gc200", num_ipus, "M2000"),
            _machines(f"bow-pod{num_ipus}", f"{num_ipus} Bow chips in Bow-2000s", "bow", num_ipus, "Bow-2000"),
        ]
    systems += [
        _cards("c600", "one C600 card", "c600", (0,), "C600", 1),
        *(
            _cards(f"c600x{cards}", f"a server with {cards} C600 cards", "c600", tuple(range(cards)), "C600", 1)
            for cards in (2, 4, 8)
        ),
    ]
    return {system.name: system for system in systems}


SYSTEMS: dict[str, System] = _all()
"""All systems by name."""


def named(text: str) -> System:
    """Returns the system of this name, with another chip if the name ends in `:chip=NAME`.

    Example:
        >>> named("pod16:chip=bow").chip.name
        'bow'
    """
    name, colon, override = text.strip().lower().partition(":")
    if name not in SYSTEMS:
        raise ValueError(
            f"There is no simulated system {name!r}.{did_you_mean(name, SYSTEMS)} Choose one with "
            f"{ENVIRONMENT_VARIABLE} or --system: {', '.join(SYSTEMS)}."
        )
    if not colon:
        return SYSTEMS[name]
    key, _, chip = override.partition("=")
    if key != "chip" or chip not in CHIPS:
        raise ValueError(
            f"{text!r} is not a simulated system: after the colon comes chip=NAME, with NAME one of: "
            f"{', '.join(CHIPS)}. Choose one of these."
        )
    return dataclasses.replace(SYSTEMS[name], name=f"{name}:chip={chip}", chip=CHIPS[chip])


def current() -> System:
    """Returns the simulated system: the current `TF_IPU_SHIM_SYSTEM`, or `ipu16` with 16 IPUs by default.

    The default has the device list of the server in Graphcore's documents, so a request for four IPUs gets id 24. It
    has the memory of the GC200, so programs for both generations fit.

    Example:
        >>> current().num_ipus
        16
    """
    return named(os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT)


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Suggests a near name, if there is one; of several the one of the most equal length.

    Example:
        >>> did_you_mean("pod5", ["pod256", "pod4"])
        " Did you mean 'pod4'?"
    """
    near = difflib.get_close_matches(name, list(known_names))
    return spelling.did_you_mean(name, sorted(near, key=lambda other: abs(len(other) - len(name)))[:1])
