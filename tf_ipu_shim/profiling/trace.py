"""Exports a profile as a Chrome/Perfetto trace: one process per IPU, one track per kind of work."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tf_ipu_shim.profiling.pipeline_timeline import Schedule, find_schedules, leaves_of_steps, map_to_steps
from tf_ipu_shim.profiling.profile import Profile, ProgramRow, parse_facts
from tf_ipu_shim.profiling.timeline_layout import TimelineEvent, lay_out_timeline

TRACKS = {
    "compute": "compute",
    "exchange": "exchange",
    "sync": "exchange",
    "links": "exchange between IPUs",
    "host": "host",
}
_LOOPS = "loops"
_MOST = 100_000
"""Steps of a pipeline that are drawn slot by slot; of a longer one there is one mini-batch."""


def make_trace(profile: Profile) -> dict[str, Any]:
    """Returns the trace of one run."""
    facts = parse_facts(profile)
    scale = 1e6 / facts["clock_hz"]
    tracks = [*dict.fromkeys(TRACKS.values()), _LOOPS]
    events: list[dict[str, Any]] = []
    for ipu in profile.ipus:
        events.append({"ph": "M", "name": "process_name", "pid": ipu.ipu, "args": {"name": f"IPU {ipu.ipu}"}})
        for track, name in enumerate(tracks):
            named = {"ph": "M", "name": "thread_name", "pid": ipu.ipu, "tid": track, "args": {"name": name}}
            events.append(named)
    leaves, loops = lay_out_timeline(profile)
    pipelines = {
        loop: event
        for loop, event in find_schedules(profile.programs, facts).items()
        if event.mini_batches * len(event.turns) <= _MOST
    }
    inside = map_to_steps(profile.programs, pipelines)
    leaves = [leaf for leaf in leaves if leaf.row.id not in inside]
    parts = leaves_of_steps(profile.programs, inside)
    for event in loops:
        if event.row.id in pipelines:
            leaves.extend(_unroll_pipeline(pipelines[event.row.id], event, parts))
    for event in leaves:
        events.extend(_events(event, tracks.index(TRACKS.get(event.row.kind, "compute")), scale))
    for event in loops:
        events.extend(_events(event, tracks.index(_LOOPS), scale))
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"program": facts["program"]}}


def _unroll_pipeline(
    schedule: Schedule, loop: TimelineEvent, parts: Mapping[int, list[ProgramRow]]
) -> Iterator[TimelineEvent]:
    """Unrolls a pipeline's mini-batches into their slots."""
    scale = (loop.end - loop.begin) / max(1, loop.row.cycles)
    for slot in range(schedule.slots):
        for turn, _, begin in schedule.in_slot(slot):
            for part in parts.get(turn.row.id, ()):
                begins = loop.begin + scale * (begin + part.start - turn.row.start)
                row = part._replace(ipus=json.dumps([turn.ipu]))
                yield TimelineEvent(row, begins, begins + scale * part.cycles, loop.times)


def _events(event: TimelineEvent, track: int, scale: float) -> list[dict[str, Any]]:
    row = event.row
    described = {"op": row.op, "line": row.line, "cycles": row.cycles, "times": event.times, "bytes": row.bytes}
    name = f"{row.name} ({row.times:g} times)" if row.kind == "loop" else row.name
    if row.kind == "sync":
        name = "sync"
    return [
        {
            "ph": "X",
            "name": name,
            "cat": row.kind,
            "pid": ipu,
            "tid": track,
            "ts": event.begin * scale,
            "dur": (event.end - event.begin) * scale,
            "args": {key: value for key, value in described.items() if value},
        }
        for ipu in json.loads(row.ipus)
    ]
