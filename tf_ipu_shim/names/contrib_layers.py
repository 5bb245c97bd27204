"""Initializers and regularizers of `tensorflow.contrib.layers`, with the arguments they had."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_MODES = {"FAN_IN": "fan_in", "FAN_OUT": "fan_out", "FAN_AVG": "fan_avg"}


def _v1() -> Any:
    return importlib.import_module("tensorflow.compat.v1")


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None, dtype: Any = "float32"
) -> Any:
    """An initializer whose values have the variance `factor / n`.

    Args:
        factor: of the variance.
        mode: what n is: `FAN_IN`, `FAN_OUT` or `FAN_AVG`.
        uniform: draws from a uniform distribution rather than a truncated normal one.
        seed: of the numbers.
        dtype: of the values.

    Returns:
        A `tf.compat.v1` initializer.

    Raises:
        ValueError: there is no such mode.

    Example:
        >>> values = variance_scaling_initializer(1.0, uniform=True)([300, 10])
        >>> values.shape.as_list()
        [300, 10]
    """
    if mode not in _MODES:
        raise ValueError(f"Unknown mode {mode!r}. It is one of {', '.join(_MODES)}.")
    distribution = "uniform" if uniform else "truncated_normal"
    kind = _v1().initializers.variance_scaling
    return kind(scale=factor, mode=_MODES[mode], distribution=distribution, seed=seed, dtype=_v1().as_dtype(dtype))


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = "float32") -> Any:
    """Glorot's initializer: a variance of one over the mean of inputs and outputs.

    Args:
        uniform: draws from a uniform distribution rather than a truncated normal one.
        seed: of the numbers.
        dtype: of the values.

    Returns:
        A `tf.compat.v1` initializer.

    Example:
        >>> bool((abs(xavier_initializer()([30, 20])) <= (6 / 50) ** 0.5).numpy().all())
        True
    """
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """A penalty of `scale` times the sum of magnitudes.

    Args:
        scale: 0 for no penalty.
        scope: name of the penalty's ops.

    Returns:
        A function from weights to the penalty, or to None where there is none.

    Raises:
        ValueError: the scale is negative or an integer.

    Example:
        >>> float(l1_regularizer(0.5)([1.0, -3.0]))
        2.0
    """
    return _regularizer(scale, scope, "l1_regularizer", lambda tf, weights: tf.reduce_sum(tf.abs(weights)))


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """A penalty of `scale` times half the sum of squares.

    Args:
        scale: 0 for no penalty.
        scope: name of the penalty's ops.

    Returns:
        A function from weights to the penalty, or to None where there is none.

    Raises:
        ValueError: the scale is negative or an integer.

    Example:
        >>> float(l2_regularizer(0.5)([1.0, 3.0]))
        2.5
    """
    return _regularizer(scale, scope, "l2_regularizer", lambda tf, weights: tf.nn.l2_loss(weights))


def _regularizer(
    scale: float, scope: str | None, name: str, penalty: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
    if isinstance(scale, int) or scale < 0.0:
        raise ValueError(f"The scale of {name} must be a float that is not negative, not {scale!r}.")

    def regularizer(weights: Any) -> Any:
        if scale == 0.0:
            return None
        v1 = _v1()
        with v1.name_scope(scope, name, [weights]):
            weights = v1.convert_to_tensor(weights)
            return penalty(v1, weights) * v1.cast(scale, weights.dtype.base_dtype)

    return regularizer
