"""Gradients captured on their way, against gradients worked out by hand: loss = (h * v) ** 2 + h with h = w * x."""

import harness
import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_outfeed_queue
from tf_ipu_shim.ipu.eager import backprop
from tf_ipu_shim.ipu.ops import grad_util_ops
from tf_ipu_shim.keras import layers as ipu_layers

from tf_ipu_shim import errors, ipu, keras2

keras = keras2.public_module()

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


@pytest.mark.parametrize("kind", [backprop.GradientCaptureTape, backprop.GradientCaptureContext])
def test_gradients_computed_after_the_context_of_the_value(kind):
    @tf.function
    def step(x):
        with kind() as kept:
            result = grad_util_ops.capture_upstream_gradients(x * x, tag="t") ** 2
        with kind() as other:
            pass
        gradient = tf.gradients(result, x)[0]
        assert not other.captured_gradients
        return gradient, kept.captured_gradients["t"]

    gradient, captured = step(tf.constant(X))
    assert float(gradient) == pytest.approx(4 * X**3) and float(captured) == pytest.approx(2 * X**2)


def test_another_tape_is_refused():
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        result = grad_util_ops.capture_upstream_gradients(x * x, tag="t")
    assert float(result) == X * X
    with pytest.raises(RuntimeError, match="may only be used within the context of a GradientCaptureTape.*'t'"):
        tape.gradient(result, x)


def test_what_was_captured_is_read_only():
    context = backprop.GradientCaptureContext()
    assert context.captured_gradients == {}
    with pytest.raises(ValueError, match="captured_gradients is read only"):
        context.captured_gradients = {}


class Capturing(keras.optimizers.legacy.SGD):
    """Sends what it is given of captured gradients to an outfeed."""

    supports_captured_grads = True

    def __init__(self, outfeed):
        super().__init__(0.5)
        self.outfeed = outfeed

    def apply_gradients(self, grads_and_vars, captured_grads):
        self.outfeed.enqueue(captured_grads)
        return super().apply_gradients(grads_and_vars)


KERNEL = np.array([[1.0, 2.0], [3.0, -4.0]], "f")
BATCHES = np.array([[[1.0, 2.0]], [[3.0, -1.0]], [[0.5, 0.25]], [[-1.0, 0.5]]], "f") / 4  # four of one sample


def tanh_layer(name):
    dense = keras.layers.Dense(
        2, "tanh", use_bias=False, name=name, kernel_initializer=keras.initializers.Constant(KERNEL)
    )
    return ipu_layers.CaptureActivationGradients(dense, tag=name)


def model_of(stages):
    """A model of one layer; or of one in each of two pipeline stages."""
    inputs = keras.Input([2], batch_size=1)
    if not stages:
        return keras.Model(inputs, tanh_layer("first")(inputs))
    with ipu.keras.PipelineStage(0):
        hidden = tanh_layer("first")(inputs)
    with ipu.keras.PipelineStage(1):
        model = keras.Model(inputs, tanh_layer("second")(hidden))
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=4, device_mapping=[0, 0])
    return model


def upstream(x, stages):
    """Of the mean of squares over two outputs, at the inputs of each tanh, from the last one on."""
    hidden = [np.tanh(x @ KERNEL)]
    if stages:
        hidden.append(np.tanh(hidden[0] @ KERNEL))
    gradient, found = hidden[-1], []  # d mean(h ** 2) / dh is h, with two outputs
    for value in reversed(hidden):
        found.append(gradient * (1 - value**2))
        gradient = found[-1] @ KERNEL.T
    return dict(zip(("second", "first") if stages else ("first",), found))


@pytest.mark.parametrize("stages", [False, True])
def test_keras_models_give_captured_gradients_to_their_optimizer(stages):
    harness.configure()
    with ipu.ipu_strategy.IPUStrategyV1().scope():
        model = model_of(stages)
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        # Weights change between the mini-batches of a model without stages, so its only one is looked at.
        batches = BATCHES if stages else BATCHES[:1]
        model.compile(Capturing(outfeed), "mse", steps_per_execution=len(batches))
        model.fit(np.concatenate(batches), np.zeros([len(batches), 2], "f"), batch_size=1, verbose=0)
        sent = {name: np.asarray(tf.nest.flatten(value)[0])[0] for name, value in outfeed.dequeue().items()}
        weight = model.trainable_variables[-1].numpy()
    expected = [upstream(x, stages) for x in batches]
    assert sent.keys() == expected[0].keys()
    for name, value in sent.items():
        np.testing.assert_allclose(value, sum(each[name] for each in expected), 1e-4, 1e-6)
    last = "second" if stages else "first"
    taken = [np.tanh(x @ KERNEL) if stages else x for x in batches]
    np.testing.assert_allclose(
        weight, KERNEL - 0.5 * sum(x.T @ each[last] for x, each in zip(taken, expected)), 1e-4, 1e-6
    )
    ipu.config.reset_ipu_configuration()


def test_other_optimizers_and_accumulation_of_keras_models():
    harness.configure()
    with ipu.ipu_strategy.IPUStrategyV1().scope():
        model = model_of(False)
        model.compile("sgd", "mse")
        model.fit(BATCHES[0], np.zeros([1, 2], "f"), batch_size=1, verbose=0)  # captured for nobody
        model.set_gradient_accumulation_options(2)
        model.compile(Capturing(ipu_outfeed_queue.IPUOutfeedQueue()), "mse", steps_per_execution=4)
        with pytest.raises(errors.UnsupportedError, match="takes captured gradients .first.*pipeline stages"):
            model.fit(np.concatenate(BATCHES), np.zeros([4, 2], "f"), batch_size=1, verbose=0)
    ipu.config.reset_ipu_configuration()
