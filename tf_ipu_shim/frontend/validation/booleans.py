"""Checks boolean arguments that may be None, and converts Graphcore's `THREESTATE_` names to them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from tf_ipu_shim.messages import threestate_pb2


def check_boolean(name: str, value: Any) -> None:
    """Refuses values other than booleans: a string such as `"False"` would count as True.

    Example:
        >>> check_boolean("offload_activations", None)
    """
    is_number = isinstance(value, (numbers.Integral, np.bool_)) and value in (0, 1)
    if value is not None and not is_number:
        raise TypeError(f"{name} must be True or False, not {value!r}. Pass True or False.")


def three_state(name: str, value: Any) -> bool | None:
    """Returns an optional choice, given as a switch or by its name in Graphcore's driver.

    Example:
        >>> three_state("offload_activations", "THREESTATE_OFF")
        False
    """
    three_state_enum = threestate_pb2.ThreeState
    if isinstance(value, str) and value in three_state_enum.keys():
        enum_value = three_state_enum.Value(value)
        return None if enum_value == threestate_pb2.THREESTATE_UNDEFINED else enum_value == threestate_pb2.THREESTATE_ON
    check_boolean(name, value)
    return None if value is None else bool(value)
