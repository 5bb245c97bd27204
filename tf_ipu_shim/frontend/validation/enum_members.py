"""Parses enum members that scripts pass by name."""

from __future__ import annotations

import enum
from typing import Any, TypeVar

Member = TypeVar("Member", bound=enum.Enum)


def parse_member(kind: type[Member], value: Any) -> Member | None:
    """Returns the member that a script means; None if there is no such member.

    Example:
        >>> from tf_ipu_shim.frontend.pipelines.pipelining_ops import PipelineSchedule
        >>> parse_member(PipelineSchedule, "grouped").name
        'Grouped'
    """
    if isinstance(value, kind):
        return value
    names = {name.upper(): member for name, member in kind.__members__.items()}
    return names.get(value.upper()) if isinstance(value, str) else None
