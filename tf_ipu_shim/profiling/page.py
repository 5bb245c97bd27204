"""Renders one profile, or two side by side, as a self-contained HTML page."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from tf_ipu_shim.profiling.comparison import Comparison
from tf_ipu_shim.profiling.pipeline_timeline import FACT, Schedule, find_schedules, leaves_of_steps, map_to_steps
from tf_ipu_shim.profiling.profile import Profile, ProgramRow, parse_facts
from tf_ipu_shim.profiling.reader import Run
from tf_ipu_shim.profiling.timeline_layout import TimelineEvent, lay_out_timeline

_FILES = pathlib.Path(__file__).parent
_MOST_RECTANGLES = 20_000
_MOST_NODES = 30_000


def render_page(profile: Profile, runs: list[Run] | None = None) -> str:
    """Returns the page."""
    data = {
        "facts": parse_facts(profile),
        "options": {row.name: row.value for row in profile.options},
        "ipus": [_ipu_data(profile, ipu) for ipu in range(len(profile.ipus))],
        "variables": [
            [row.ipu, row.name, row.kind, row.bytes, row.always, row.first, row.last, row.line or ""]
            for row in profile.variables
        ],
        "runs": None if runs is None else len(runs),
        **_tree_data(profile),
        **_execution_data(profile),
    }
    return _fill_template("page.html", data)


def render_comparison(
    programs: Iterable[Comparison], removed: Iterable[str], new: Iterable[str], names: tuple[str, str]
) -> str:
    """Two profiles side by side as a page."""
    data = {
        "names": names,
        "programs": [program._asdict() for program in programs],
        "gone": list(removed),
        "new": list(new),
    }
    return _fill_template("comparison.html", data)


def _fill_template(template: str, data: Mapping[str, Any]) -> str:
    # No text of a script's may end the script element early.
    json_text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = (_FILES / template).read_text()
    for placeholder, file in (("/*STYLE*/", "page.css"), ("/*COMMON*/", "page.js"), ("/*SECTIONS*/", "sections.js")):
        page = page.replace(placeholder, (_FILES / file).read_text())
    return page.replace("/*DATA*/null", json_text)


def _ipu_data(profile: Profile, ipu: int) -> dict[str, Any]:
    row = profile.ipus[ipu]
    return {
        "always": row.always_live_bytes,
        "rest": row.not_always_live_bytes,
        "largest": row.largest_step,
        "categories": json.loads(row.categories),
        "remote": json.loads(row.remote),
        "tiles": json.loads(row.tile_bytes),
        "busy": row.busy_cycles,
        "liveness": [[step.op, step.bytes] for step in profile.liveness if step.ipu == row.ipu],
    }


def _tree_data(profile: Profile) -> dict[str, Any]:
    """Returns the nodes of the program tree by id: parent, kind, name, cycles, times, op."""
    rows = profile.programs[:_MOST_NODES]  # a parent's id is smaller than those of its parts
    nodes = [[row.parent, row.kind, row.name, row.cycles, row.times, row.op] for row in rows]
    return {"tree": nodes, "tree_left_out": len(profile.programs) - len(nodes)}


def _execution_data(profile: Profile) -> dict[str, Any]:
    leaves, loops = lay_out_timeline(profile)
    facts = parse_facts(profile)
    pipelines = find_schedules(profile.programs, facts)
    inside = map_to_steps(profile.programs, pipelines)
    parts = leaves_of_steps(profile.programs, inside)
    drawn = outermost = [leaf for leaf in leaves if leaf.row.id not in inside]
    if len(outermost) > _MOST_RECTANGLES:
        shortest = sorted((event.end - event.begin for event in outermost), reverse=True)[_MOST_RECTANGLES]
        drawn = [event for event in outermost if event.end - event.begin > shortest]
    return {
        "ops": _op_data(leaves),
        "drawn": [
            [json.loads(event.row.ipus), event.row.kind, event.row.name, round(event.begin), round(event.end)]
            for event in drawn
        ],
        "left_out": len(outermost) - len(drawn),
        "pipelines": [
            _pipeline_data(parts, pipelines[loop.row.id], loop) for loop in loops if loop.row.id in pipelines
        ],
        "beside": any(row.computation == "feed" for row in profile.programs),
        "error": _error_bounds(profile, leaves),
        "loops": [
            [
                json.loads(loop.row.ipus),
                loop.row.name,
                round(loop.begin),
                round(loop.end),
                loop.row.times,
                loop.row.exact,
                facts.get(FACT, {}).get(str(loop.row.id), [""])[0],
            ]
            for loop in loops
        ],
        "sets": [
            [row.name, row.vertex, row.tiles, row.cycles, row.runs, row.cycles * row.runs]
            for row in profile.compute_sets
        ],
    }


def _op_data(leaves: Iterable[TimelineEvent]) -> list[list[Any]]:
    """For each op and IPU: cycles by kind, bytes that are moved, and the largest temporary memory."""
    ops: dict[tuple[str, str], list[Any]] = {}
    for leaf in leaves:
        row = leaf.row
        op_row = ops.setdefault(
            (row.op, row.ipus),
            [row.op, ", ".join(map(str, json.loads(row.ipus))), row.line or "", 0.0, 0.0, 0.0, 0.0, 0],
        )
        at = {"compute": 3, "host": 5}.get(row.kind, 4)
        op_row[at] += row.cycles * leaf.times
        op_row[6] += row.bytes * leaf.times
        op_row[7] = max(op_row[7], row.temporary_bytes)
    return list(ops.values())


def _pipeline_data(parts: Mapping[int, list[ProgramRow]], schedule: Schedule, loop: TimelineEvent) -> dict[str, Any]:
    """Returns a pipeline's steps for the page, with their first slot and their begin and end in it."""
    drawn = [
        [
            turn.ipu, part.kind, part.name, turn.slot,
            round(turn.begin + part.start - turn.row.start),
            round(turn.begin + part.start - turn.row.start + part.cycles),
        ]
        for turn in schedule.turns
        for part in parts.get(turn.row.id, [])
    ]  # fmt: skip
    return {
        "begin": loop.begin,
        "scale": (loop.end - loop.begin) / max(1, loop.row.cycles),
        "count": schedule.mini_batches,
        "between": schedule.between,
        "slots": schedule.slots,
        "cycles": schedule.cycles,
        "lead": schedule.lead,
        "drawn": sorted(drawn, key=lambda part: part[4]),
    }


def _error_bounds(profile: Profile, leaves: Iterable[TimelineEvent]) -> tuple[float, float]:
    """Returns the least and the most expected cycles, as factors of the modelled cycles."""
    steps = {row.id: row.computation for row in profile.programs}
    factors: dict[str, float] = next(
        (json.loads(row.value) for row in profile.facts if row.name == "error_factors"), {}
    )
    least = most = total = 0.0
    for leaf in leaves:
        factor = factors.get(leaf.row.computation or steps.get(leaf.row.parent, ""), 1.0)
        cycles = leaf.row.cycles * leaf.times
        least, most, total = least + cycles / factor, most + cycles * factor, total + cycles
    return (least / total, most / total) if total else (1.0, 1.0)
