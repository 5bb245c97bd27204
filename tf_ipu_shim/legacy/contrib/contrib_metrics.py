"""Metrics of `tensorflow.contrib.metrics`: a batch's accuracy, and `tf.metrics` with predictions before labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as tf


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """Returns the share of predictions that equal their labels, in this batch.

    Args:
        predictions: predictions of any shape; bool, integers or strings.
        labels: labels of the same shape and type.
        weights: the weight of each element; all count the same by default.
        name: the name of the op.

    Raises:
        ValueError: the types differ, or are not classes.

    Source: `tensorflow.contrib.metrics.accuracy`.
    """
    predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
    if not (labels.dtype.is_integer or labels.dtype in (tf.bool, tf.string)) or labels.dtype != predictions.dtype:
        raise ValueError(
            f"accuracy: predictions are {predictions.dtype.name} and labels {labels.dtype.name}; expected one type, "
            "bool, integers or strings. Use tf.cast."
        )
    with tf.name_scope(name or "accuracy"):
        correct = tf.cast(tf.equal(predictions, labels), tf.float32)
        if weights is None:
            return tf.reduce_mean(correct)
        weights = tf.cast(weights, tf.float32)
        return tf.div_no_nan(tf.reduce_sum(correct * weights), tf.reduce_sum(tf.ones_like(correct) * weights))


def _of_predictions(stock: Callable[..., Any]) -> Callable[..., Any]:
    def metric(
        predictions: Any,
        labels: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Any:
        return stock(labels, predictions, weights, metrics_collections, updates_collections, name)

    metric.__doc__ = stock.__doc__
    return metric


streaming_mean = tf.metrics.mean
streaming_accuracy = _of_predictions(tf.metrics.accuracy)
streaming_precision = _of_predictions(tf.metrics.precision)
streaming_recall = _of_predictions(tf.metrics.recall)
streaming_mean_absolute_error = _of_predictions(tf.metrics.mean_absolute_error)
streaming_mean_squared_error = _of_predictions(tf.metrics.mean_squared_error)
streaming_root_mean_squared_error = _of_predictions(tf.metrics.root_mean_squared_error)
streaming_true_positives = _of_predictions(tf.metrics.true_positives)
streaming_false_positives = _of_predictions(tf.metrics.false_positives)
streaming_false_negatives = _of_predictions(tf.metrics.false_negatives)
