"""`tf-ipu fit`: estimates whether a script's programs fit on other IPU systems, and how fast they would run."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tf_ipu_shim.cli import runner
from tf_ipu_shim.cli.output import formats, sizes, terminal
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import execution_mode

if TYPE_CHECKING:
    from tf_ipu_shim.runtime.captured_programs import CapturedProgram


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options: the runner's, and the systems to try."""
    formats.add_argument(parser)
    runner.add_arguments(parser, chooses_system=False, only_runs=False)
    parser.set_defaults(system=None)
    sizes.add_arguments(parser, top=4, listed="programs that are largest or run longest")
    parser.add_argument(
        "--system",
        dest="on",
        metavar="NAMES",
        type=_parse_names,
        default=[],
        help="systems to try, such as pod4,bow-pod16 (default: the smallest of each chip)",
    )
    parser.add_argument(
        "--chips", metavar="CHIPS", type=_parse_names, default=[], help="chips to try, such as gc200,bow"
    )
    parser.add_argument(
        "--batch",
        metavar="OPTION=SIZES",
        type=_parse_batch_size,
        help="an option of the script's and its values: runs it with each, as in --batch=--batch-size=8,16",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs a script without computing anything, and prints how its programs fit."""
    if arguments.batch:
        return _run_each_batch_size(arguments)
    from tf_ipu_shim import capacity
    from tf_ipu_shim.runtime import captured_programs

    try:
        capacity.systems_for(arguments.on, arguments.chips, 1)
    except ValueError as error:
        print(f"tf-ipu fit: {error}", file=sys.stderr)
        return 2
    if systems.ENVIRONMENT_VARIABLE not in os.environ and arguments.on:
        # The script has to get the IPUs that it asks for: those of the largest of the systems.
        arguments.system = max(map(systems.named, arguments.on), key=lambda system: system.num_ipus).name
    os.environ.pop(execution_mode.CHECK_INDICES, None)
    os.environ[execution_mode.ENVIRONMENT_VARIABLE] = execution_mode.XLA  # no program runs, so no mode is chosen
    print("tf-ipu fit: nothing is computed. All results that the script gets are zeros.", file=sys.stderr, flush=True)
    captured_programs.begin()
    try:
        status = runner.run(arguments)
    finally:
        programs = captured_programs.end()
    sys.stdout.flush()
    if status == 2 and not programs:
        return status
    if status and not programs:
        print(f"The script ended with status {status} before a program was compiled for IPUs.", file=sys.stderr)
        return 1
    most = max((program.ipus for program in programs), default=1)
    return _report_result(programs, capacity.systems_for(arguments.on, arguments.chips, most), status, arguments)


def _report_result(
    programs: Sequence[CapturedProgram],
    candidates: Sequence[systems.System],
    status: int,
    arguments: argparse.Namespace,
) -> int:
    """Prints the fit of a script's programs on the systems; returns the exit status."""
    from tf_ipu_shim import capacity

    if arguments.format == formats.JSON:
        print(formats.to_json(capacity.to_records(programs, candidates)))
    else:
        terminal.show(capacity.to_text(programs, candidates, arguments.top))
    if status:
        print(
            f"The script ended with status {status}. Later programs are missing here. A script that checks its "
            "results ends like this, because all results are zeros.",
            file=sys.stderr,
        )
    fits = any(
        all(program.ipus <= system.num_ipus and capacity.estimate(program, system.chip).fits for program in programs)
        for system in candidates
    )
    return 0 if fits and programs and not status else 1


def _run_each_batch_size(arguments: argparse.Namespace) -> int:
    """Runs the script with each batch size, in a process each; returns the worst status."""
    option, sizes = arguments.batch
    options = ["--tf1"] if arguments.tf1 else []
    options += [
        "--format",
        arguments.format,
        "--top",
        str(arguments.top),
        *(["--bytes"] if arguments.exact_bytes else []),
    ]
    for name, value in (
        ("--sdk", arguments.sdk),
        ("--system", ",".join(arguments.on)),
        ("--chips", ",".join(arguments.chips)),
    ):
        options += [name, value] if value else []
    script = ["-m", *arguments.module] if arguments.module else [arguments.script or "", *arguments.arguments]
    statuses = []
    for size in sizes:
        print(f"== {option} {size}", flush=True, file=sys.stdout if arguments.format == formats.TEXT else sys.stderr)
        statuses.append(
            subprocess.run([sys.executable, "-m", "tf_ipu_shim.cli", "fit", *options, *script, option, size]).returncode
        )
    return max(statuses)


def _parse_names(text: str) -> list[str]:
    return [name for name in text.replace(" ", "").split(",") if name]


def _parse_batch_size(text: str) -> tuple[str, list[str]]:
    option, equals, sizes = text.rpartition("=")
    if not equals or not option or not _parse_names(sizes):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form --batch-size=8,16: option, equals sign, sizes.")
    return option, _parse_names(sizes)
