"""`tf-ipu run`: runs an unchanged script, and reports on its memory when it ends."""

from __future__ import annotations

import argparse
import pathlib
import sys

from tf_ipu_shim.cli import runner

NAME = "tf-ipu run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options, and everything after them for the runner."""
    parser.add_argument("--memory", action="store_true", help="print the memory report when the script ends, or fails")
    parser.add_argument("--memory-json", metavar="FILE", help="write the memory report as JSON")
    parser.add_argument("--memory-svg", metavar="FILE", help="write the memory report as a picture")
    parser.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        metavar="...",
        help="[--tf1] [--sdk VERSION] [--system NAME] [--execution WAY] (SCRIPT | -m MODULE) ARGS...",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs the script.

    Args:
        arguments: as `add_arguments` describes.

    Returns:
        The script's exit status.

    Example:
        >>> run(argparse.Namespace(arguments=["train.py"], memory=False, memory_json="memory.json", memory_svg=None))
        0
    """
    try:
        status = runner.run(arguments.arguments)
    finally:
        if arguments.memory or arguments.memory_json or arguments.memory_svg:
            _report(arguments)
    return status


def _report(arguments: argparse.Namespace) -> None:
    if "tensorflow" not in sys.modules:
        print("The script never imported TensorFlow: there is no memory to report on.", file=sys.stderr)
        return
    from tf_ipu_shim.profile import memory_report

    report = memory_report()
    if arguments.memory:
        print(report.to_text(), flush=True)
    if arguments.memory_json:
        pathlib.Path(arguments.memory_json).write_text(report.to_json() + "\n")
    if arguments.memory_svg:
        pathlib.Path(arguments.memory_svg).write_text(report.to_svg())
