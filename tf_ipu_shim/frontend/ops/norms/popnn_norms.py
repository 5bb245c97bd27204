"""The group normalization ops of `gen_popnn_ops`: statistics, inference, training, gradients.

Statistics are `[batch * groups]`: the groups of the first sample come first.
"""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

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
        grouped, layout = _split_groups(inputs, data_format, num_groups, strided_channel_grouping)
        mean = tf.reduce_mean(grouped, layout.reduced, keepdims=True)
        variance = tf.reduce_mean(tf.square(grouped - mean), layout.reduced)
        flat = [tf.reshape(value, [-1]) for value in (mean, tf.math.rsqrt(variance + epsilon))]
        return PopnnGroupNormStatistics(*(tf.cast(value, layout.dtype) for value in flat))


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
        grouped, layout = _split_groups(inputs, data_format, num_groups, strided_channel_grouping)
        normalised = (grouped - layout.per_group(mean)) * layout.per_group(inv_std_dev)
        result = tf.reshape(normalised, layout.sizes) * layout.per_channel(gamma) + layout.per_channel(beta)
        return tf.cast(result, layout.dtype)


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
        `output`, `mean` and `inv_std_dev`.

    Source: `gen_popnn_ops.popnn_group_norm_training`.

    Example:
        >>> x = tf.constant([[1.0, 3.0]])
        >>> y, mean, inv_std_dev = popnn_group_norm_training(x, tf.ones([2]), tf.zeros([2]), "NHWC", 0.0, 1)
        >>> y.numpy().tolist(), mean.numpy().tolist()
        ([[-1.0, 1.0]], [2.0])
    """
    with tf.name_scope(name or "PopnnGroupNormTraining"):
        how = (data_format, epsilon, num_groups, strided_channel_grouping)
        mean, inv_std_dev = popnn_group_norm_statistics(inputs, *how)
        output = popnn_group_norm_inference(inputs, gamma, beta, mean, inv_std_dev, *how)
        return PopnnGroupNormTraining(output, mean, inv_std_dev)


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
        grouped, layout = _split_groups(inputs, data_format, num_groups, strided_channel_grouping)
        normalised = (grouped - layout.per_group(mean)) * layout.per_group(inv_std_dev)
        upstream = tf.cast(output_backprop, tf.float32)
        scaled = tf.reshape(upstream * layout.per_channel(gamma), tf.shape(grouped))
        along = tf.reduce_mean(scaled * normalised, layout.reduced, keepdims=True)
        centred = scaled - tf.reduce_mean(scaled, layout.reduced, keepdims=True) - normalised * along
        gradients = (
            tf.reshape(centred * layout.per_group(inv_std_dev), layout.sizes),
            tf.reduce_sum(upstream * tf.reshape(normalised, layout.sizes), layout.not_channels),
            tf.reduce_sum(upstream, layout.not_channels),
        )
        return PopnnGroupNormGrad(*(tf.cast(gradient, layout.dtype) for gradient in gradients))


class _Layout(NamedTuple):
    sizes: Any
    axis: int  # of the channels
    groups_axis: int  # of the groups, where the channels' axis is split in two
    groups: int
    dtype: Any

    @property
    def reduced(self) -> list[int]:
        return [index for index in range(1, len(self.sizes) + 1) if index != self.groups_axis]

    @property
    def not_channels(self) -> list[int]:
        return [index for index in range(len(self.sizes)) if index != self.axis]

    def per_group(self, values: Any) -> Any:
        shape = [-1 if index == 0 else self.groups if index == self.groups_axis else 1 for index in range(self._rank)]
        return tf.reshape(tf.cast(values, tf.float32), shape)

    def per_channel(self, values: Any) -> Any:
        shape = [-1 if index == self.axis else 1 for index in range(len(self.sizes))]
        return tf.reshape(tf.cast(values, tf.float32), shape)

    @property
    def _rank(self) -> int:
        return len(self.sizes) + 1


def _split_groups(inputs: Any, data_format: str, groups: int, strided: bool) -> tuple[Any, _Layout]:
    """Returns the inputs in float32 with the channels' axis split into groups, and their layout."""
    inputs = tf.convert_to_tensor(inputs)
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError(f"data_format must be 'NHWC' or 'NCHW', got {data_format!r}. Pass one of these two.")
    axis = 1 if data_format == "NCHW" else inputs.shape.rank - 1
    sizes = inputs.shape.as_list()
    if sizes[axis] is None or sizes[axis] % groups:
        raise ValueError(
            f"{sizes[axis]} channels (axis {axis} of {inputs.shape}) do not make {groups} equal groups. Choose a "
            "number of groups that divides the channels."
        )
    dynamic = tf.unstack(tf.shape(inputs)) if None in sizes else sizes
    of_each = sizes[axis] // groups
    split = [of_each, groups] if strided else [groups, of_each]
    layout = _Layout(dynamic, axis, axis + 1 if strided else axis, groups, inputs.dtype)
    values = tf.reshape(tf.cast(inputs, tf.float32), [*dynamic[:axis], *split, *dynamic[axis + 1 :]])
    return values, layout
