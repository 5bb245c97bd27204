"""Splits a tensor's channels into groups, for group normalization, and merges them again."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf


class GroupShapes:
    """The shapes of the groups of a tensor's channels.

    Args:
        inputs: `[batch, ...]` with the channels at `axis`.
        groups: how many; a divisor of the number of channels.
        axis: the channels' axis, not negative.
        strided: whether neighbouring channels are in different groups.
        epsilon: added to variances.

    Attributes:
        sizes: of the inputs.
        layer: the same for norms that one function of Poplar's program can compute.
    """

    def __init__(self, inputs: Any, groups: int, axis: int, strided: bool, epsilon: float) -> None:
        shape = inputs.shape.as_list()
        channels, rank = shape[axis], len(shape)
        self.sizes = tf.unstack(tf.shape(inputs)) if None in shape else shape
        self.layer = f"{shape} {inputs.dtype.name} {groups} {axis} {strided} {epsilon}"
        self.epsilon = epsilon
        split = [channels // groups, groups] if strided else [groups, channels // groups]
        groups_axis = axis + 1 if strided else axis
        self._grouped = [*self.sizes[:axis], *split, *self.sizes[axis + 1 :]]
        self._reduced = [index for index in range(1, rank + 1) if index != groups_axis]
        self._others = [index for index in range(rank) if index != axis]
        self._along_channels = [channels if index == axis else 1 for index in range(rank)]
        self._along_groups = [-1 if not index else groups if index == groups_axis else 1 for index in range(rank + 1)]

    def grouped(self, values: Any) -> Any:
        """Returns values in float32 with the channels' axis split into groups."""
        return tf.reshape(tf.cast(values, tf.float32), self._grouped)

    def restored(self, grouped: Any) -> Any:
        """Returns grouped values in the shape of the inputs."""
        return tf.reshape(grouped, self.sizes)

    def mean(self, grouped: Any) -> Any:
        """Returns the mean of each group."""
        return tf.reduce_mean(grouped, self._reduced, keepdims=True)

    def per_group(self, values: Any) -> Any:
        """Returns `[batch * groups]` numbers, to combine with grouped values."""
        return tf.reshape(tf.cast(values, tf.float32), self._along_groups)

    def per_channel(self, values: Any) -> Any:
        """Returns `[channels]` numbers, to combine with values in the shape of the inputs."""
        return tf.reshape(tf.cast(values, tf.float32), self._along_channels)

    def sum_channels(self, values: Any) -> Any:
        """Returns the sum of each channel."""
        return tf.reduce_sum(values, self._others)
