"""Implements `tf-ipu info` and `gc-info`: prints the simulated system and the processes that use its IPUs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping

from tf_ipu_shim.cli.output import formats
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.gc_tools import listing
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.machine.sharing.locks import Holder
from tf_ipu_shim.machine.systems import System


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments; `-l`, `-d`, `-i` and `--ipu-arch` are as in `gc-info`."""
    parser.add_argument("-l", "--list-devices", action="store_true", help="list all devices, as `gc-info -l` does")
    parser.add_argument("-d", "--device-id", type=int, metavar="ID", help="speak of this device only")
    parser.add_argument("-i", "--device-info", action="store_true", help="attributes of the device given with -d")
    parser.add_argument("--ipu-arch", action="store_true", help="architecture of the IPUs, such as ipu2")
    parser.add_argument(
        "--system", metavar="NAME", help="show this system instead of the one in use [env: TF_IPU_SHIM_SYSTEM]"
    )
    formats.add_argument(parser)
    parser.set_defaults(program=parser.prog)
    parser.epilog = f"Systems: {', '.join(systems.SYSTEMS)}."


def run(arguments: argparse.Namespace) -> int:
    """Prints the requested information."""
    if arguments.device_info and arguments.device_id is None:
        return _refuse(arguments.program, "-i needs the device to describe: -d ID.")
    return answer(arguments.program, lambda system, holders: _text(arguments, system, holders), arguments.system)


def answer(program: str, text: Callable[[System, Mapping[int, Holder]], str], name: str | None = None) -> int:
    """Prints the requested facts about a simulated system."""
    try:
        system = systems.named(name) if name else systems.current()
        shown = text(system, attach.in_use(system))
    except (ValueError, attach.LockDirectoryError) as error:
        return _refuse(program, str(error))
    print(shown)
    return 0


def overview(system: System, holders: Mapping[int, Holder]) -> str:
    """Returns the system in a few lines, and which process has attached to which IPUs."""
    return f"{listing.summary(system)}\n{listing.processes(holders)}"


def _text(arguments: argparse.Namespace, system: System, holders: Mapping[int, Holder]) -> str:
    chosen = None if arguments.device_id is None else (system.device(arguments.device_id),)
    if arguments.ipu_arch:
        return system.chip.target
    if arguments.format == formats.JSON:
        return formats.to_json(listing.as_data(system, chosen or system.devices, holders))
    if arguments.device_info and chosen:
        return listing.device_info(system, chosen[0], holders)
    if arguments.list_devices or chosen:
        return listing.device_list(system, chosen)
    return overview(system, holders)


def _refuse(program: str, why: str) -> int:
    print(f"{program}: {why}", file=sys.stderr)
    return 2
