"""Checks optional boolean arguments: True, False or None."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def check(name: str, value: Any) -> None:
    """Refuses what is no switch: a text such as `"False"`, say, would pass for True.

    Args:
        name: of the argument.
        value: True, False, 1, 0 or None.

    Raises:
        TypeError: it is none of these.

    Example:
        >>> check("offload_activations", None)
    """
    is_number = isinstance(value, (numbers.Integral, np.bool_)) and value in (0, 1)
    if value is not None and not is_number:
        raise TypeError(f"{name} must be True or False, not {value!r}.")
