"""Restores NumPy functions that were removed after TensorFlow 2.6, for scripts only.

Checked on NumPy 1.26, which has some of them, and 2.4, which has none. Until 1.23 NumPy made an array of objects from
lists and arrays of different lengths, with a warning. `np.save` still writes them for scripts.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

FUNCTIONS = ("asfarray", "asscalar", "in1d", "msort", "trapz")


def asscalar(a: Any) -> Any:
    """Returns the Python number of an array that has one.

    Args:
        a: the array.

    Example:
        >>> asscalar(np.array([24]))
        24
    """
    return a.item()


def asfarray(a: Any, dtype: Any = np.float64) -> Any:
    """Returns an array of floats.

    Args:
        a: numbers.
        dtype: the dtype of the array; float64 replaces a dtype that is not floating-point.

    Example:
        >>> asfarray([2, 3], dtype=np.int32).dtype
        dtype('float64')
    """
    return np.asarray(a, dtype=dtype if np.issubdtype(dtype, np.inexact) else np.float64)


def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Returns which of some numbers are among others, in one dimension.

    Args:
        ar1: the numbers.
        ar2: the others.
        assume_unique: no number occurs twice in either.
        invert: which are not.

    Example:
        >>> in1d([[1, 2], [3, 4]], [2, 3]).tolist()
        [False, True, True, False]
    """
    return np.isin(np.asarray(ar1).ravel(), ar2, assume_unique=assume_unique, invert=invert)


def msort(a: Any) -> Any:
    """Returns a copy of an array, sorted along its first axis.

    Args:
        a: the array.

    Example:
        >>> msort([[3, 1], [2, 4]]).tolist()
        [[2, 1], [3, 4]]
    """
    return np.sort(a, axis=0)


def trapz(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """Returns the integral of numbers by the trapezoidal rule.

    Args:
        y: the numbers.
        x: their positions; by default `dx` apart.
        dx: the distance.
        axis: along which they are integrated.

    Example:
        >>> float(trapz([1.0, 2.0, 3.0]))
        4.0
    """
    versions: Any = np  # of which the later ones have no `trapz`
    rule = versions.trapezoid if hasattr(np, "trapezoid") else versions.trapz
    return rule(y, x, dx, axis)


def saving_objects(is_script: Callable[[str], bool], stock: Callable[..., None]) -> Callable[..., None]:
    """Makes `np.save` accept arrays of different lengths from scripts."""

    @functools.wraps(stock)
    def save(file: Any, arr: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(arr, np.ndarray) and is_script(sys._getframe(1).f_code.co_filename):
            arr = _of_objects_if_ragged(arr)
        stock(file, arr, *args, **kwargs)

    return save


def _of_objects_if_ragged(values: Any) -> Any:
    try:
        return np.asanyarray(values)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        return np.array(values, dtype=object)
