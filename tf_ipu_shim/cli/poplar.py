"""`tf-ipu poplar`: builds the Poplar libraries and prints their location for compilers and shells."""

from __future__ import annotations

import argparse
import sys

from tf_ipu_shim import errors
from tf_ipu_shim.poplar_sdk.toolchain import build, environment


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.add_argument("--shell", action="store_true", help="print lines for eval that set a shell's search paths")
    parser.add_argument("--cflags", action="store_true", help="print the compiler's flags for the headers")
    parser.add_argument("--libs", action="store_true", help="print the linker's flags for all libraries")


def run(arguments: argparse.Namespace) -> int:
    """Prints the requested flags; without options the folder of the libraries."""
    try:
        prefix = build.ensure_built()
    except errors.PluginError as error:
        print(error, file=sys.stderr)
        return 1
    flags = [environment.compiler_flags(prefix)] if arguments.cflags else []
    flags += [environment.linker_flags(prefix)] if arguments.libs else []
    if arguments.shell:
        print(environment.shell_lines(prefix))
    if flags:
        print(" ".join(flags))
    if not (arguments.shell or flags):
        print(prefix)
    return 0
