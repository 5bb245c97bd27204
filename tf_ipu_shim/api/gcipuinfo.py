"""`gcipuinfo`: what the system's management library says of IPUs, as far as simulated ones have it."""

from __future__ import annotations

import json

from tf_ipu_shim.machine import attach, listing, systems

_NOT_MEASURED = "N/A"  # what the library says of an attribute that a device does not have


class gcipuinfo:  # noqa: N801  # Graphcore's name
    """The devices of the system, and attributes of each.

    Source: `gcipuinfo.gcipuinfo`.

    Example:
        >>> inventory = gcipuinfo()
        >>> len(inventory.getDevices()) == len(inventory.getNamedAttributeForAll("id"))
        True
    """

    def getDevices(self) -> list[dict[str, str]]:  # noqa: N802
        """The attributes of each device, by the names that `tf-ipu info -d ID -i` prints."""
        system = systems.current()
        holders = attach.in_use(system)
        return [listing.attributes(system, device, holders) for device in system.devices]

    def getDevicesAsJSON(self) -> str:  # noqa: N802
        """What `getDevices` gives, as JSON."""
        return json.dumps(self.getDevices())

    def getNamedAttributeForAll(self, attribute: str) -> list[str]:  # noqa: N802
        """One attribute of each device, such as `"clock"`; `"N/A"` for what nothing measures here, such as power."""
        return [device.get(attribute, _NOT_MEASURED) for device in self.getDevices()]

    def setUpdateMode(self, update: bool) -> None:  # noqa: N802
        """Whether attributes are read anew each time; they always are.

        Raises:
            TypeError: it is no bool.
        """
        if not isinstance(update, bool):
            raise TypeError(f"setUpdateMode({update!r}): expected True or False.")


# The attributes that scripts log, by the library's names for them.
IpuPower, BoardPower, IpuTemperature, AverageBoardTemp, IpuUtilisation = (
    "ipu power",
    "board power",
    "ipu temperature",
    "average board temp",
    "ipu utilisation",
)
BoardType, ClockFrequency, IpuArchitecture = "board type", "clock", "ipu architecture"
