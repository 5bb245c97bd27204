"""Refuses variables that stages on several IPUs use: each is in the memory of one IPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple


class StageSpan(NamedTuple):
    """The ops of a stage's function: from the first to the one before the end, in the order of the graph."""

    stage: int
    ipu: int
    first: int
    end: int


def refuse_shared_variables(graph: Any, spans: Iterable[StageSpan]) -> None:
    """Raises ValueError if stages on two IPUs use a variable. Stages that are on all IPUs are not checked."""
    operations = graph.get_operations()
    span_of = {operation: span for span in spans if span.ipu >= 0 for operation in operations[span.first : span.end]}
    names = {id(variable.handle): variable.name.split(":")[0] for variable in graph.variables}
    for outside, inside in graph.captures:
        if inside.dtype.name != "resource":
            continue
        users = sorted({span_of[operation] for operation in _users(inside) if operation in span_of})
        other = next((span for span in users if span.ipu != users[0].ipu), None)
        if other is not None:
            name = names.get(id(outside)) or getattr(outside, "op", inside.op).name
            raise ValueError(
                f"Variable {name} is used by pipeline stage {users[0].stage} on IPU "
                f"{users[0].ipu} and stage {other.stage} on IPU {other.ipu}, but an input can only be used by pipeline "
                "stages on the same IPU. Map these stages to one IPU with `device_mapping`, or give each a variable "
                "of its own."
            )


def _users(handle: Any) -> Iterator[Any]:
    for operation in handle.consumers():
        yield operation
        if operation.type == "Identity":
            yield from _users(operation.outputs[0])
