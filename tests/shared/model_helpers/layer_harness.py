"""Runs an op or a layer in every way a script may run it, and compares values and gradients with a reference.

A function under test takes tensors and gives one tensor, or several; so does its reference, made of stock TensorFlow.
The ways: eagerly, in a `tf.function`, compiled on the IPU in a `tf.function`, compiled on the IPU in a session.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from harness import IPU
from tf_ipu_shim.ipu import ipu_compiler, scopes

v1 = tf.compat.v1
Function = Callable[..., Any]


def _with_gradients(function: Function, floats: Sequence[int]) -> Function:
    """The function's results, and the gradients of a weighted sum of them for the inputs numbered in `floats`."""

    def both(*inputs: Any) -> list[Any]:
        inputs = tuple(map(tf.convert_to_tensor, inputs))
        watched = [inputs[index] for index in floats]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            outputs = tf.nest.flatten(function(*inputs))
            # Weights that differ, so that no gradient cancels.
            total = tf.add_n(
                [
                    tf.reduce_sum(tf.cast(output, tf.float32) * tf.reshape(_weights(output.shape), output.shape))
                    for output in outputs
                    if output.dtype.is_floating
                ]
            )
        return [*outputs, *map(tf.convert_to_tensor, tape.gradient(total, watched))] if floats else outputs

    return both


def _weights(shape: Any) -> Any:
    return tf.constant(np.cos(np.arange(shape.num_elements())) + 0.5, tf.float32)


def eager(function: Function, inputs: Sequence[Any], floats: Sequence[int]) -> list[np.ndarray]:
    """Runs it op by op on the host."""
    return [value.numpy() for value in _with_gradients(function, floats)(*inputs)]


def compiled(function: Function, inputs: Sequence[Any], floats: Sequence[int]) -> list[np.ndarray]:
    """Runs it as one program on the IPU, from a `tf.function`."""
    traced = tf.function(_with_gradients(function, floats), autograph=False, jit_compile=True)
    with tf.device(IPU):
        return [value.numpy() for value in traced(*map(tf.constant, inputs))]


def session(function: Function, inputs: Sequence[Any]) -> list[np.ndarray]:
    """Runs it as one program on the IPU, from a session."""
    with tf.Graph().as_default():
        fed = [v1.placeholder(value.dtype, value.shape) for value in map(np.asarray, inputs)]
        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(lambda *arguments: tf.nest.flatten(function(*arguments)), fed)
        with v1.Session() as running:
            running.run(v1.global_variables_initializer())
            return running.run(built, dict(zip(fed, inputs)))


def check(
    function: Function,
    reference: Function,
    inputs: Sequence[Any],
    floats: Sequence[int] = (0,),
    tolerance: float = 2e-5,
) -> None:
    """Fails unless a function does what its reference does, in all ways.

    Args:
        function: under test; makes no variables.
        reference: made of stock TensorFlow.
        inputs: arrays.
        floats: which inputs to differentiate for.
        tolerance: absolute and relative.
    """
    inputs = [np.asarray(value) for value in inputs]
    expected = eager(reference, inputs, floats)
    ways = {
        "eager": eager(function, inputs, floats),
        "compiled": compiled(function, inputs, floats),
        "session": session(function, inputs),
    }
    for way, actual in ways.items():
        for index, (one, other) in enumerate(zip(actual, expected)):
            np.testing.assert_allclose(one, other, tolerance, tolerance, err_msg=f"{way}: result {index}")


def check_config(layer: Any) -> Any:
    """Fails unless a layer's configuration makes the same layer again; gives that one."""
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    return again


def run(layer: Any, x: Any) -> list[Any]:
    """A layer's outputs, and the gradients of its variables."""
    with tf.GradientTape() as tape:
        outputs = tf.nest.flatten(layer(x))
        total = tf.add_n([tf.reduce_sum(output**2) for output in outputs])
    return [*outputs, *tape.gradient(total, layer.trainable_variables)]


def on_the_host(layer: Any, x: np.ndarray, weights: Any = None) -> list[Any]:
    """The same of a layer on the host, op by op, that has been given weights."""
    layer(x)
    if weights is not None:
        layer.set_weights(weights)
    return run(layer, tf.constant(x))


def on_the_ipu(layer: Any, x: np.ndarray) -> list[Any]:
    """The same of a layer made again on the IPU, as one program."""
    with tf.device(IPU):
        again = type(layer).from_config(layer.get_config())
        again.build(x.shape)
        again.set_weights(layer.get_weights())
        return list(tf.function(lambda x: run(again, x), autograph=False, jit_compile=True)(tf.constant(x)))
