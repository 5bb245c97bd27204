"""CTC loss for time-major scores, any blank index and padded labels."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

# The logarithm of "impossible". Finite, so that differences of two such numbers have a gradient.
LOG_ZERO = -1e30


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    blank_index: int,
    out_dtype: Any = None,
    name: str | None = None,
) -> Any:
    """Returns the CTC loss of unnormalised scores (https://www.cs.toronto.edu/~graves/icml_2006.pdf).

    Args:
        labels: `[batch, max_label_length]` integers, without blanks; elements after a label's length are ignored.
        logits: `[max_time, batch, classes]`.
        label_length: `[batch]`.
        logit_length: `[batch]`: how many of the time steps count.
        blank_index: the class of the blank; negative counts from the last class.
        out_dtype: the dtype of the loss; the logits' dtype by default.
        name: the name of the op.

    Returns:
        `[batch]`: the negative logarithm of the labels' probability; infinity if no path produces them.

    Raises:
        ValueError: a float16 loss of float32 scores, or a blank that is not a class.

    Source: `tensorflow.python.ipu.nn_ops.ctc_loss_v2`.

    Example:
        >>> loss = ctc_loss_v2(tf.constant([[1]]), tf.zeros([2, 1, 3]), [1], [2], blank_index=0)
        >>> round(float(tf.exp(-loss)[0]), 4)  # three of nine paths over two steps give the label: 11, 10 and 01
        0.3333
    """
    logits = tf.convert_to_tensor(logits)
    _check_types("logits", logits, out_dtype)
    log_probs = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    return _forward_loss(labels, log_probs, label_length, logit_length, blank_index, out_dtype or logits.dtype, name)


def ctc_loss_with_log_probs(
    labels: Any,
    data: Any,
    label_length: Any,
    data_length: Any,
    blank_index: int,
    out_dtype: Any = None,
    name: str | None = None,
) -> Any:
    """Returns the CTC loss of log probabilities, such as the results of `tf.nn.log_softmax`; see `ctc_loss_v2`.

    As on an IPU, the gradient is with respect to the scores before the logarithm: `probability - posterior`. It is the
    same before and after `log_softmax`.

    Args:
        labels: `[batch, max_label_length]` integers.
        data: `[max_time, batch, classes]`.
        label_length: `[batch]`.
        data_length: `[batch]`.
        blank_index: the class of the blank; negative counts from the last class.
        out_dtype: the dtype of the loss; the data's dtype by default.
        name: the name of the op.

    Returns:
        `[batch]`.

    Raises:
        ValueError: a float16 loss of float32 data, or a blank that is not a class.

    Source: `tensorflow.python.ipu.nn_ops.ctc_loss_with_log_probs`.

    Example:
        >>> log_probs = tf.nn.log_softmax(tf.zeros([2, 1, 3]))
        >>> loss = ctc_loss_with_log_probs(tf.constant([[1]]), log_probs, [1], [2], blank_index=0)
        >>> round(float(tf.exp(-loss)[0]), 4)  # three of nine paths over two steps give the label: 11, 10 and 01
        0.3333
    """
    data = tf.convert_to_tensor(data)
    _check_types("data", data, out_dtype)
    log_probs = _log_probs_gradient(tf.cast(data, tf.float32))
    return _forward_loss(labels, log_probs, label_length, data_length, blank_index, out_dtype or data.dtype, name)


@tf.custom_gradient
def _log_probs_gradient(log_probs: Any) -> Any:
    """Returns the same elements. Their gradient is computed as for `log_softmax`, which does not change it later."""
    return tf.identity(log_probs), lambda up: up - tf.exp(log_probs) * tf.reduce_sum(up, axis=-1, keepdims=True)


def _check_types(label: str, data: Any, out_dtype: Any) -> None:
    if out_dtype is not None and data.dtype == tf.float32 and tf.as_dtype(out_dtype) == tf.float16:
        raise ValueError(f"out_dtype cannot be float16 when dtype of {label} is float32. Use float32.")


def _forward_loss(
    labels: Any, log_probs: Any, label_length: Any, data_length: Any, blank_index: int, out_dtype: Any, name: Any
) -> Any:
    """Returns the forward recursion over the labels with a blank before, between and behind them."""
    labels = tf.cast(labels, tf.int32)
    label_length, data_length = tf.cast(label_length, tf.int32), tf.cast(data_length, tf.int32)
    times, batch, classes = _sizes(log_probs)
    if not -classes <= blank_index < classes:
        raise ValueError(f"blank_index must be one of the {classes} classes, got {blank_index}. Pass one of these.")
    blank_index %= classes
    # Elements after a label's length may be any number, such as -1.
    labels = tf.clip_by_value(labels, 0, classes - 1)
    blanks = tf.fill(tf.shape(labels), blank_index)
    extended = tf.reshape(tf.stack([blanks, labels], axis=2), [batch, -1])
    extended = tf.concat([extended, tf.fill([batch, 1], blank_index)], axis=1)
    states = tf.shape(extended)[1]
    scores = tf.gather(tf.transpose(log_probs, [1, 0, 2]), extended, axis=2, batch_dims=1)
    scores = tf.transpose(scores, [1, 0, 2])
    # A label may follow the one before it without a blank where the two differ.
    before = tf.concat([tf.fill([batch, 2], blank_index), extended[:, :-2]], axis=1)
    skips = tf.logical_and(tf.not_equal(extended, blank_index), tf.not_equal(extended, before))
    outside = tf.fill([batch, 2], LOG_ZERO)

    def step(previous: Any, items: Any) -> Any:
        score, time = items
        padded = tf.concat([outside, previous], axis=1)
        skipped = tf.where(skips, padded[:, :-2], LOG_ZERO)
        paths = tf.reduce_logsumexp(tf.stack([previous, padded[:, 1:-1], skipped]), axis=0)
        return tf.where((time < data_length)[:, tf.newaxis], tf.maximum(paths + score, LOG_ZERO), previous)

    # Before the first step a path stands just before the first blank: it may enter there or at the first label.
    start = tf.where(tf.range(states)[tf.newaxis] < 2, scores[0], LOG_ZERO)
    start = tf.where((data_length > 0)[:, tf.newaxis], start, tf.where(tf.range(states)[tf.newaxis] < 1, 0.0, LOG_ZERO))
    rest = (scores[1:], tf.range(1, times))
    last = tf.scan(step, rest, initializer=start)[-1] if times > 1 else start
    ends = tf.stack([2 * label_length, 2 * label_length - 1], axis=1)
    # An empty label has one end only: the blank.
    ending = tf.gather(last, tf.maximum(ends, 0), axis=1, batch_dims=1)
    ending = tf.where(ends >= 0, ending, LOG_ZERO)
    loss = -tf.reduce_logsumexp(ending, axis=1)
    loss = tf.where(loss > -LOG_ZERO / 2, tf.fill(tf.shape(loss), float("inf")), loss)
    return tf.cast(loss, out_dtype, name=name)


def _sizes(log_probs: Any) -> tuple[int, Any, int]:
    times, batch, classes = log_probs.shape.as_list()
    if times is None or classes is None:
        raise ValueError(
            f"The CTC loss needs the number of time steps and classes to be known; got data of shape {log_probs.shape}."
            " Set the static shape, for example with tf.ensure_shape."
        )
    return times, tf.shape(log_probs)[1] if batch is None else batch, classes
