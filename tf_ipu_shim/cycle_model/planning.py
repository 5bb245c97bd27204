"""What scripts ask of PopLibs' planner for a product: in which type it sums, and how much of a tile it may use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

PARTIALS, PROPORTION = "partialsType", "availableMemoryProportion"
READ = frozenset({PARTIALS, PROPORTION})
"""Options that change what is modelled; any other changes nothing."""
DEFAULT_PROPORTION = 0.6
_ORIGIN = "[Poplar][Build graph] invalid_option: "
_TYPES = {"half": True, "float": False}


class PlanningError(ValueError):
    """An option's value that Poplar would refuse."""


class Planning(NamedTuple):
    """How a product is planned.

    Args:
        partials_are_half: whether sums of 16-bit operands are kept in 16 bits, `partialsType`.
        proportion: part of a tile that temporaries may take, `availableMemoryProportion`.
    """

    partials_are_half: bool = False
    proportion: float = DEFAULT_PROPORTION

    def asked(self, options: Mapping[str, Any]) -> Planning:
        """The same, but for what options ask for.

        Args:
            options: from name to value, as Poplar takes them; None for a value asks for nothing.

        Raises:
            PlanningError: Poplar would refuse a value.

        Example:
            >>> Planning().asked({"partialsType": "half", "availableMemoryProportion": "0.2"})
            Planning(partials_are_half=True, proportion=0.2)
        """
        half, proportion = options.get(PARTIALS), options.get(PROPORTION)
        return Planning(
            self.partials_are_half if half is None else _is_half(half),
            self.proportion if proportion is None else _proportion(proportion),
        )


def _is_half(value: Any) -> bool:
    if not isinstance(value, str) or value not in _TYPES:
        raise PlanningError(f"{_ORIGIN}{PARTIALS} is {value!r}. Use 'half' or 'float'.")
    return _TYPES[value]


def _proportion(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isnan(number):
        raise PlanningError(f"{_ORIGIN}{PROPORTION} is {value!r}, which is no number. Use a proportion such as 0.6.")
    if number < 0:
        why = "Value must be greater than or equal to 0, such as 0.6."
        raise PlanningError(f"{_ORIGIN}{PROPORTION} is {value!r}. {why}")
    return number
