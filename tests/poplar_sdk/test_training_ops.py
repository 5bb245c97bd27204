"""Custom ops of networks that are trained: values and gradients against NumPy, in every execution mode."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from harness import configure
from tf_ipu_shim.ipu import ipu_strategy

pytestmark = pytest.mark.one_version

OPS = "training"
LAYER = json.dumps({"threshold": 0.4, "tiles": 5})
HALVES = [(np.float32, 1e-5), (np.float16, 2e-3)]


def uniform(*shape, seed=44):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def with_gradients(function, weights, *tensors):
    """The result of a function, and the gradients of its weighted sum."""
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        result = function(*tensors)
        loss = tf.reduce_sum(result * weights)
    return [result, *tape.gradient(loss, tensors)]


def fired(currents, decay, threshold=0.4):
    """Spikes of leaky neurons, whose potentials have the type of the currents."""
    potential, spikes = np.zeros(currents.shape[1:], np.float32), []
    for current in currents.astype(np.float32):
        reached = decay.astype(np.float32) * potential + (1 - decay.astype(np.float32)) * current
        spikes.append(reached > threshold)
        potential = np.where(spikes[-1], 0, reached).astype(currents.dtype).astype(np.float32)
    return np.array(spikes, currents.dtype)


@pytest.mark.parametrize(("dtype", "tolerance"), HALVES)
def test_spiking_neurons_and_their_surrogate(run, op, dtype, tolerance):
    currents, decay = (2 * uniform(9, 2, 37)).astype(dtype), np.linspace(0.2, 0.9, 37).astype(dtype)
    weights = uniform(9, 2, 37, seed=1).astype(dtype)

    def spikes(currents, decay):
        return op("Spikes", [currents, decay], [currents.shape], [currents.dtype], attributes=LAYER)[0]

    got = run(lambda currents, decay: with_gradients(spikes, weights, currents, decay), currents, decay)
    assert 0.05 < got[0].mean() < 0.5
    np.testing.assert_array_equal(got[0], fired(currents, decay))
    np.testing.assert_allclose(got[1], weights * (1 - decay), rtol=tolerance, atol=tolerance)
    expected = (weights.astype(np.float64) * currents).sum((0, 1))
    np.testing.assert_allclose(got[2], expected, rtol=tolerance, atol=5 * tolerance)


def trained(x, target, decay, kernel, rate=0.1):
    """Parameters after an epoch of plain gradient descent with two examples a step."""
    for images, wanted in zip(np.split(x, 8), np.split(target, 8), strict=True):
        currents = images.swapaxes(0, 1)
        spikes = fired(currents, decay).sum(0)
        error = spikes @ kernel - wanted
        slope = 2 * error / error.size
        along = slope @ kernel.T
        kernel = kernel - rate * spikes.T @ slope
        decay = decay - rate * (along * currents).sum((0, 1))
    return decay, kernel


def test_a_layer_of_spiking_neurons_trains(op):
    class Spiking(tf.keras.layers.Layer):
        def build(self, shape):
            self.decay = self.add_weight("decay", [shape[-1]], initializer=tf.keras.initializers.Constant(0.5))

        def call(self, x):
            currents = tf.transpose(x, [1, 0, 2])
            return tf.reduce_sum(op("Spikes", [currents, self.decay], [currents.shape], attributes=LAYER)[0], 0)

    configure()
    x, target = 2 * uniform(16, 4, 6), uniform(16, 1, seed=1)
    with ipu_strategy.IPUStrategyV1().scope():
        images = tf.keras.Input((4, 6), batch_size=2)
        outputs = tf.keras.layers.Dense(1, use_bias=False)(Spiking()(images))
        model = tf.keras.Model(images, outputs)
        model.compile(tf.keras.optimizers.SGD(0.1), "mse", steps_per_execution=8)
        expected = trained(x, target, *model.get_weights())
        model.fit(x, target, batch_size=2, verbose=0, shuffle=False)
        for got, wanted in zip(model.get_weights(), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "tolerance"), HALVES)
def test_an_optimizer_in_place_in_a_loop(run, op, dtype, tolerance):
    start, x, target = uniform(5, 3).astype(dtype), uniform(8, 5, seed=1).astype(dtype), uniform(8, 3, seed=2)
    attributes = json.dumps({"first": 0.9, "second": 0.99})

    def train(weights, x, target):
        def step(count, weights, mean):
            gradient = tf.matmul(x, tf.matmul(x, weights) - tf.cast(target, dtype), transpose_a=True)
            inputs, types = [weights, mean, gradient, tf.constant(0.01)], [dtype, tf.float32]
            return count + 1, *op("SignDescent", inputs, [[5, 3]] * 2, types, attributes=attributes)

        state = (tf.constant(0), weights, tf.zeros([5, 3]))
        return tf.while_loop(lambda count, *_: count < 7, step, state, maximum_iterations=7)[1:]

    weights, mean = start.astype(np.float64), np.zeros((5, 3))
    for _ in range(7):
        gradient = x.astype(np.float64).T @ (x.astype(np.float64) @ weights - target)
        weights = weights - 0.01 * np.sign(0.9 * mean + 0.1 * gradient)
        mean = 0.99 * mean + 0.01 * gradient
    for got, expected in zip(run(train, start, x, target), (weights, mean), strict=True):
        np.testing.assert_allclose(got, expected, rtol=5 * tolerance, atol=2 * tolerance)


def turned(x, positions, sign):
    half = x.shape[1] // 2
    angles = sign * positions[:, None] * 100.0 ** (-np.arange(half) / half)
    left, right = x[:, :half], x[:, half:]
    return np.concatenate(
        [left * np.cos(angles) - right * np.sin(angles), left * np.sin(angles) + right * np.cos(angles)], 1
    )


def test_rows_turned_by_their_positions(run, op):
    x, weights, positions = uniform(40, 6), uniform(40, 6, seed=1), np.arange(40, dtype=np.int32)

    def rows(x):
        options = {"inputs_with_gradients": [0], "separate_gradients": True}
        return op("RotaryRows", [x, tf.constant(positions)], [x.shape], **options)[0]

    y, gradient = run(lambda x: with_gradients(rows, weights, x), x)
    np.testing.assert_allclose(y, turned(x, positions, 1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient, turned(weights, positions, -1), rtol=1e-4, atol=1e-5)


def test_rows_of_groups_of_tables(run, op):
    table, weights = uniform(3, 11, 5), uniform(3, 7, 5, seed=1)
    rows = np.random.default_rng(2).integers(0, 11, (3, 7)).astype(np.int32)

    def take(table):
        return op("TakeInGroups", [table, tf.constant(rows)], [[3, 7, 5]], inputs_with_gradients=[0])[0]

    y, gradient = run(lambda table: with_gradients(take, weights, table), table)
    np.testing.assert_array_equal(y, np.take_along_axis(table, rows[:, :, None], 1))
    expected = np.zeros(table.shape)
    for group in range(3):
        np.add.at(expected[group], rows[group], weights[group])
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)


def test_a_product_with_some_blocks(run, op):
    mask, x = np.array([1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0], bool).reshape(4, 3), uniform(16, 32)
    blocks, matrix = uniform(mask.sum(), 64, seed=1), np.zeros((4, 3, 8, 8))
    matrix[mask] = blocks.reshape(-1, 8, 8)
    attributes = "".join(map(str, mask.astype(int).ravel()))
    (y,) = run(lambda *inputs: op("BlockSparse", inputs, [[16, 24]], attributes=attributes), x, blocks)
    np.testing.assert_allclose(y, x @ matrix.swapaxes(1, 2).reshape(32, 24), rtol=1e-5, atol=1e-5)


def test_the_middle_of_images(run, op):
    x, weights = uniform(2, 9, 9, 3), uniform(2, 4, 4, 3, seed=1)
    y, gradient = run(
        lambda x: with_gradients(lambda x: op("Middle", [x], [weights.shape], attributes="4")[0], weights, x), x
    )
    np.testing.assert_array_equal(y, x[:, 2:6, 2:6])
    np.testing.assert_array_equal(gradient, np.pad(weights, ((0, 0), (2, 3), (2, 3), (0, 0))))


def test_boxes_without_those_that_overlap(run, op):
    rng = np.random.default_rng(3)
    corners = rng.uniform(0, 1, (2, 60, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0.1, 0.4, corners.shape)], 2).astype(np.float32)
    scores = rng.uniform(0.1, 1, (2, 60)).astype(np.float32)
    shapes, types = [[2, 20], [2]], [tf.int32, tf.int32]
    kept, counts = run(lambda *inputs: op("Suppress", inputs, shapes, types, attributes="20 0.3"), boxes, scores)
    for image in range(2):
        expected = tf.image.non_max_suppression(boxes[image], scores[image], 20, 0.3).numpy()
        assert counts[image] == len(expected)
        np.testing.assert_array_equal(kept[image][: len(expected)], expected)
