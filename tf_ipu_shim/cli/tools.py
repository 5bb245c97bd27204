"""Graphcore's SDK commands under their own names: `gc-info`, `gc-inventory`, `gc-monitor`, `poprun`."""

from __future__ import annotations

import sys

from tf_ipu_shim import cli
from tf_ipu_shim.cli import inventory
from tf_ipu_shim.machine.gc_tools import info


def gc_info() -> int:
    """The `gc-info` command."""
    return cli.execute(info, cli.COMMANDS["info"].help, "gc-info", sys.argv[1:])


def gc_inventory() -> int:
    """The `gc-inventory` command."""
    return cli.execute(inventory.INVENTORY, "print the attributes of every device", "gc-inventory", sys.argv[1:])


def gc_monitor() -> int:
    """The `gc-monitor` command."""
    return cli.execute(inventory.MONITOR, "print the simulated IPUs, and who uses them", "gc-monitor", sys.argv[1:])


def poprun() -> int:
    """The `poprun` command."""
    from tf_ipu_shim.cli import poprun

    return cli.execute(poprun, cli.COMMANDS["poprun"].help, "poprun", sys.argv[1:])
