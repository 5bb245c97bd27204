"""Gradients captured on their way, against gradients worked out by hand: loss = (h * v) ** 2 + h with h = w * x."""

import pytest
import tensorflow as tf
from tf_ipu_shim.ipu.eager import backprop
from tf_ipu_shim.ipu.ops import grad_util_ops

from tf_ipu_shim import ipu

W, V, X = 3.0, 2.0, 2.0
H = W * X
P = H * V
EXPECTED = {"p": [2 * P, 1.0], "h": 2 * P * V + 1}


def loss(w, v, x):
    hidden = grad_util_ops.capture_upstream_gradients(w * x, tag="h")
    product, other = grad_util_ops.capture_upstream_gradients([hidden * v, hidden], tag="p")
    return product**2 + other


def gradients(w, v, x):
    with backprop.GradientCaptureTape() as tape:
        assert backprop.num_gradient_collection_tapes() == 1
        result = loss(w, v, x)
    assert backprop.num_gradient_collection_tapes() == 0
    return tape.gradient(result, [w, v]), tape.captured_gradients


def check(result):
    of_variables, captured = tf.nest.map_structure(float, result)
    assert of_variables == [EXPECTED["h"] * X, EXPECTED["p"][0] * H]
    assert captured == EXPECTED


def test_eagerly():
    check(gradients(tf.Variable(W), tf.Variable(V), tf.constant(X)))


def test_in_a_program():
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    with strategy.scope():
        w, v = tf.Variable(W), tf.Variable(V)
    check(strategy.run(tf.function(lambda x: gradients(w, v, x)), args=[tf.constant(X)]))
    ipu.config.reset_ipu_configuration()


def test_in_a_graph_with_a_context():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        w, v = tf.constant(W), tf.constant(V)
        with backprop.GradientCaptureContext() as context:
            result = tf.compat.v1.gradients(loss(w, v, X), [w, v])
        check(session.run((result, dict(context.captured_gradients))))
    assert backprop.num_gradient_collection_tapes() == 0


def test_two_values_of_one_tag_and_two_calls():
    x = tf.Variable(X)
    with backprop.GradientCaptureTape(persistent=True) as tape:
        first = grad_util_ops.capture_upstream_gradients(3 * x, tag="t")
        second = grad_util_ops.capture_upstream_gradients((5 * first,), tag="t")
        (result,) = second
    for scale in (1.0, 2.0):
        tape.gradient(result, x, output_gradients=tf.constant(scale))
        assert tf.nest.map_structure(float, tape.captured_gradients) == {"t": [scale], "t_1": 5 * scale}


def test_without_a_tape_nothing_is_kept():
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        result = grad_util_ops.capture_upstream_gradients(x * x, tag="t")
    assert float(tape.gradient(result, x)) == 2 * X
    context = backprop.GradientCaptureContext()
    assert context.captured_gradients == {}
    with pytest.raises(ValueError, match="captured_gradients is read only"):
        context.captured_gradients = {}
