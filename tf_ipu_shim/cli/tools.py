"""Defines the entry points of Graphcore's SDK commands: `gc-info`, `gc-inventory`, `gc-monitor` and `poprun`."""

from __future__ import annotations

import sys

from tf_ipu_shim import cli
from tf_ipu_shim.cli import info, inventory

INVENTORY = "print the attributes of every device"
MONITOR = "print the simulated IPUs, and who uses them"
"""The purpose of each of these commands, as their help prints it."""


def gc_info() -> int:
    """Returns the `gc-info` command."""
    return cli.execute(info, cli.COMMANDS["info"].help, "gc-info", sys.argv[1:], cli.VARIABLES_OF_SYSTEMS)


def gc_inventory() -> int:
    """Returns the `gc-inventory` command."""
    return cli.execute(inventory.INVENTORY, INVENTORY, "gc-inventory", sys.argv[1:], cli.VARIABLES_OF_SYSTEMS)


def gc_monitor() -> int:
    """Returns the `gc-monitor` command."""
    return cli.execute(inventory.MONITOR, MONITOR, "gc-monitor", sys.argv[1:], cli.VARIABLES_OF_SYSTEMS)


def poprun() -> int:
    """Returns the `poprun` command."""
    from tf_ipu_shim.cli import poprun

    return cli.execute(poprun, cli.COMMANDS["poprun"].help, "poprun", sys.argv[1:], cli.VARIABLES_OF_SCRIPTS)
