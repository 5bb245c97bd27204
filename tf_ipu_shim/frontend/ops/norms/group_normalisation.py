"""Group normalization arithmetic behind the norm ops and norm layers."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.validation.counts import check_integer


def check_groups(rank: int | None, channels: int | None, channels_axis: int, groups: int, argument: str) -> int:
    """Checks the input of a normalisation, and returns the channels' axis counted from the front.

    Args:
        rank: the rank of the tensor.
        channels: how many, or None where not known.
        channels_axis: as given; negative counts from the back.
        groups: how many groups the channels make.
        argument: what the error calls the tensor.

    Raises:
        TypeError: the number of groups is none.
        ValueError: these do not fit together.

    Example:
        >>> check_groups(4, 8, -1, 2, "Inputs x")
        3
    """
    if rank is None:
        raise ValueError(
            f"{argument} has undefined rank. Expected a known number of axes: set the static shape, for "
            "example with tf.ensure_shape."
        )
    axis = channels_axis + rank if channels_axis < 0 else channels_axis
    if axis > rank - 1 or axis < 0:
        raise ValueError(
            f"Axis is out of bounds. channels_axis is {channels_axis}, and the tensor's rank is {rank}; "
            "expected an axis below the rank. Choose another channels_axis."
        )
    if axis not in (1, rank - 1):
        raise ValueError(
            "Unsupported data format, group norm only supports NCHW (channel axis 1) and NHWC (channel axis -1); "
            f"got channels_axis {channels_axis} for rank {rank}. Transpose the input, or set channels_axis."
        )
    if channels is None:
        raise ValueError(
            f"{argument} has undefined channel dimension: axis {channels_axis} must be known. Set the channel "
            "dimension of the input shape."
        )
    groups = check_integer("groups", groups)
    if not 1 <= groups <= channels:
        raise ValueError(
            f"Invalid groups {groups} for {channels} channels. Expected a number of groups from 1 to "
            "the channels: choose another number."
        )
    if channels % groups != 0:
        raise ValueError(
            f"{channels} channels is not commensurate with {groups} groups. Choose a number of groups that divides the "
            "channels."
        )
    return axis


def group_normalise(
    inputs: Any, gamma: Any, beta: Any, groups: int, axis: int, epsilon: float, strided_channel_grouping: bool = True
) -> Any:
    """Normalises each group of channels of each sample to mean 0 and variance 1, then scales and shifts channels.

    Statistics are taken in float32. As with the op of an IPU, a gradient is computed from the inputs and from each
    group's mean and deviation. No float32 copy of the inputs is kept.

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
    inputs, *scales = (None if tensor is None else tf.convert_to_tensor(tensor) for tensor in (inputs, gamma, beta))
    shapes = _Shapes(inputs, groups, axis, strided_channel_grouping)

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalised(inputs: Any, *parameters: Any) -> tuple[Any, Any]:
        given_parameters = iter(parameters)
        scale, shift = (None if tensor is None else tf.cast(next(given_parameters), tf.float32) for tensor in scales)
        values = shapes.grouped(inputs)
        mean = shapes.mean(values)
        centred = values - mean
        deviation = tf.math.rsqrt(shapes.mean(tf.square(centred)) + epsilon)
        result = tf.reshape(centred * deviation, shapes.sizes)
        if scale is not None:
            result *= tf.reshape(scale, shapes.along_channels)
        if shift is not None:
            result += tf.reshape(shift, shapes.along_channels)
        result = tf.cast(result, inputs.dtype)
        result.set_shape(inputs.shape)

        def gradient(upstream: Any) -> Any:
            normal = (shapes.grouped(inputs) - mean) * deviation
            wide = tf.cast(upstream, tf.float32)
            scaled = wide if scale is None else wide * tf.reshape(scale, shapes.along_channels)
            scaled = shapes.grouped(scaled)
            of_inputs = (scaled - shapes.mean(scaled) - normal * shapes.mean(scaled * normal)) * deviation
            gradients = [tf.cast(tf.reshape(of_inputs, shapes.sizes), inputs.dtype)]
            if scale is not None:
                gradients.append(shapes.sum_channels(wide * tf.reshape(normal, shapes.sizes)))
            if shift is not None:
                gradients.append(shapes.sum_channels(wide))
            return [tf.cast(tensor, like.dtype) for tensor, like in zip(gradients, [inputs, *parameters])]

        return result, gradient

    return normalised(inputs, *(tensor for tensor in scales if tensor is not None))


class _Shapes:
    """The shapes of groups of channels.

    Args:
        inputs: see `group_normalise`, as all others.
        strided: whether neighbouring channels are in different groups.
    """

    def __init__(self, inputs: Any, groups: int, axis: int, strided: bool) -> None:
        shape = inputs.shape.as_list()
        channels, rank = shape[axis], len(shape)
        self.sizes = tf.unstack(tf.shape(inputs)) if None in shape else shape
        split = [channels // groups, groups] if strided else [groups, channels // groups]
        self._grouped = [*self.sizes[:axis], *split, *self.sizes[axis + 1 :]]
        self._reduced = [index for index in range(1, rank + 1) if index != (axis + 1 if strided else axis)]
        self._others = [index for index in range(rank) if index != axis]
        self.along_channels = [channels if index == axis else 1 for index in range(rank)]

    def grouped(self, values: Any) -> Any:
        return tf.reshape(tf.cast(values, tf.float32), self._grouped)

    def mean(self, values: Any) -> Any:
        """The mean of each group."""
        return tf.reduce_mean(values, self._reduced, keepdims=True)

    def sum_channels(self, values: Any) -> Any:
        """Sums of each channel."""
        return tf.reduce_sum(values, self._others)
