"""Parses the planner options of a matmul: partial-sum type and available memory proportion."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

PARTIALS, PROPORTION = "partialsType", "availableMemoryProportion"
READ = frozenset({PARTIALS, PROPORTION})
"""Options that change what is modelled; others have no effect."""
DEFAULT_PROPORTION = 0.6
ORIGIN = "[Poplar][Build graph] invalid_option: "
_TYPES = {"half": True, "float": False}


class OperandLayout(enum.IntEnum):
    """Layout of a matmul's operand on the tiles: in another order, in the matmul's order, or allocated for it."""

    OTHER = 0
    ARRANGED = 1
    ALLOCATED = 2


OperandLayouts = tuple[OperandLayout, OperandLayout]
REARRANGED: OperandLayouts = (OperandLayout.OTHER, OperandLayout.OTHER)


class OptionError(ValueError):
    """An option value that Poplar would refuse."""


class MatmulOptions(NamedTuple):
    """Planner options of one matmul.

    Args:
        partials_are_float16: whether sums of 16-bit operands are kept in 16 bits, `partialsType`.
        proportion: part of a tile that temporaries may use, `availableMemoryProportion`.
    """

    partials_are_float16: bool = False
    proportion: float = DEFAULT_PROPORTION

    def updated(self, options: Mapping[str, Any]) -> MatmulOptions:
        """Returns these options overridden by others.

        Example:
            >>> MatmulOptions().updated({"partialsType": "half", "availableMemoryProportion": "0.2"})
            MatmulOptions(partials_are_float16=True, proportion=0.2)
        """
        half, proportion = options.get(PARTIALS), options.get(PROPORTION)
        return MatmulOptions(
            self.partials_are_float16 if half is None else _is_float16(half),
            self.proportion if proportion is None else _proportion(proportion),
        )


def _is_float16(value: Any) -> bool:
    if not isinstance(value, str) or value not in _TYPES:
        raise OptionError(f"{ORIGIN}{PARTIALS} is {value!r}; expected 'half' or 'float'. Use one of these.")
    return _TYPES[value]


def _proportion(value: Any) -> float:
    try:
        proportion = float(value)
    except (TypeError, ValueError):
        proportion = math.nan
    if math.isnan(proportion):
        raise OptionError(f"{ORIGIN}{PROPORTION} is {value!r}; expected a number. Use a proportion such as 0.6.")
    if proportion < 0:
        why = "Value must be greater than or equal to 0."
        raise OptionError(f"{ORIGIN}{PROPORTION} is {value!r}. {why} Use a proportion such as 0.6.")
    return proportion
