"""Accepts whole floats as `Dimension` sizes, and dimensions as dictionary keys, as TensorFlow 1.15 did.

Checked on 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches


def install() -> None:
    """Makes a `Dimension` of a whole float, and lets dimensions be keys of a dictionary."""
    from tf_ipu_shim.tf_private.tensors import tensor_shape

    why = "shapes accept whole floats, as in TensorFlow 1.15"
    patches.replace(tensor_shape.Dimension, "__init__", _accept_whole_floats, why=why)
    patches.replace(tensor_shape.Dimension, "__hash__", lambda _: _hash, why="a dimension can be a key of a dictionary")


def _accept_whole_floats(stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def __init__(self: Any, value: Any) -> None:
        stock(self, int(value) if isinstance(value, float) and value.is_integer() else value)

    return __init__


def _hash(dimension: Any) -> int:
    return hash(dimension.value)
