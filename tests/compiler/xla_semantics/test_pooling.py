"""Pools whose windows XLA on the CPU computes with fewer bits than TensorFlow's kernels."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU

pytestmark = pytest.mark.usefixtures("configured_in_each_mode")


def test_second_gradients_of_pools_tell_close_numbers_apart():
    """Of the squared gradient of a squared maximum m: (4 m^2)' = 8 m, for elements that are one number in bfloat16."""
    values = np.float32([1, 1.0003, 1.0001, 1.0005, 1.0004, 1.0002, 1.0006, 1.0007]).reshape(1, 2, 2, 2)

    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                maxima = tf.nn.max_pool2d(x, 2, 2, "VALID")
                first = tf.square(maxima)
            penalty = tf.reduce_sum(tf.square(inner.gradient(first, x)))
        return outer.gradient(penalty, x)

    with tf.device(IPU):
        found = tf.function(second, jit_compile=True)(tf.constant(values))
    is_largest = values == values.max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(found.numpy(), np.where(is_largest, 8 * values, 0), rtol=1e-5)
