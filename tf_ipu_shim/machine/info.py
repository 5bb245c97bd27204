"""`tf-ipu info`: the simulated system, and who uses it."""

from __future__ import annotations

import argparse
import json
import sys

from tf_ipu_shim.machine import attach, listing, systems


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments; `-l`, `-d` and `-i` are those of `gc-info`."""
    parser.add_argument("-l", "--list-devices", action="store_true", help="list all devices, as `gc-info -l` does")
    parser.add_argument("-d", "--device-id", type=int, metavar="ID", help="speak of this device only")
    parser.add_argument("-i", "--device-info", action="store_true", help="attributes of the device given with -d")
    parser.add_argument("--system", metavar="NAME", help="speak of this system instead of the one in use")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = f"{systems.ENVIRONMENT_VARIABLE} chooses the system in use: {', '.join(systems.SYSTEMS)}."


def run(arguments: argparse.Namespace) -> int:
    """Prints what was asked for.

    Args:
        arguments: As declared by `add_arguments`.

    Returns:
        Exit status: 0, or 2 with a sentence on stderr if something does not exist.
    """
    if arguments.device_info and arguments.device_id is None:
        return _refuse("-i needs the device to describe: -d ID.")
    try:
        system = systems.named(arguments.system) if arguments.system else systems.current()
        chosen = None if arguments.device_id is None else (system.device(arguments.device_id),)
        holders = attach.in_use(system)
    except (ValueError, attach.LockDirectoryError) as error:
        return _refuse(str(error))
    if arguments.json:
        print(json.dumps(listing.as_data(system, chosen or system.devices, holders), indent=2))
    elif arguments.device_info and chosen:
        print(listing.device_info(system, chosen[0], holders))
    elif arguments.list_devices or chosen:
        print(listing.device_list(system, chosen))
    else:
        print(listing.summary(system))
        print(listing.processes(holders))
    return 0


def _refuse(why: str) -> int:
    print(f"tf-ipu info: {why}", file=sys.stderr)
    return 2
