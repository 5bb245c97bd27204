"""The group normalization ops of `gen_popnn_ops`: statistics, inference, training, gradients.

Statistics are `[batch * groups]`: the first sample's groups are first.
"""

from __future__ import annotations

import collections
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops.norms import group_normalisation
from tf_ipu_shim.frontend.ops.norms.group_normalisation import Statistics
from tf_ipu_shim.frontend.ops.norms.group_shapes import GroupShapes

PopnnGroupNormTraining = collections.namedtuple("PopnnGroupNormTraining", ["output", "mean", "inv_std_dev"])
PopnnGroupNormStatistics = collections.namedtuple("PopnnGroupNormStatistics", ["mean", "inv_std_dev"])
PopnnGroupNormGrad = collections.namedtuple(
    "PopnnGroupNormGrad", ["inputs_backprop", "gamma_backprop", "beta_backprop"]
)


def popnn_group_norm_statistics(
    inputs: Any,
    data_format: str,
    epsilon: float,
    num_groups: int,
    strided_channel_grouping: bool = True,
    name: Any = None,
) -> Any:
    """Mean and inverse standard deviation of each sample's groups of channels.

    Args:
        inputs: `[batch, ..., channels]` for `"NHWC"`, `[batch, channels, ...]` for `"NCHW"`.
        data_format: selects one of the two.
        epsilon: added to the variance.
        num_groups: a divisor of the number of channels.
        strided_channel_grouping: channel c is in group `c % num_groups`; else neighbours make a group.
        name: the name of the scope around the ops.

    Returns:
        `mean` and `inv_std_dev`, `[batch * num_groups]` each.

    Source: `gen_popnn_ops.popnn_group_norm_statistics`.

    Example:
        >>> mean, inv_std_dev = popnn_group_norm_statistics(tf.constant([[1.0, 3.0]]), "NHWC", 0.0, 1)
        >>> mean.numpy().tolist(), inv_std_dev.numpy().tolist()
        ([2.0], [1.0])
    """
    with tf.name_scope(name or "PopnnGroupNormStatistics"):
        inputs, shapes = _shapes(inputs, data_format, num_groups, strided_channel_grouping, epsilon)
        statistics = group_normalisation.take_statistics(inputs, shapes, group_normalisation.STATISTICS)
        return PopnnGroupNormStatistics(*(tf.cast(tf.reshape(value, [-1]), inputs.dtype) for value in statistics))


def popnn_group_norm_inference(
    inputs: Any,
    gamma: Any,
    beta: Any,
    mean: Any,
    inv_std_dev: Any,
    data_format: str,
    epsilon: float,
    num_groups: int,
    strided_channel_grouping: bool = True,
    name: Any = None,
) -> Any:
    """Normalises with given statistics, then scales and shifts each channel.

    Args:
        inputs: as for `popnn_group_norm_statistics`.
        gamma: `[channels]`.
        beta: `[channels]`.
        mean: `[batch * num_groups]`.
        inv_std_dev: `[batch * num_groups]`.
        data_format: see `popnn_group_norm_statistics`.
        epsilon: no effect: `inv_std_dev` includes it.
        num_groups: see `popnn_group_norm_statistics`.
        strided_channel_grouping: see `popnn_group_norm_statistics`.
        name: the name of the scope around the ops.

    Returns:
        A tensor like inputs.

    Source: `gen_popnn_ops.popnn_group_norm_inference`.

    Example:
        >>> x = tf.constant([[1.0, 3.0]])
        >>> y = popnn_group_norm_inference(x, tf.ones([2]), tf.zeros([2]), [2.0], [0.5], "NHWC", 1e-3, 1)
        >>> y.numpy().tolist()
        [[-0.5, 0.5]]
    """
    with tf.name_scope(name or "PopnnGroupNormInference"):
        inputs, shapes = _shapes(inputs, data_format, num_groups, strided_channel_grouping, epsilon)
        statistics = Statistics(shapes.per_group(mean), shapes.per_group(inv_std_dev))
        return group_normalisation.normalise(inputs, gamma, beta, statistics, shapes)


def popnn_group_norm_training(
    inputs: Any,
    gamma: Any,
    beta: Any,
    data_format: str,
    epsilon: float,
    num_groups: int,
    strided_channel_grouping: bool = True,
    name: Any = None,
) -> Any:
    """Normalises with the inputs' own statistics; see `popnn_group_norm_inference`.

    Returns:
        `output`, `mean` and `inv_std_dev`. A gradient passes through `output` only.

    Source: `gen_popnn_ops.popnn_group_norm_training`.

    Example:
        >>> x = tf.constant([[1.0, 3.0]])
        >>> y, mean, inv_std_dev = popnn_group_norm_training(x, tf.ones([2]), tf.zeros([2]), "NHWC", 0.0, 1)
        >>> y.numpy().tolist(), mean.numpy().tolist()
        ([[-1.0, 1.0]], [2.0])
    """
    with tf.name_scope(name or "PopnnGroupNormTraining"):
        inputs, shapes = _shapes(inputs, data_format, num_groups, strided_channel_grouping, epsilon)
        return PopnnGroupNormTraining(*group_normalisation.train(inputs, gamma, beta, shapes))


def popnn_group_norm_grad(
    inputs: Any,
    gamma: Any,
    mean: Any,
    inv_std_dev: Any,
    output_backprop: Any,
    data_format: str,
    epsilon: float,
    num_groups: int,
    strided_channel_grouping: bool = True,
    name: Any = None,
) -> Any:
    """Returns the gradients of `popnn_group_norm_training`, which returns `mean` and `inv_std_dev`.

    Returns:
        `inputs_backprop`, `gamma_backprop` and `beta_backprop`.

    Source: `gen_popnn_ops.popnn_group_norm_grad`.

    Example:
        >>> x, ones = tf.constant([[1.0, 3.0, 10.0, 30.0]]), tf.ones([4])
        >>> y, mean, inv_std_dev = popnn_group_norm_training(x, ones, tf.zeros([4]), "NHWC", 1e-3, 2)
        >>> upstream = tf.ones([1, 4])
        >>> to_x, to_gamma, to_beta = popnn_group_norm_grad(x, ones, mean, inv_std_dev, upstream, "NHWC", 1e-3, 2)
        >>> to_beta.numpy().tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    with tf.name_scope(name or "PopnnGroupNormGrad"):
        inputs, shapes = _shapes(inputs, data_format, num_groups, strided_channel_grouping, epsilon)
        statistics = Statistics(shapes.per_group(mean), shapes.per_group(inv_std_dev))
        gradients = group_normalisation.differentiate(inputs, gamma, statistics, output_backprop, shapes)
        return PopnnGroupNormGrad(*(tf.cast(gradient, inputs.dtype) for gradient in gradients))


def _shapes(inputs: Any, data_format: str, groups: int, strided: bool, epsilon: float) -> tuple[Any, GroupShapes]:
    """Returns the inputs as a tensor, and the shapes of its groups."""
    inputs = tf.convert_to_tensor(inputs)
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError(f"data_format must be 'NHWC' or 'NCHW', got {data_format!r}. Pass one of these two.")
    axis = 1 if data_format == "NCHW" else inputs.shape.rank - 1
    channels = inputs.shape[axis]
    if channels is None or channels % groups:
        raise ValueError(
            f"{channels} channels (axis {axis} of {inputs.shape}) do not make {groups} equal groups. Choose a "
            "number of groups that divides the channels."
        )
    return inputs, GroupShapes(inputs, groups, axis, strided, epsilon)
