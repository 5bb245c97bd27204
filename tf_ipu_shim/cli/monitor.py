"""`gc-monitor`: the simulated IPUs, and who uses them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from tf_ipu_shim.machine import info, inventory, listing
from tf_ipu_shim.machine.locks import Holder
from tf_ipu_shim.machine.systems import System


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.set_defaults(program=parser.prog)
    parser.add_argument("-j", "--json", action="store_true", help="print JSON: boards, their IPUs, processes")


def run(arguments: argparse.Namespace) -> int:
    """Prints what was asked for.

    Args:
        arguments: As declared by `add_arguments`.

    Returns:
        Exit status, as `info.answer` has it.
    """

    def text(system: System, holders: Mapping[int, Holder]) -> str:
        if arguments.json:
            return json.dumps(inventory.cards(system, holders), indent=2)
        return f"{listing.summary(system)}\n{listing.processes(holders)}"

    return info.answer(arguments.program, text)
