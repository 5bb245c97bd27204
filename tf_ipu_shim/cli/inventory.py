"""`gc-inventory` and `gc-monitor`: list the simulated IPUs as text or JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tf_ipu_shim.cli import info
from tf_ipu_shim.machine.gc_tools import inventory, listing
from tf_ipu_shim.machine.sharing.locks import Holder
from tf_ipu_shim.machine.systems import System

Holders = Mapping[int, Holder]


class ListingCommand(NamedTuple):
    """A command that prints the same information in two formats.

    Args:
        text: a description of a system and of the processes that use its IPUs.
    """

    text: Callable[[System, Holders], str]
    data: Callable[[System, Holders], Any]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the command's arguments."""
        parser.set_defaults(program=parser.prog)
        parser.add_argument("-j", "--json", action="store_true", help="print JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        """Prints the requested attributes."""
        return info.answer(arguments.program, self._device_json if arguments.json else self.text)

    def _device_json(self, system: System, holders: Holders) -> str:
        return json.dumps(self.data(system, holders), indent=2)


def _every_device(system: System, holders: Holders) -> str:
    return "\n\n".join(listing.device_info(system, device, holders) for device in system.devices)


INVENTORY = ListingCommand(_every_device, inventory.devices)
MONITOR = ListingCommand(info.overview, inventory.cards)
