"""Implements `sequence_loss`: the weighted cross-entropy of a batch of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as v1


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Returns the weighted cross-entropy of sequences, summed or averaged over each axis, or neither.

    Args:
        logits: `[batch, time, classes]`.
        targets: classes, `[batch, time]`.
        weights: the weights of each step, `[batch, time]`.
        average_across_timesteps: whether losses are divided by the sum of the weights over time.
        average_across_batch: whether they are divided by the sum of the weights over the batch.
        sum_over_timesteps: whether they are summed over time and divided by the number of entries with a weight.
        sum_over_batch: the same for the batch.
        softmax_loss_function: a function from `labels` and `logits` to losses; the sparse cross-entropy by default.
        name: the name of the ops.

    Returns:
        A scalar, or `[batch]`, `[time]`, `[batch, time]` if an axis is kept.

    Raises:
        ValueError: a tensor has another rank, or an axis is to be summed and averaged.

    Source: `tensorflow.contrib.seq2seq.sequence_loss`.

    Example:
        >>> float(sequence_loss(v1.zeros([1, 2, 4]), [[0, 1]], v1.ones([1, 2])))
        1.3862943649291992
    """
    logits, targets, weights = map(v1.convert_to_tensor, (logits, targets, weights))
    for tensor, label, rank in ((logits, "Logits", 3), (targets, "Targets", 2), (weights, "Weights", 2)):
        if tensor.shape.ndims != rank:
            raise ValueError(f"{label} must be a tensor of {rank} dimensions; the shape is {tensor.shape}. Reshape it.")
    for averages, sums, axis in (
        (average_across_timesteps, sum_over_timesteps, "timesteps"),
        (average_across_batch, sum_over_batch, "batch"),
    ):
        if averages and sums:
            raise ValueError(
                f"average_across_{axis} and sum_over_{axis} cannot be set to True at same time. Set one of them to "
                "False."
            )
    with v1.name_scope(name, "sequence_loss", [logits, targets, weights]):
        flat = v1.reshape(logits, [-1, v1.shape(logits)[2]]), v1.reshape(targets, [-1])
        loss = softmax_loss_function or v1.nn.sparse_softmax_cross_entropy_with_logits
        losses = v1.reshape(loss(labels=flat[1], logits=flat[0]), v1.shape(weights)) * weights
        # Both axes are counted together where both are wanted: counts of rows differ.
        averaged = [
            axis for axis, is_averaged in ((0, average_across_batch), (1, average_across_timesteps)) if is_averaged
        ]
        summed = [axis for axis, is_averaged in ((0, sum_over_batch), (1, sum_over_timesteps)) if is_averaged]
        if averaged:
            return v1.div_no_nan(v1.reduce_sum(losses, averaged), v1.reduce_sum(weights, averaged))
        if summed:
            counted = v1.cast(v1.not_equal(weights, 0), losses.dtype)
            return v1.div_no_nan(v1.reduce_sum(losses, summed), v1.reduce_sum(counted, summed))
        return losses
