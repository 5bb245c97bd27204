"""`gcipuinfo`: queries the simulated IPUs as Graphcore's management library does."""

from __future__ import annotations

import json
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.gc_tools import listing
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.runtime import log

_NOT_MEASURED = "N/A"  # what the library says of an attribute that a device does not have


_reported: list[str] = []  # one line a process

# Which partitions a script asks about; a simulated system has one.
DiscoverActivePartitionIPUs, DiscoverAllPartitionIPUs = range(2)


class gcipuinfo:  # noqa: N801  # Graphcore's name
    """The devices of the system with their attributes, read at creation and by each update.

    Args:
        discoveryMode: `DiscoverActivePartitionIPUs` or `DiscoverAllPartitionIPUs`, which have the same devices here.

    Raises:
        ValueError: another mode.

    Source: `gcipuinfo.gcipuinfo`.

    Example:
        >>> inventory = gcipuinfo()
        >>> len(inventory.getDevices()) == len(inventory.getNamedAttributeForAll("id"))
        True
    """

    def __init__(self, discoveryMode: int = DiscoverActivePartitionIPUs) -> None:  # noqa: N803
        if discoveryMode not in (DiscoverActivePartitionIPUs, DiscoverAllPartitionIPUs):
            raise ValueError(
                f"gcipuinfo({discoveryMode!r}): expected DiscoverActivePartitionIPUs or DiscoverAllPartitionIPUs. Pass "
                "one of these two."
            )
        self._is_always_new = False
        self.updateData()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        attributes = ", ".join(attribute for attribute in dir(type(self)) if not attribute.startswith("_"))
        raise errors.MissingAttributeError(
            f"gcipuinfo.{name} is not emulated: simulated IPUs have neither health nor records. It has {attributes}. "
            "Use one of these."
        )

    def updateData(self) -> bool:  # noqa: N802
        """Reads all attributes again; only the users of the IPUs can change. Returns True."""
        system = systems.current()
        holders = attach.in_use(system)
        self._devices = [listing.attributes(system, device, holders) for device in system.devices]
        return True

    def setUpdateMode(self, autoUpdate: bool) -> None:  # noqa: N802, N803
        """Whether attributes are read again each time one is asked for.

        Raises:
            TypeError: it is not a bool.
        """
        if not isinstance(autoUpdate, bool):
            raise TypeError(f"setUpdateMode({autoUpdate!r}): expected True or False. Pass True or False.")
        self._is_always_new = autoUpdate

    def getDevices(self) -> list[dict[str, str]]:  # noqa: N802
        """Returns the attributes of each device, by the names that `tf-ipu info -d ID -i` prints.

        Power, temperatures and utilisation are constants: simulated IPUs have no sensors.
        """
        _log_constant_attributes()
        if self._is_always_new:
            self.updateData()
        return [dict(device) for device in self._devices]

    def getDevicesAsJSON(self) -> str:  # noqa: N802
        """Returns the result of `getDevices` as JSON."""
        return json.dumps(self.getDevices())

    def getNamedAttributeForAll(self, attribute: str) -> list[str]:  # noqa: N802
        """One attribute of each device, such as `"clock"`; `"N/A"` for attributes that simulated IPUs do not have."""
        return [device.get(attribute, _NOT_MEASURED) for device in self.getDevices()]

    def getNamedAttributeForDevice(self, deviceId: int, attribute: str) -> str:  # noqa: N802, N803
        """One attribute of one device.

        Args:
            deviceId: its id, as in `getDevices`.
            attribute: such as `IpuPower`.

        Raises:
            ValueError: the system does not have such a device.

        Example:
            >>> gcipuinfo().getNamedAttributeForDevice(0, IpuPower)
            '80.00W'
        """
        device = systems.current().device(int(deviceId))
        return self.getNamedAttributeForAll(attribute)[device.id]


def _log_constant_attributes() -> None:
    if not _reported:
        _reported.append("constants")
        log.warning(
            f"gcipuinfo: simulated IPUs have no sensors. {', '.join(listing.CONSTANT)} are constants, for scripts "
            "that read them; an energy computed from them means nothing."
        )


# The attributes that scripts log, by the library's names for them.
IpuPower, BoardPower, IpuTemperature, AverageBoardTemp, AverageDieTemp, IpuUtilisation, IpuUtilisationSession = (
    "ipu power",
    "board power",
    "ipu temperature",
    "average board temp",
    "average die temp",
    "ipu utilisation",
    "ipu utilisation (session)",
)
BoardType, ClockFrequency, IpuArchitecture = "board type", "clock", "ipu architecture"
