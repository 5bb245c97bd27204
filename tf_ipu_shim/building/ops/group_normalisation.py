"""Group normalisation: the arithmetic behind the norm ops and the norm layers."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf


def check_groups(rank: int | None, channels: int | None, channels_axis: int, groups: int, what: str) -> int:
    """Checks what is to be normalised, and gives the channels' axis counted from the front.

    Args:
        rank: of the tensor.
        channels: how many, or None where not known.
        channels_axis: as given; negative counts from the back.
        groups: how many groups the channels make.
        what: what the error calls the tensor.

    Raises:
        ValueError: these do not fit together.

    Example:
        >>> check_groups(4, 8, -1, 2, "Inputs x")
        3
    """
    if rank is None:
        raise ValueError(f"{what} has undefined rank.")
    axis = channels_axis + rank if channels_axis < 0 else channels_axis
    if axis > rank - 1 or axis < 0:
        raise ValueError(f"Axis is out of bounds. channels_axis is {channels_axis}, and the tensor's rank is {rank}.")
    if axis not in (1, rank - 1):
        raise ValueError(
            "Unsupported data format, group norm only supports NCHW (channel axis 1) and NHWC (channel axis -1); "
            f"got channels_axis {channels_axis} for rank {rank}."
        )
    if channels is None:
        raise ValueError(f"{what} has undefined channel dimension: axis {channels_axis} must be known.")
    if groups > channels:
        raise ValueError(f"Invalid groups {groups} for {channels} channels.")
    if channels % groups != 0:
        raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")
    return axis


def group_normalise(
    inputs: Any, gamma: Any, beta: Any, groups: int, axis: int, epsilon: float, strided_channel_grouping: bool = True
) -> Any:
    """Normalises each group of channels of each sample to mean 0 and variance 1, then scales and shifts channels.

    Statistics are taken in float32.

    Args:
        inputs: `[batch, ...]` with the channels at `axis`.
        gamma: `[channels]` or None for ones.
        beta: `[channels]` or None for zeros.
        groups: how many; a divisor of the number of channels.
        axis: the channels' axis, not negative.
        epsilon: added to the variance.
        strided_channel_grouping: channel c is in group `c % groups`; else in `c // (channels / groups)`.

    Returns:
        A tensor like inputs.

    Source: `popnn_group_norm_training` of `gen_popnn_ops`.

    Example:
        >>> y = group_normalise(tf.constant([[1.0, 3.0, 10.0, 30.0]]), None, None, groups=2, axis=1, epsilon=1e-5)
        >>> sorted(y.numpy().round(2)[0].tolist())
        [-1.0, -1.0, 1.0, 1.0]
    """
    channels, rank = inputs.shape.as_list()[axis], inputs.shape.rank
    sizes = tf.unstack(tf.shape(inputs)) if None in inputs.shape.as_list() else inputs.shape.as_list()
    split = [channels // groups, groups] if strided_channel_grouping else [groups, channels // groups]
    grouped_axis = axis + 1 if strided_channel_grouping else axis
    values = tf.reshape(tf.cast(inputs, tf.float32), [*sizes[:axis], *split, *sizes[axis + 1 :]])
    reduced = [index for index in range(1, rank + 1) if index != grouped_axis]
    mean = tf.reduce_mean(values, reduced, keepdims=True)
    centred = values - mean
    variance = tf.reduce_mean(tf.square(centred), reduced, keepdims=True)
    result = tf.reshape(centred * tf.math.rsqrt(variance + epsilon), sizes)
    along_channels = [channels if index == axis else 1 for index in range(rank)]
    if gamma is not None:
        result *= tf.reshape(tf.cast(gamma, tf.float32), along_channels)
    if beta is not None:
        result += tf.reshape(tf.cast(beta, tf.float32), along_channels)
    result = tf.cast(result, inputs.dtype)
    result.set_shape(inputs.shape)
    return result
