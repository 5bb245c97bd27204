"""`tf-ipu profile`: converts a profile to an HTML page, a trace or a text summary."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys

from tf_ipu_shim.cli import tensorboard
from tf_ipu_shim.machine.environment import log_level
from tf_ipu_shim.profiling import page, reader, trace, writer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument("profile", metavar="PROFILE", help="a program's profile.pop, or its folder")
    parser.add_argument("--html", metavar="FILE", help="write a page to look at in a browser")
    parser.add_argument("--trace", metavar="FILE", help="write a trace for chrome://tracing or Perfetto")
    parser.add_argument("--tensorboard", metavar="LOGDIR", help="write the trace where TensorBoard's profiler finds it")


def run(arguments: argparse.Namespace) -> int:
    """Writes what is asked for, and prints the program at a glance."""
    try:
        profile = reader.read_profile(arguments.profile)
    except (FileNotFoundError, ValueError) as error:
        print(f"tf-ipu profile: {error}", file=sys.stderr)
        return 2
    if arguments.html:
        pathlib.Path(arguments.html).write_text(page.render_page(profile, reader.read_runs(arguments.profile)))
    if arguments.trace:
        pathlib.Path(arguments.trace).write_text(json.dumps(trace.make_trace(profile)))
    if arguments.tensorboard:
        os.environ.setdefault(log_level.TENSORFLOW, "2")  # what it says of the processor while it is imported
        print(f"Trace: {tensorboard.write_log(profile, arguments.tensorboard)}", file=sys.stderr)
    print("\n".join(_format_summary(writer.summarize(profile))))
    return 0


def _format_summary(summary: dict[str, object]) -> list[str]:
    facts = json.loads(json.dumps(summary))
    milliseconds = facts["cycles"] / facts["clock_hz"] * 1e3
    lines = [
        f"{facts['program']}: {facts['cycles']:,} cycles a run, about {milliseconds:.3g} ms "
        f"on {facts['ipus']} x {facts['chip_title']}; {'fits' if facts['fits'] else 'does NOT fit'}"
    ]
    for ipu in facts["by_ipu"]:
        used = ipu["always_live_bytes"] + ipu["not_always_live_bytes"]
        lines.append(f"  IPU {ipu['ipu']}: {used:,} bytes, busy for {ipu['busy_cycles']:,.0f} cycles")
    lines.append("  longest compute sets:")
    for compute_set in facts["longest_compute_sets"][:10]:
        lines.append(f"  {compute_set['cycles'] * compute_set['runs']:>16,.0f} cycles  {compute_set['name']}")
    return lines
