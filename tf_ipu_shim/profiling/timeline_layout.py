"""Lays out a profile's events in time for the trace and the HTML page, each loop drawn once."""

from __future__ import annotations

from typing import NamedTuple

from tf_ipu_shim.profiling.profile import Profile, ProgramRow


class TimelineEvent(NamedTuple):
    """Something that runs.

    Args:
        times: how often it runs in all.
    """

    row: ProgramRow
    begin: float
    end: float
    times: float


def lay_out_timeline(profile: Profile) -> tuple[list[TimelineEvent], list[TimelineEvent]]:
    """Draws a loop once, stretched over all iterations, so that proportions stay."""
    inside: dict[int, list[ProgramRow]] = {}
    for row in profile.programs:
        inside.setdefault(row.parent, []).append(row)
    leaves: list[TimelineEvent] = []
    loops: list[TimelineEvent] = []

    def put(rows: list[ProgramRow], origin: float, first: float, scale: float, times: float) -> None:
        """Rows whose cycle `origin` is drawn at `first`."""
        for row in rows:
            begin = first + (row.start - origin) * scale
            event = TimelineEvent(row, begin, begin + row.cycles * scale, times)
            children = inside.get(row.id)
            if not children:
                leaves.append(event)
            elif row.kind == "loop":
                loops.append(event)
                once = max(child.start + child.cycles for child in children) - row.start
                put(children, row.start, begin, scale * row.cycles / once if once else 0.0, times * row.times)
            else:
                put(children, row.start, begin, scale, times)

    put(inside.get(-1, []), 0.0, 0.0, 1.0, 1.0)
    return sorted(leaves, key=_event_begin), sorted(loops, key=_event_begin)


def _event_begin(event: TimelineEvent) -> float:
    return event.begin
