"""Extracts reports and messages from the trace events of `ipu_event_trace`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tf_ipu_shim.messages import trace_pb2
from tf_ipu_shim.runtime import log

_WHY = {
    "compilation_report": "compile a program with `create_ipu_config(profiling=True)`.",
    "execution_report": "run a program with `create_ipu_config(profiling=True, profile_execution=True)`.",
    "poplar_graph": "there is no Poplar that would make one.",
}


def extract_all_events(events: Any) -> list[Any]:
    """Parses serialised trace events.

    Args:
        events: serialised `IpuTraceEvent` messages, as running the `ipu_event_trace` op returns them: bytes in a list
            or array, nested to any depth.

    Returns:
        The `IpuTraceEvent` messages, in order.

    Raises:
        TypeError: if an event is not of type bytes.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.4).

    Example:
        >>> event = trace_pb2.IpuTraceEvent(type=trace_pb2.IpuTraceEvent.EXECUTE)
        >>> extract_all_events([event.SerializeToString()])[0].type
        5
    """
    return [trace_pb2.IpuTraceEvent.FromString(event) for event in _flatten_events(events)]


def extract_all_strings_from_event_trace(events: Any) -> str:
    """Returns all trace events as one text.

    Arguments and source as for `extract_all_events`.
    """
    return "\n".join(f"{'-' * 18}\n{event}" for event in extract_all_events(events))


def extract_all_types_from_event_trace(events: Any) -> list[int]:
    """Returns the kind of each trace event, as the integers of `IpuTraceEvent.Type`.

    Arguments and source as for `extract_all_events`.
    """
    return [event.type for event in extract_all_events(events)]


def extract_compile_reports(events: Any) -> list[tuple[str, str]]:
    """Returns the compilation reports among trace events, each with the name of its module.

    Events have them if a program is compiled with `profiling=True`. They are JSON, with `target`, `graph`,
    `computeSets` and `memory` (docs/reference/profile_format.md), or the path of a file of it if there is a
    `report_directory`.

    Arguments and source as for `extract_all_events`.
    """
    return _extract_reports(events, "compile_end", "compilation_report")


def extract_poplar_serialized_graphs(events: Any) -> list[tuple[str, str]]:
    """Returns the Poplar graphs among trace events, each with the name of its module. Events of this package have none.

    Arguments and source as for `extract_all_events`.
    """
    return _extract_reports(events, "compile_end", "poplar_graph")


def extract_execute_reports(events: Any) -> list[tuple[str, str]]:
    """Returns the execution reports among trace events, each with the name of its module.

    Events have them with `profile_execution=True`: JSON with the cycles of a run. `report_every_nth_execution` selects
    the runs; by default it is the first.

    Arguments and source as for `extract_all_events`.
    """
    return _extract_reports(events, "execute", "execution_report")


def _extract_reports(events: Any, kind: str, report: str) -> list[tuple[str, str]]:
    matching = [getattr(event, kind) for event in extract_all_events(events) if event.WhichOneof("event") == kind]
    reports = [(message.module_name, getattr(message, report)) for message in matching]
    if matching and not any(report_text for _, report_text in reports):
        log.warning(
            f"Trace events have no {report.replace('_', ' ')} in them: {_WHY[report]} "
            "`tf-ipu run --profile DIR` writes a whole profile of each program, which pva opens."
        )
    return [(module.decode(), report_text.decode()) for module, report_text in reports if report_text]


def _flatten_events(events: Any) -> Iterator[bytes]:
    if isinstance(events, bytes):
        yield events
    elif isinstance(events, str) or not hasattr(events, "__iter__"):
        raise TypeError(
            "Trace events must be serialised messages (bytes), or lists of them; received "
            f"{type(events).__name__}. Pass what running the ipu_event_trace op returned."
        )
    elif hasattr(events, "numpy"):
        yield from _flatten_events(events.numpy())
    elif hasattr(events, "tolist"):
        yield from _flatten_events(events.tolist())
    else:
        for event in events:
            yield from _flatten_events(event)
