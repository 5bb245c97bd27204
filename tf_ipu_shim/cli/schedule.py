"""`tf-ipu schedule`: draws a pipeline's timetable as text and SVG."""

from __future__ import annotations

import argparse
import sys

from tf_ipu_shim.cli.output import terminal
from tf_ipu_shim.machine.pipelines import schedule_picture
from tf_ipu_shim.machine.pipelines.pipeline_schedule import PipelineTimetable

add_arguments = schedule_picture.add_arguments


def run(arguments: argparse.Namespace) -> int:
    """Prints the timetable, and writes the image if one is requested."""
    try:
        timetable = PipelineTimetable(
            schedule=arguments.schedule,
            stages=arguments.stages,
            mini_batches=arguments.mini_batches,
            training=not arguments.inference,
        )
    except ValueError as error:
        print(f"tf-ipu schedule: {error}", file=sys.stderr)
        return 2
    terminal.show(schedule_picture.as_text(timetable), hint="--svg FILE draws them.")
    if arguments.svg:
        arguments.svg.write_text(schedule_picture.as_svg(timetable), encoding="utf-8")
        print(f"Image: {arguments.svg}", file=sys.stderr)
    return 0
