"""Commands of Graphcore's SDK under their own names: `gc-info`, `gc-inventory`, `gc-monitor`, `poprun`."""

from __future__ import annotations

import sys

from tf_ipu_shim import cli


def gc_info() -> int:
    """The `gc-info` command."""
    return cli.execute(cli.COMMANDS["info"], "gc-info", sys.argv[1:])


def gc_inventory() -> int:
    """The `gc-inventory` command."""
    command = cli.Command("tf_ipu_shim.cli.inventory", "print the attributes of every device")
    return cli.execute(command, "gc-inventory", sys.argv[1:])


def gc_monitor() -> int:
    """The `gc-monitor` command."""
    command = cli.Command("tf_ipu_shim.cli.monitor", "print the simulated IPUs, and who uses them")
    return cli.execute(command, "gc-monitor", sys.argv[1:])


def poprun() -> int:
    """The `poprun` command."""
    return cli.execute(cli.COMMANDS["poprun"], "poprun", sys.argv[1:])
