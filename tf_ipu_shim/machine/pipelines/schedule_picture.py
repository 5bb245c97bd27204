"""Draws a pipeline's timetable as text and SVG."""

from __future__ import annotations

import argparse
import pathlib

from tf_ipu_shim.machine.pipelines.pipeline_schedule import SCHEDULES, PipelineTimetable, Work, fifo_slots

_FORWARD, _BACKWARD, _UPDATE = "#a9c7e8", "#f2c49b", "#b9b9b9"
_LEFT, _TOP, _WIDTH, _HEIGHT = 60, 66, 34, 22


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of `tf-ipu schedule`."""
    parser.add_argument("--stages", type=int, default=4, metavar="N", help="forward stages, one on each IPU (4)")
    parser.add_argument("--mini-batches", type=int, default=8, metavar="M", help="gradient_accumulation_count (8)")
    parser.add_argument(
        "--schedule", type=str.capitalize, default=SCHEDULES[0], choices=SCHEDULES, help="PipelineSchedule (Grouped)"
    )
    parser.add_argument("--inference", action="store_true", help="without backward stages")
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE", help="write an image as well (SVG)")


def as_text(timetable: PipelineTimetable) -> str:
    """Returns a line for each IPU, a column for each slot; `F3` is mini-batch 3 forward, `B3` backward, `U` the update.

    Example:
        >>> text = as_text(PipelineTimetable(schedule="Interleaved", stages=2, mini_batches=2))
        >>> print(text.splitlines()[2].rstrip())
        IPU 1  .   F0  B0  F1  B1  .   U
    """
    rows = [["slot", *map(str, range(timetable.slots))]]
    for stage, cells in enumerate(_cells(timetable)):
        rows.append([f"IPU {stage}", *("+".join(map(str, cell)) or "." for cell in cells)])
    if timetable.training:
        rows = [[*row, "" if index == 0 else "U"] for index, row in enumerate(rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines += ["", _figures(timetable)]
    if timetable.training:
        lines.append(_waiting(timetable))
    return "\n".join(lines)


def as_svg(timetable: PipelineTimetable) -> str:
    """Returns the same as an image: in a slot with both directions, forward is above and backward below.

    Example:
        >>> as_svg(PipelineTimetable(schedule="Grouped", stages=2, mini_batches=4)).startswith("<svg")
        True
    """
    has_both_directions = timetable.training and timetable.schedule == "Grouped"
    row = _HEIGHT * (2 if has_both_directions else 1) + 4
    columns = timetable.slots + timetable.training
    height = _TOP + row * timetable.stages + 34
    width = max(_LEFT + _WIDTH * columns + 12, 620)
    title = f"{timetable.schedule}: {timetable.stages} stages, {timetable.mini_batches} mini-batches"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" font-size="14">{title}</text>',
    ]
    legend = [(_FORWARD, "forward"), (_BACKWARD, "backward"), (_UPDATE, "update")]
    for index, (colour, meaning) in enumerate(legend[: 3 if timetable.training else 1]):
        x = 10 + 90 * index
        parts.append(f'<rect x="{x}" y="31" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 17}" y="41">{meaning}</text>')
    for slot in range(timetable.slots):
        x = _LEFT + _WIDTH * slot + _WIDTH // 2
        parts.append(f'<text x="{x}" y="{_TOP - 6}" font-size="10" fill="#666666" text-anchor="middle">{slot}</text>')
    for stage, cells in enumerate(_cells(timetable)):
        y = _TOP + row * stage
        parts.append(f'<text x="10" y="{y + row // 2 + 2}">IPU {stage}</text>')
        for slot, cell in enumerate(cells):
            for work in cell:
                colour = _BACKWARD if work.backward else _FORWARD
                parts += _box(slot, y + _HEIGHT * (has_both_directions and work.backward), _HEIGHT, colour, str(work))
        if timetable.training:
            parts += _box(timetable.slots, y, row - 4, _UPDATE, "U")
    parts.append(f'<text x="10" y="{height - 12}">{_figures(timetable)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _box(slot: int, y: int, height: int, colour: str, text: str) -> list[str]:
    x = _LEFT + _WIDTH * slot
    return [
        f'<rect x="{x}" y="{y}" width="{_WIDTH - 2}" height="{height - 2}" fill="{colour}"/>',
        f'<text x="{x + _WIDTH // 2 - 1}" y="{y + height // 2 + 3}" text-anchor="middle">{text}</text>',
    ]


def _cells(timetable: PipelineTimetable) -> list[list[list[Work]]]:
    """For each stage and slot, the work done there."""
    cells: list[list[list[Work]]] = [[[] for _ in range(timetable.slots)] for _ in range(timetable.stages)]
    for work in timetable.work():
        cells[work.stage][work.slot].append(work)
    return cells


def _figures(timetable: PipelineTimetable) -> str:
    times, idle = timetable.stage_times, timetable.idle_share
    return f"{timetable.slots} slots, together {times} times as long as a stage. An IPU waits for {idle:.0%} of that."


def _waiting(timetable: PipelineTimetable) -> str:
    schedule, stages, training = timetable.schedule, timetable.stages, timetable.training
    waiting = ", ".join(str(fifo_slots(schedule, stages, stage, training)) for stage in range(stages))
    return f"Mini-batches that wait for their backward stage, on IPU 0 and on: {waiting}"
