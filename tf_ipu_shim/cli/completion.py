"""`tf-ipu completion`: prints shell completion for commands, options and file names."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping
from typing import Any

from tf_ipu_shim import cli

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to read what is printed")


def run(arguments: argparse.Namespace) -> int:
    """Prints the shell's functions."""
    try:
        import shtab
    except ImportError:
        print(
            "tf-ipu completion: shtab, which writes the shell's functions, is not installed: pip install shtab",
            file=sys.stderr,
        )
        return 2
    print(shtab.complete(_all_commands(shtab.FILE), arguments.shell))
    return 0


def _all_commands(files: Mapping[str, Any]) -> argparse.ArgumentParser:
    """Returns one parser with all commands; the program itself loads only the requested one."""
    root_parser = argparse.ArgumentParser(prog=cli.PROGRAM)
    root_parser.add_argument("--version", action="store_true", help="say which version this is")
    commands = root_parser.add_subparsers()
    for name, command in cli.COMMANDS.items():
        parser = commands.add_parser(name, help=command.help, description=command.help)
        importlib.import_module(command.module).add_arguments(parser)
        for action in parser._actions:
            if not action.option_strings and not action.choices:
                action.complete = files  # type: ignore[attr-defined]
    return root_parser
