"""`tensorflow.python.ipu.ops.statistics_ops`: histograms over given levels."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

_TYPES = (tf.float16, tf.float32)


def histogram(inputs: Any, levels: Any, absolute_of_input: bool = False) -> tf.Tensor:
    """Counts values between levels.

    Args:
        inputs: shape [values]; float16 or float32.
        levels: shape [levels], ascending; float16 or float32.
        absolute_of_input: whether to count absolute values.

    Returns:
        float32, shape [levels + 1]: values below the first level, those from each level up to the next, and those from
        the last level on.

    Raises:
        ValueError: a type or rank is not supported.

    Source: `tensorflow.python.ipu.ops.statistics_ops.histogram`.

    Example:
        >>> histogram([0.0, 1.0, 1.0, 5.0], [1.0, 2.0]).numpy().tolist()
        [1.0, 2.0, 1.0]
    """
    inputs, levels = tf.convert_to_tensor(inputs), tf.convert_to_tensor(levels)
    _check_types(inputs, levels)
    if len(inputs.shape) != 1 or len(levels.shape) != 1:
        raise ValueError(
            f"histogram expects rank-1 tensor inputs. inputs has the shape {inputs.shape}, levels {levels.shape}; "
            "use tf.reshape(..., [-1])."
        )
    return _count_values(inputs, levels, absolute_of_input)


def histogram_update(hist: Any, inputs: Any, levels: Any, absolute_of_input: bool = False) -> tf.Tensor:
    """Adds values to a histogram.

    Args:
        hist: float32, shape [levels + 1]; the counts so far.
        inputs: shape [values]; float16 or float32.
        levels: shape [levels]; those the histogram was made with.
        absolute_of_input: whether to count absolute values.

    Returns:
        float32, shape [levels + 1].

    Raises:
        ValueError: a type, rank or number of bins does not fit.

    Source: `tensorflow.python.ipu.ops.statistics_ops.histogram_update`.

    Example:
        >>> histogram_update([1.0, 2.0, 1.0], [7.0], [1.0, 2.0]).numpy().tolist()
        [1.0, 2.0, 2.0]
    """
    hist, inputs, levels = map(tf.convert_to_tensor, (hist, inputs, levels))
    if hist.dtype != tf.float32:
        raise ValueError(f"hist must be of float32 type, but it is {hist.dtype.name}. Cast it with tf.cast.")
    _check_types(hist, inputs, levels)
    if any(len(tensor.shape) != 1 for tensor in (hist, inputs, levels)):
        raise ValueError(
            "histogram_update expects rank-1 tensor inputs. "
            f"hist, inputs and levels have the shapes {hist.shape}, {inputs.shape} and {levels.shape}. Flatten the "
            "inputs with tf.reshape."
        )
    if hist.shape[0] != levels.shape[0] + 1:
        raise ValueError(
            f"hist and levels shapes are incompatible. For {levels.shape[0]} levels hist has {levels.shape[0] + 1} "
            f"bins; this one has {hist.shape[0]}."
        )
    return hist + _count_values(inputs, levels, absolute_of_input)


def histogram_normalize(hist: Any) -> tf.Tensor:
    """Makes shares of counts.

    Args:
        hist: shape [bins].

    Returns:
        `hist` divided by its sum.

    Source: `tensorflow.python.ipu.ops.statistics_ops.histogram_normalize`.

    Example:
        >>> histogram_normalize([1.0, 3.0]).numpy().tolist()
        [0.25, 0.75]
    """
    hist = tf.convert_to_tensor(hist)
    return hist / tf.reduce_sum(hist)


def fixed_width_bins(inputs: Any, n_bins: int) -> tf.Tensor:
    """Levels that cut the range of values into bins of one width.

    Args:
        inputs: shape [values]; float16 or float32.
        n_bins: how many bins.

    Returns:
        The inner edges of the bins, shape [n_bins - 1], of the type of `inputs`: the levels with which `histogram`
        returns `n_bins` counts.

    Raises:
        ValueError: the values are of another type, or the number of bins is 0.

    Source: `tensorflow.python.ipu.ops.statistics_ops.fixed_width_bins`.

    Example:
        >>> fixed_width_bins([0.0, 4.0], 4).numpy().tolist()
        [1.0, 2.0, 3.0]
    """
    inputs = tf.convert_to_tensor(inputs)
    _check_types(inputs)
    if n_bins < 1:
        raise ValueError(f"fixed_width_bins(n_bins={n_bins}): expected a number of bins, 1 or more. Pass 1 or more.")
    low, high = tf.reduce_min(inputs), tf.reduce_max(inputs)
    share = tf.constant([index / n_bins for index in range(1, n_bins)], inputs.dtype)
    return low + (high - low) * share


def _check_types(*tensors: tf.Tensor) -> None:
    names = [tensor.dtype.name for tensor in tensors if tensor.dtype not in _TYPES]
    if names:
        raise ValueError(
            f"Only float16 and float32 types are supported by histograms, not {', '.join(names)}. Cast the tensors to "
            "float32."
        )


def _count_values(inputs: tf.Tensor, levels: tf.Tensor, absolute: bool) -> tf.Tensor:
    values, edges = tf.cast(inputs, tf.float32), tf.cast(levels, tf.float32)
    if absolute:
        values = tf.abs(values)
    reached = tf.reduce_sum(tf.cast(values >= edges[:, tf.newaxis], tf.float32), axis=1)
    everything = tf.cast(tf.size(values), tf.float32)[tf.newaxis]
    return tf.concat([everything, reached], 0) - tf.concat([reached, [0.0]], 0)
