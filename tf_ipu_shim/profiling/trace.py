"""Exports a profile as a Chrome/Perfetto trace: a process for each IPU with a track for each kind of work.

Each IPU also has a counter of its live memory, and arrows show copies between IPUs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tf_ipu_shim.profiling.pipeline_timeline import Schedule, find_schedules, leaves_of_steps, map_to_steps
from tf_ipu_shim.profiling.profile import HOST, Profile, ProgramRow, parse_facts
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
    events.extend(_memory_counters(profile, lay_out_timeline(profile)[0], scale))
    events.extend(_flows(leaves, tracks.index(TRACKS["links"]), scale))
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


def _memory_counters(profile: Profile, leaves: Iterable[TimelineEvent], scale: float) -> Iterator[dict[str, Any]]:
    """Yields the live memory of each IPU at the start of each liveness step with a duration."""
    parents = {row.id: row.parent for row in profile.programs}
    begins: dict[int, float] = {}
    for leaf in leaves:  # in the order in which they begin
        node = leaf.row.id
        while node >= 0 and node not in begins:
            begins[node] = leaf.begin
            node = parents[node]
    always = {row.ipu: row.always_live_bytes for row in profile.ipus}
    for step in profile.liveness:
        if step.program in begins:
            yield {
                "ph": "C",
                "name": "live memory",
                "pid": step.ipu,
                "ts": begins[step.program] * scale,
                "args": {"always live": always[step.ipu], "not always live": step.bytes},
            }


def _flows(leaves: Iterable[TimelineEvent], track: int, scale: float) -> Iterator[dict[str, Any]]:
    """Yields an arrow for each copy from one IPU to another: from its begin on the source to its end there."""
    flow_id = 0
    for leaf in leaves:
        on = json.loads(leaf.row.ipus)
        for size, source, destination in json.loads(leaf.row.moves or "[]"):
            if source not in on or HOST in (source, destination):
                continue
            flow_id += 1
            common = {"name": "copy", "cat": "links", "id": flow_id, "tid": track, "args": {"bytes": size}}
            yield {**common, "ph": "s", "pid": source, "ts": leaf.begin * scale}
            yield {**common, "ph": "f", "bp": "e", "pid": destination, "ts": leaf.end * scale}
