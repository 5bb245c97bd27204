"""Sampled softmax and NCE losses that run on the IPU, including candidate sampling.

The sample is log-uniform without repetition, as stock TensorFlow's default. A class arrives after an exponential time
with its probability p as rate. The sample is the first arrivals. With the time t of the last one, the expected count of
a class is `1 - exp(-p t)`. Stock TensorFlow draws until it has enough and counts the draws in t's place.
"""

from __future__ import annotations

import math
from typing import Any

import tensorflow.compat.v2 as tf


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Any:
    """Returns the softmax loss over the true classes and a sample of the others: cheap if there are many classes.

    As in Graphcore's function, sampled classes that are among the true ones count as false ones too: it is
    `tf.nn.sampled_softmax_loss` with `remove_accidental_hits=False`.

    Args:
        weights: `[num_classes, size]`.
        biases: `[num_classes]`.
        labels: `[batch, num_true]` integers.
        inputs: `[batch, size]`.
        num_sampled: how many classes are drawn for the batch.
        num_classes: how many there are.
        num_true: true classes a sample has.
        sampled_values: classes `[num_sampled]` and the expected counts of the true `[batch, num_true]` and the sampled
            ones `[num_sampled]`, as returned by `tf.random.log_uniform_candidate_sampler`.
        name: the name of the ops.
        seed: the seed of the draw.

    Returns:
        `[batch]`.

    Source: `tensorflow.python.ipu.nn_ops.sampled_softmax_loss`.

    Example:
        >>> weights, biases = tf.ones([5000, 8]), tf.zeros([5000])
        >>> loss = sampled_softmax_loss(weights, biases, [[3], [7]], tf.ones([2, 8]), num_sampled=64, num_classes=5000)
        >>> loss.shape
        TensorShape([2])
    """
    with tf.name_scope(name or "sampled_softmax_loss"):
        sizes = num_sampled, num_classes, num_true
        logits, targets = _sampled_logits(weights, biases, labels, inputs, *sizes, sampled_values, seed=seed)
        return tf.nn.softmax_cross_entropy_with_logits(tf.stop_gradient(targets), logits)


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    name: str | None = "nce_loss",
) -> Any:
    """Returns the noise-contrastive loss, which separates true classes from sampled ones; see `sampled_softmax_loss`.

    Args:
        weights: `[num_classes, size]`.
        biases: `[num_classes]`.
        labels: `[batch, num_true]` integers.
        inputs: `[batch, size]`.
        num_sampled: how many classes are drawn for the batch.
        num_classes: how many there are.
        num_true: true classes a sample has.
        sampled_values: see `sampled_softmax_loss`.
        name: the name of the ops.

    Returns:
        `[batch]`.

    Source: `tensorflow.python.ipu.nn_ops.nce_loss`.

    Example:
        >>> weights, biases = tf.ones([5000, 8]), tf.zeros([5000])
        >>> loss = nce_loss(weights, biases, [[3], [7]], tf.ones([2, 8]), num_sampled=64, num_classes=5000)
        >>> loss.shape
        TensorShape([2])
    """
    with tf.name_scope(name or "nce_loss"):
        sizes = num_sampled, num_classes, num_true
        logits, targets = _sampled_logits(weights, biases, labels, inputs, *sizes, sampled_values)
        return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits), axis=1)


def _compute_sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    subtract_log_q: bool = True,
    remove_accidental_hits: bool = False,
    name: str | None = None,
    seed: int | None = None,
) -> tuple[Any, Any]:
    """Logits of the true and then the sampled classes, less the logarithms of their expected counts, and targets."""
    with tf.name_scope(name or "compute_sampled_logits"):
        sizes, corrections = (num_sampled, num_classes, num_true), (subtract_log_q, remove_accidental_hits)
        return _sampled_logits(weights, biases, labels, inputs, *sizes, sampled_values, *corrections, seed)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    subtract_log_q: bool = True,
    remove_accidental_hits: bool = False,
    seed: int | None = None,
) -> tuple[Any, Any]:
    weights, biases, inputs = (tf.convert_to_tensor(value) for value in (weights, biases, inputs))
    labels = tf.reshape(labels, [-1, num_true])
    if sampled_values is None:
        sampled_values = _sample_candidates(labels, num_sampled, num_classes, seed)
    sampled, true_count, sampled_count = (tf.stop_gradient(value) for value in sampled_values)
    sampled = tf.cast(sampled, labels.dtype)
    of_true = tf.einsum("bs,bts->bt", inputs, tf.gather(weights, labels)) + tf.gather(biases, labels)
    of_sampled = tf.matmul(inputs, tf.gather(weights, sampled), transpose_b=True) + tf.gather(biases, sampled)
    if remove_accidental_hits:
        hits = tf.reduce_any(tf.equal(labels[:, :, tf.newaxis], sampled), axis=1)
        of_sampled = tf.where(hits, tf.cast(of_sampled.dtype.min / 2, of_sampled.dtype), of_sampled)
    if subtract_log_q:
        of_true -= tf.cast(tf.math.log(true_count), of_true.dtype)
        of_sampled -= tf.cast(tf.math.log(sampled_count), of_sampled.dtype)
    targets = tf.concat([tf.ones_like(of_true) / num_true, tf.zeros_like(of_sampled)], axis=1)
    return tf.concat([of_true, of_sampled], axis=1), targets


def _sample_candidates(labels: Any, num_sampled: int, num_classes: int, seed: int | None) -> tuple[Any, Any, Any]:
    ranks = tf.range(num_classes, dtype=tf.float32)
    probabilities = tf.math.log1p(1.0 / (ranks + 1.0)) / math.log(num_classes + 1.0)
    draws = tf.random.uniform([num_classes], minval=1e-30, seed=seed)
    arrivals = -tf.math.log(draws) / probabilities
    times, sampled = tf.math.top_k(-arrivals, num_sampled)
    counts = -tf.math.expm1(probabilities * times[-1])
    return sampled, tf.gather(counts, labels), tf.gather(counts, sampled)
