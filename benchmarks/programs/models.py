"""Small models as plain functions of tensors and variables, each with the values it starts from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Model:
    """Something to run.

    Args:
        name: the name for the table.
        variables: the values that its variables start with.
        inputs: the arguments of a call.
        function: `function(variables, *inputs)` returns tensors; it may assign to the variables.
    """

    name: str
    variables: Sequence[np.ndarray]
    inputs: Sequence[np.ndarray]
    function: Callable[..., Any]


def _numbers(seed: int, *shape: int) -> np.ndarray:
    scale = 1.0 / np.sqrt(shape[-2] if len(shape) > 1 else 1.0)
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def addition(size: int = 2) -> Model:
    """Adds two small vectors, to measure the cost of a call."""
    return Model("add", [], [_numbers(0, size), _numbers(1, size)], lambda variables, a, b: a + b)


def affine() -> Model:
    """Returns a toy layer with a variable, two outputs and an integer input that XLA must know when it compiles."""
    import tensorflow as tf

    def function(variables: Any, x: Any, rows: Any) -> Any:
        y = tf.matmul(x, variables[0])
        return tf.reshape(y, tf.stack([rows, -1])), tf.reduce_sum(y)

    return Model(
        "reshape by an integer input", [_numbers(0, 8, 8)], [_numbers(1, 8, 8), np.array(16, np.int32)], function
    )


def mlp_step(batch: int, widths: Sequence[int], name: str, reduce: Callable[[Any], Any] | None = None) -> Model:
    """Returns a training step of a multi-layer perceptron with gradient descent.

    Args:
        batch: samples of a step.
        widths: the widths of the input, the hidden layers and the output.
        name: the name for the table.
        reduce: a function from a replica's gradient to that of all replicas.
    """
    import tensorflow as tf

    variables = [_numbers(10 + i, a, b) for i, (a, b) in enumerate(zip(widths, widths[1:]))]

    def function(weights: Any, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            hidden = x
            for weight in weights[:-1]:
                hidden = tf.nn.relu(tf.matmul(hidden, weight))
            logits = tf.matmul(hidden, weights[-1])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return _descend(loss, weights, tape, reduce)

    labels = (np.arange(batch) % widths[-1]).astype(np.int32)
    return Model(name, variables, [_numbers(1, batch, widths[0]), labels], function)


def _descend(loss: Any, weights: Any, tape: Any, reduce: Callable[[Any], Any] | None = None) -> Any:
    """Returns the loss, once the weights are updated."""
    import tensorflow as tf

    gradients = tape.gradient(loss, weights)
    gradients = gradients if reduce is None else [reduce(gradient) for gradient in gradients]
    updates = [weight.assign_sub(0.01 * gradient, read_value=False) for weight, gradient in zip(weights, gradients)]
    with tf.control_dependencies(updates):
        return tf.identity(loss)


def matmul_chain(size: int, length: int, name: str) -> Model:
    """Matmuls one after another, without variables."""
    import tensorflow as tf

    def function(variables: Any, x: Any, weight: Any) -> Any:
        for _ in range(length):
            x = tf.tanh(tf.matmul(x, weight))
        return tf.reduce_sum(x, axis=1)

    return Model(name, [], [_numbers(1, size, size), _numbers(2, size, size)], function)


def conv_step(batch: int, size: int, channels: int, name: str) -> Model:
    """Returns a training step of a small convolutional net with gradient descent."""
    import tensorflow as tf

    pooled = size // 4
    variables = [
        _numbers(1, 3, 3, 1, channels) / 3,
        _numbers(2, 3, 3, channels, 2 * channels) / 3,
        _numbers(3, pooled * pooled * 2 * channels, 10),
    ]

    def function(weights: Any, x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(weights)
            hidden = x
            for weight in weights[:-1]:
                hidden = tf.nn.relu(tf.nn.conv2d(hidden, weight, 1, "SAME"))
                hidden = tf.nn.max_pool2d(hidden, 2, 2, "SAME")
            logits = tf.matmul(tf.reshape(hidden, [batch, -1]), weights[-1])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return _descend(loss, weights, tape)

    labels = (np.arange(batch) % 10).astype(np.int32)
    return Model(name, variables, [_numbers(4, batch, size, size, 1), labels], function)
