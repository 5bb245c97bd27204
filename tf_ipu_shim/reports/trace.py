"""A profile as a trace that Chrome and Perfetto open: one process an IPU, a track for each kind of work."""

from __future__ import annotations

import json
from typing import Any

from tf_ipu_shim.reports.placed import Placed, placed
from tf_ipu_shim.reports.profile import Profile

TRACKS = {
    "compute": "compute",
    "exchange": "exchange",
    "sync": "exchange",
    "links": "exchange between IPUs",
    "host": "host",
}
_LOOPS = "loops"


def trace_of(profile: Profile) -> dict[str, Any]:
    """The trace of one run.

    Args:
        profile: of a program.

    Returns:
        What `json.dump` writes to a file. Times are microseconds of the chip's clock; a loop is drawn once, stretched
        over its iterations.
    """
    facts = {row.name: json.loads(row.value) for row in profile.facts}
    scale = 1e6 / facts["clock_hz"]
    tracks = [*dict.fromkeys(TRACKS.values()), _LOOPS]
    events: list[dict[str, Any]] = []
    for ipu in profile.ipus:
        events.append({"ph": "M", "name": "process_name", "pid": ipu.ipu, "args": {"name": f"IPU {ipu.ipu}"}})
        for number, name in enumerate(tracks):
            named = {"ph": "M", "name": "thread_name", "pid": ipu.ipu, "tid": number, "args": {"name": name}}
            events.append(named)
    leaves, loops = placed(profile)
    for one in leaves:
        events.extend(_events(one, tracks.index(TRACKS.get(one.row.kind, "compute")), scale))
    for one in loops:
        events.extend(_events(one, tracks.index(_LOOPS), scale))
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"program": facts["program"]}}


def _events(one: Placed, track: int, scale: float) -> list[dict[str, Any]]:
    row = one.row
    described = {"op": row.op, "line": row.line, "cycles": row.cycles, "times": one.times, "bytes": row.bytes}
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
            "ts": one.begin * scale,
            "dur": (one.end - one.begin) * scale,
            "args": {key: value for key, value in described.items() if value},
        }
        for ipu in json.loads(row.ipus)
    ]
