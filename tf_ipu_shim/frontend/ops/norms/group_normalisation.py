"""Group normalization arithmetic behind the norm ops, `gen_popnn_ops` and norm layers.

Each step is named as PopLibs' layer names it, so that a norm is one layer in memory reports and profiles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops.library_scopes import gradient_scope, library_scope
from tf_ipu_shim.frontend.ops.norms.group_shapes import GroupShapes
from tf_ipu_shim.frontend.validation.counts import check_integer

# XLA's names on an IPU, and PopLibs' below them.
STATISTICS, INFERENCE, TRAINING = "group-norm-statistics", "group-norm-inference", "group-norm-training"
_GRADIENT = "group-norm-grad"
_NORM, _DEVIATION, _WHITEN = "Norm", "iStdDev", "Whiten"


class Statistics(NamedTuple):
    """The statistics of groups of channels, to combine with grouped values.

    Args:
        mean: of each group.
        inv_std_dev: one divided by each group's standard deviation.
    """

    mean: Any
    inv_std_dev: Any


def check_groups(rank: int | None, channels: int | None, channels_axis: int, groups: int, argument: str) -> int:
    """Checks the input of a normalisation, and returns the channels' axis counted from the front.

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

    Statistics are computed in float32. As with the op of an IPU, a gradient is computed from the inputs and from each
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
    inputs = tf.convert_to_tensor(inputs)
    shapes = GroupShapes(inputs, groups, axis, strided_channel_grouping, epsilon)
    with tf.name_scope("PopnnGroupNormTraining"):
        return train(inputs, gamma, beta, shapes)[0]


def train(inputs: Any, gamma: Any, beta: Any, shapes: GroupShapes) -> list[Any]:
    """Normalises with the inputs' own statistics, and has the gradient of Graphcore's op.

    Args:
        inputs: a tensor.
        gamma: `[channels]` or None for ones.
        beta: `[channels]` or None for zeros.
        shapes: of the inputs.

    Returns:
        A tensor like inputs; `[batch * groups]` means and inverse deviations, through which no gradient passes.

    Example:
        >>> x = tf.constant([[1.0, 3.0]])
        >>> [part.numpy().tolist() for part in train(x, None, None, GroupShapes(x, 1, 1, True, 0.0))]
        [[[-1.0, 1.0]], [2.0], [1.0]]
    """
    scales = [None if tensor is None else tf.convert_to_tensor(tensor) for tensor in (gamma, beta)]

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def normalised(inputs: Any, *parameters: Any) -> tuple[Any, Any]:
        given_parameters = iter(parameters)
        scale, shift = (None if tensor is None else next(given_parameters) for tensor in scales)
        statistics = take_statistics(inputs, shapes, TRAINING)
        result = normalise(inputs, scale, shift, statistics, shapes, TRAINING)
        result.set_shape(inputs.shape)

        def gradient(upstream: Any, *_of_statistics: Any) -> Any:
            with gradient_scope("PopnnGroupNormGrad"):
                of_inputs, of_scale, of_shift = differentiate(inputs, scale, statistics, upstream, shapes)
            wanted = [of_inputs, *(of for of, tensor in zip((of_scale, of_shift), scales) if tensor is not None)]
            return [tf.cast(tensor, like.dtype) for tensor, like in zip(wanted, [inputs, *parameters])]

        flat = [tf.cast(tf.reshape(value, [-1]), inputs.dtype) for value in statistics]
        return (result, *flat), gradient

    output, *flat = normalised(inputs, *(tensor for tensor in scales if tensor is not None))
    return [output, *(tf.stop_gradient(value) for value in flat)]


def take_statistics(inputs: Any, shapes: GroupShapes, layer: str) -> Statistics:
    """Returns the statistics of each group in float32.

    Args:
        inputs: a tensor.
        shapes: of the inputs.
        layer: the name of the layer whose part this is.

    Example:
        >>> x = tf.constant([[1.0, 3.0]])
        >>> [value.numpy().item() for value in take_statistics(x, GroupShapes(x, 1, 1, True, 0.0), STATISTICS)]
        [2.0, 1.0]
    """
    with library_scope(f"{layer}/{_NORM}", shapes.layer):
        values = shapes.grouped(inputs)
        mean = shapes.mean(values)
        variance = shapes.mean(tf.square(values - mean))
    with library_scope(f"{layer}/{_DEVIATION}", shapes.layer):
        return Statistics(mean, tf.math.rsqrt(variance + shapes.epsilon))


def normalise(
    inputs: Any, gamma: Any, beta: Any, statistics: Statistics, shapes: GroupShapes, layer: str = INFERENCE
) -> Any:
    """Normalises with given statistics, then scales and shifts each channel.

    Args:
        inputs: a tensor.
        gamma: `[channels]` or None for ones.
        beta: `[channels]` or None for zeros.
        statistics: of the groups.
        shapes: of the inputs.
        layer: the name of the layer whose part this is.

    Returns:
        A tensor like inputs.

    Example:
        >>> x = tf.constant([[1.0, 3.0]])
        >>> given = Statistics(tf.constant(2.0), tf.constant(0.5))
        >>> normalise(x, None, None, given, GroupShapes(x, 1, 1, True, 0.0)).numpy().tolist()
        [[-0.5, 0.5]]
    """
    result = _whiten(inputs, statistics, shapes, layer)
    with library_scope(f"{layer}/{_NORM}", shapes.layer):
        if gamma is not None:
            result *= shapes.per_channel(gamma)
        if beta is not None:
            result += shapes.per_channel(beta)
        return tf.cast(result, inputs.dtype)


def differentiate(inputs: Any, gamma: Any, statistics: Statistics, upstream: Any, shapes: GroupShapes) -> list[Any]:
    """Returns the gradients of `train` in float32: of the inputs, of gamma and of beta.

    Args:
        inputs: a tensor.
        gamma: `[channels]` or None for ones.
        statistics: of the groups.
        upstream: the gradient of the output.
        shapes: of the inputs.

    Example:
        >>> x = tf.constant([[1.0, 3.0]])
        >>> shapes = GroupShapes(x, 1, 1, True, 0.0)
        >>> given = take_statistics(x, shapes, STATISTICS)
        >>> [part.numpy().tolist() for part in differentiate(x, None, given, tf.ones([1, 2]), shapes)]
        [[[0.0, 0.0]], [-1.0, 1.0], [1.0, 1.0]]
    """
    normal = _whiten(inputs, statistics, shapes, _GRADIENT)
    with library_scope(f"{_GRADIENT}/ParamGradients", shapes.layer):
        wide = tf.cast(upstream, tf.float32)
        of_scale, of_shift = shapes.sum_channels(wide * normal), shapes.sum_channels(wide)
    with library_scope(f"{_GRADIENT}/Gradients", shapes.layer):
        scaled = shapes.grouped(wide if gamma is None else wide * shapes.per_channel(gamma))
        normal = shapes.grouped(normal)
        centred = scaled - shapes.mean(scaled) - normal * shapes.mean(scaled * normal)
        return [shapes.restored(centred * statistics.inv_std_dev), of_scale, of_shift]


def _whiten(inputs: Any, statistics: Statistics, shapes: GroupShapes, layer: str) -> Any:
    with library_scope(f"{layer}/{_WHITEN}", shapes.layer):
        return shapes.restored((shapes.grouped(inputs) - statistics.mean) * statistics.inv_std_dev)
