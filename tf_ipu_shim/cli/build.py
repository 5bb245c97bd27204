"""`tf-ipu build`: compiles the C++ plugin now instead of at first use, and prints the library's path."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from tf_ipu_shim import errors
from tf_ipu_shim.cli import requirements
from tf_ipu_shim.cli.output import import_log_filter
from tf_ipu_shim.machine.environment import log_level
from tf_ipu_shim.plugin import build, cache


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.add_argument("--rebuild", action="store_true", help="compile even if the cache has the library")
    parser.add_argument(
        "--into-package",
        action="store_true",
        help="store the library in the package, for all users of this environment, instead of in the user's cache",
    )


def run(arguments: argparse.Namespace) -> int:
    """Builds the plugin and prints its path; returns the exit status."""
    if missing := requirements.missing_tensorflow():
        print(f"tf-ipu build: {missing}", file=sys.stderr)
        return 2
    directory = cache.PREBUILT_DIRECTORY if arguments.into_package else None
    os.environ.setdefault(log_level.TENSORFLOW, "2")  # what it says of the processor while it is imported
    import_log_filter.filter_import_log()
    try:
        print(build.ensure_built(rebuild=arguments.rebuild or arguments.into_package, directory=directory))
    except errors.PluginError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0
