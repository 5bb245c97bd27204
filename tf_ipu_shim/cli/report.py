"""Prints or writes a script's memory report when the script ends, and compares it with a baseline."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tf_ipu_shim.cli.output import formats, sizes, terminal
from tf_ipu_shim.machine.environment import engine_options
from tf_ipu_shim.profiling import baseline, settings, writer

if TYPE_CHECKING:
    from tf_ipu_shim.memory_reports import MemoryReport

WITHOUT_REPORT = {
    "memory": False,
    "memory_json": None,
    "memory_svg": None,
    "baseline": None,
    "write_baseline": None,
    "tolerance": 0.0,
    "profile": None,
    "exact_bytes": False,
    "top": 5,
}
"""The values of the report's options for a command without them."""
_FILES = {"--memory-json": "memory_json", "--memory-svg": "memory_svg", "--write-baseline": "write_baseline"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the report."""
    parser.add_argument("--memory", action="store_true", help="print the memory report when the script ends, or fails")
    sizes.add_arguments(parser, 5, "largest allocations of the memory report")
    formats.add_argument(parser, formats.GITHUB)
    parser.add_argument("--memory-json", metavar="FILE", help="write the memory report as JSON")
    parser.add_argument("--memory-svg", metavar="FILE", help="write the memory report as an image (SVG)")
    parser.add_argument(
        "--baseline", metavar="FILE", help="end with status 1 if a program needs more memory than FILE says"
    )
    parser.add_argument("--write-baseline", metavar="FILE", help="write the memory of all programs for --baseline")
    parser.add_argument(
        "--tolerance",
        metavar="PERCENT",
        type=float,
        default=0.0,
        help="by how much --baseline lets a peak grow (default 0)",
    )
    parser.add_argument(
        "--profile", metavar="DIR", help="write a profile of each program to DIR [env: TF_IPU_SHIM_PROFILE_DIR]"
    )


def find_problem(options: argparse.Namespace) -> str | None:
    """Returns why a report could not be written, before the script runs for hours; None if it can.

    Example:
        >>> find_problem(argparse.Namespace(profile=None, baseline=None, memory_json="no/such/directory/m.json"))
        "--memory-json: there is no directory 'no/such/directory'"
    """
    if options.profile:
        try:
            engine_options.current()
        except ValueError as error:
            return str(error)
        if reason := _directory_problem(pathlib.Path(options.profile)):
            return f"--profile: {reason}"
    if options.baseline:
        try:
            baseline.read_baseline(options.baseline)
        except FileNotFoundError:
            return f"--baseline: there is no file {options.baseline!r}; --write-baseline writes it"
        except (OSError, ValueError) as error:
            return f"--baseline: {error}"
    for option, name in _FILES.items():
        file = getattr(options, name)
        if file is not None and (reason := _file_problem(file)):
            return f"{option}: {reason}"
    return None


def _file_problem(file: str) -> str | None:
    """Returns why a file cannot be written; None if it can."""
    folder = os.path.dirname(file) or "."
    if not os.path.isdir(folder):
        return f"there is no directory {folder!r}"
    if os.path.isdir(file):
        return f"{file!r} is a directory"
    if not os.access(file if os.path.exists(file) else folder, os.W_OK):
        return f"{file!r} cannot be written"
    return None


def _directory_problem(folder: pathlib.Path) -> str | None:
    """Returns why files cannot be written into a directory, which is created when needed; None if they can."""
    existing = next(directory for directory in (folder, *folder.absolute().parents) if directory.exists())
    if not existing.is_dir():
        return f"{str(existing)!r} is no directory"
    return None if os.access(existing, os.W_OK | os.X_OK) else f"{str(existing)!r} cannot be written to"


def begin_report(options: argparse.Namespace) -> None:
    """Enables profiles of this process's programs if requested.

    A script that asks for its own profiles gets those too, in its own directory.
    """
    if options.profile:
        os.environ[settings.DIRECTORY_VARIABLE] = os.path.abspath(options.profile)


def write_reports(options: argparse.Namespace) -> None:
    """Writes the report of this process if one was requested."""
    if options.profile:
        for file in sorted(pathlib.Path(options.profile).glob(f"{writer.PREFIX}*__{os.getpid()}__*/{writer.FILE}")):
            print(f"Profile: {file}", file=sys.stderr)
    if not (options.memory or options.memory_json or options.memory_svg):
        return
    if "tensorflow" not in sys.modules:
        print("The script never imported TensorFlow: there is no memory to report on.", file=sys.stderr)
        return
    from tf_ipu_shim.memory_reports import memory_report

    report = memory_report()
    if options.memory:
        _print_report(report, options)
    if options.memory_json:
        pathlib.Path(options.memory_json).write_text(report.to_json() + "\n")
        print(f"Memory report: {options.memory_json}", file=sys.stderr)
    if options.memory_svg:
        pathlib.Path(options.memory_svg).write_text(report.to_svg())
        print(f"Memory image: {options.memory_svg}", file=sys.stderr)


def _print_report(report: MemoryReport, options: argparse.Namespace) -> None:
    if options.format == formats.JSON:
        print(report.to_json())
    else:
        terminal.show(report.to_text(options.top, options.verbose), hint="--memory-json FILE has all of it.")
    sys.stdout.flush()


def compare_with_baseline(options: argparse.Namespace) -> int:
    """Compares this process's programs with a baseline, or writes one, if that was asked for."""
    if not (options.baseline or options.write_baseline):
        return 0
    now: baseline.Baseline = {}
    if "tensorflow" in sys.modules:
        from tf_ipu_shim.testing.memory import baseline_of

        now = baseline_of()
    if options.write_baseline:
        baseline.write_baseline(now, options.write_baseline)
        print(f"Baseline: {options.write_baseline}", file=sys.stderr)
    if not options.baseline:
        return 0
    if not now:
        print(f"No program ran on IPUs: there is nothing to compare with {options.baseline}", file=sys.stderr)
        return 1
    lines = baseline.find_growth(baseline.read_baseline(options.baseline), now, options.tolerance)
    _print_growth(lines, options)
    if lines:
        return 1
    print(f"Memory: no program needs more than {options.baseline} says.", file=sys.stderr)
    return 0


def _print_growth(lines: Sequence[str], options: argparse.Namespace) -> None:
    """Prints memory growth over the baseline, one entry for each program and IPU."""
    if options.format == formats.JSON:
        print(formats.to_json({"baseline": options.baseline, "grown": _entries(lines)}))
    elif options.format == formats.GITHUB:
        for entry in _entries(lines):
            print(formats.annotation("error", "IPU memory grew", entry, options.baseline))
    elif lines:
        print("\n".join([f"More memory than {options.baseline} says:", *lines]), file=sys.stderr)


def _entries(lines: Sequence[str]) -> list[str]:
    """Joins each line with the indented ones that follow it."""
    entries: list[str] = []
    for line in lines:
        if line.startswith(" ") and entries:
            entries[-1] += f"\n{line}"
        else:
            entries.append(line)
    return entries
