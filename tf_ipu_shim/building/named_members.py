"""Members of enumerations that scripts give by name."""

from __future__ import annotations

import enum
from typing import Any, TypeVar

Member = TypeVar("Member", bound=enum.Enum)


def named_member(kind: type[Member], value: Any, phrase: str) -> Member:
    """The member that a script means.

    Args:
        kind: the enumeration.
        value: a member, or its name in any case.
        phrase: what the error says the value should be, in Graphcore's words for this enumeration.

    Raises:
        ValueError: it is neither.

    Example:
        >>> from tf_ipu_shim.building.pipelines.pipelining_ops import PipelineSchedule
        >>> named_member(PipelineSchedule, "grouped", "as a schedule").name
        'Grouped'
    """
    if isinstance(value, kind):
        return value
    for name, member in kind.__members__.items():
        if isinstance(value, str) and value.upper() == name.upper():
            return member
    raise ValueError(f"Cannot parse {value!r} {phrase}. Valid values are {', '.join(kind.__members__)}.")
