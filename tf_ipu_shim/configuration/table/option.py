"""One row of the table of options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tf_ipu_shim.machine.environment.effects import RECORDED


@dataclass(frozen=True)
class Option:
    """One option.

    Args:
        default: the default, or a function that makes a fresh one.
        field: dotted protobuf field, empty if `translate` handles it; a leading `!` means its opposite.
        annotation: the type, if it is not the default's own.
        effect: its effect here, one of `machine.environment.effects.EFFECTS`.
        since: the first SDK that has it.
        older: for older SDKs: the last release, the type and the default.
    """

    path: str
    default: Any
    doc: str
    field: str = ""
    annotation: Any = None
    effect: str = RECORDED
    meaning: str = ""
    since: tuple[int, int] = (2, 1)
    until: tuple[int, int] = (3, 4)
    older: tuple[tuple[tuple[int, int], Any, Any], ...] = ()
    deprecated: str | None = None

    def in_release(self, sdk: tuple[int, int]) -> tuple[Any, Any]:
        """Type and a fresh default in the given SDK."""
        for last, annotation, default in self.older:
            if sdk <= last:
                return annotation, default
        default = self.default() if isinstance(self.default, Callable) else self.default  # type: ignore[arg-type]
        return (type(default) if self.annotation is None else self.annotation), default
