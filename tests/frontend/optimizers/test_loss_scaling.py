"""Automatic loss scaling in optimizers of `tf.compat.v1.train`."""

import numpy as np
import pytest
import tensorflow as tf
from optimizer_runs import CONTROL, assert_same, by_hand, train
from tf_ipu_shim.ipu import optimizers

from tf_ipu_shim.frontend.gradients import loss_scaling

v1 = tf.compat.v1
pytestmark = pytest.mark.usefixtures("mostly_in_a_graph")


def losses_scaled(factor, edge_crossed, dtype=tf.float16, **options):
    """The factor after some updates on gradients that are below the largest number of float16, or reach it."""
    weight = tf.Variable([1.0, 1.0], dtype=dtype)
    bare = v1.train.GradientDescentOptimizer(0.1)
    optimizer = optimizers.AutomaticLossScalingOptimizer(bare, initial_loss_scaling_factor=factor, **options)
    found = []
    for _ in range(8):
        size = 65504.0 if edge_crossed else 60000.0
        optimizer.apply_gradients([(tf.constant([size, 1.0], dtype), weight)])
        found.append(float(optimizer.loss_scaling_factor.numpy()))
    return found


def test_automatic_loss_scaling_moves_the_factor(eager):
    assert losses_scaled(2.0, False, update_frequency=4) == [2, 2, 2, 4, 4, 4, 4, 8]
    assert losses_scaled(16.0, True, update_frequency=4) == [16, 16, 16, 8, 8, 8, 8, 4]
    assert losses_scaled(2.0, True, update_frequency=2) == [2, 1, 1, 1, 1, 1, 1, 1]
    assert losses_scaled(1.0, False, update_frequency=2, max_loss_scaling_factor=4) == [1, 2, 2, 2, 2, 2, 2, 2]
    assert losses_scaled(2.0, True, tf.float32, update_frequency=4) == [2, 2, 2, 4, 4, 4, 4, 8]


@pytest.mark.parametrize("accumulate, expected", [(True, [[1, 1], [3, 1], [0, 0]]), (False, [[0, 0]] * 3)])
def test_automatic_loss_scaling_shows_its_counts(eager, accumulate, expected):
    weight = tf.Variable([1.0, 1.0], dtype=tf.float16)
    optimizer = optimizers.AutomaticLossScalingOptimizer(
        CONTROL[0](), update_frequency=3, accumulate_statistics_over_update_period=accumulate
    )
    found = []
    for gradient in ([65504.0, 1.0], [2.0, 1.0], [1.0, 1.0]):
        assert optimizer.update_counter.numpy() == len(found)
        optimizer.apply_gradients([(tf.constant(gradient, tf.float16), weight)])
        found.append(optimizer.histogram.numpy().tolist())
    assert found == expected
    assert optimizer.loss_scaling_factor.numpy() == (1 if accumulate else 2)
    assert (optimizer.update_frequency, optimizer.increase_factor, optimizer.decrease_factor) == (3, 2.0, 0.5)


@pytest.mark.parametrize("dtype, largest", [(tf.float16, 65504.0), (tf.float32, float("inf"))])
def test_gradients_that_overflow_are_the_largest_number(eager, dtype, largest):
    """An IPU Model has infinity there, which would end the weights."""
    gradient = tf.constant([float("inf"), float("-inf"), 8.0, float("nan")], dtype)
    found = loss_scaling.unscale_gradient(gradient, tf.constant(4.0))
    np.testing.assert_array_equal(found, [largest / 4, -largest / 4, 2.0, np.nan])
    rows = loss_scaling.unscale_gradient(tf.IndexedSlices(gradient, tf.range(4)), tf.constant(4.0))
    np.testing.assert_array_equal(rows.values, found)


def test_automatic_loss_scaling_outlives_an_overflow(eager):
    weight = tf.Variable([1.0, 1.0], dtype=tf.float16)
    optimizer = optimizers.AutomaticLossScalingOptimizer(
        v1.train.GradientDescentOptimizer(2.0**-10), initial_loss_scaling_factor=16.0, update_frequency=1
    )
    optimizer.apply_gradients([(tf.constant([float("-inf"), 16.0], tf.float16), weight)])
    assert optimizer.loss_scaling_factor.numpy() == 8.0
    np.testing.assert_allclose(weight, [1 + 4094 / 1024, 1 - 1 / 1024], rtol=1e-3)


def test_automatic_loss_scaling_trains_as_without():
    def wrapped():
        return optimizers.AutomaticLossScalingOptimizer(CONTROL[0](), update_frequency=2)

    scaled = train(wrapped, iterations=4)
    assert scaled.pop("loss_scaling_factor") == 4
    for name in ("previous_loss_scaling_factor", "update_counter", "gradient_histogram"):
        del scaled[name]
    assert_same(scaled, by_hand(CONTROL[0], updates=4, batches=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decrease_factor": 0}, "decrease_factor must be nonzero and positive"),
        ({"decrease_factor": 3}, "increase_factor must be greater than decrease_factor"),
        ({"increase_factor": 0}, "increase_factor must be nonzero and positive"),
        ({"initial_loss_scaling_factor": 0}, "initial_loss_scaling_factor must be nonzero and positive"),
        ({"initial_loss_scaling_factor": 99999}, "must be less than max_loss_scaling_factor"),
        ({"initial_loss_scaling_factor": 20000}, "initial_loss_scaling_factor x increase_factor must be less than"),
        ({"max_loss_scaling_factor": 1}, "max_loss_scaling_factor must be greater than one"),
        ({"ratio_threshold": 1.0}, "ratio_threshold must be greater than zero and less than one"),
        ({"update_frequency": 0}, "update_frequency must be nonzero and positive"),
    ],
)
def test_automatic_loss_scaling_checks(options, message):
    with pytest.raises(ValueError, match=message):
        optimizers.AutomaticLossScalingOptimizer(CONTROL[0](), **options)
