"""A mask of bools times NaN or infinity is what stock TensorFlow's kernels make of it, in each execution mode."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU

pytestmark = pytest.mark.usefixtures("configured_in_each_mode")
VALUES = np.array([np.nan, 2.0, np.inf, -np.inf, 3.0], np.float32)
MASK = np.array([False, True, False, True, False])


def on_ipu(function, *arguments):
    with tf.device(IPU):
        return tf.function(function, jit_compile=True)(*map(tf.constant, arguments)).numpy()


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("swapped", [False, True])
def test_masked_values(dtype, swapped):
    def masked(mask, values):
        operands = [tf.cast(mask, dtype), tf.cast(values, dtype)]
        product = tf.multiply(*operands[:: -1 if swapped else 1])
        return tf.math.real(product) if dtype == "complex64" else tf.cast(product, tf.float32)

    with np.errstate(invalid="ignore"):
        kind = np.complex64 if dtype == "complex64" else np.float32
        expected = np.real(MASK.astype(kind) * VALUES.astype(kind))
    np.testing.assert_array_equal(on_ipu(masked, MASK, VALUES), expected)


def test_masked_sums_and_comparisons():
    def loss(values):
        mask = tf.cast(values > 2.5, tf.float32)
        return tf.stack([tf.reduce_sum(mask * values), tf.reduce_sum((1 - mask) * values), tf.reduce_sum(mask)])

    np.testing.assert_array_equal(on_ipu(loss, VALUES), [np.nan, np.nan, 2.0])
    np.testing.assert_array_equal(on_ipu(loss, np.array([1.0, 2.0, 3.0, 4.0], np.float32)), [7.0, 3.0, 2.0])


@pytest.mark.parametrize("reduction", [tf.reduce_max, tf.reduce_min])
def test_gradient_of_an_extreme_beside_nan(reduction):
    def gradient(values):
        return tf.gradients(reduction(values), values)[0]

    assert np.isnan(on_ipu(gradient, np.array([4.0, np.nan, 1.0], np.float32))).all()
