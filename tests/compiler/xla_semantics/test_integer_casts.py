"""Casts of floating-point numbers to integers of 8 and 16 bits wrap around, as TensorFlow's own kernels have it."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU

pytestmark = pytest.mark.usefixtures("configured_in_each_mode")

NUMBERS = np.array([-300.7, -129, -128, -5.5, -1, -0.9, 0, 0.9, 5.5, 127, 128, 255, 256, 300.2, 40000], np.float32)


@pytest.mark.parametrize("narrow", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("floating", ["float16", "float32"])
def test_wraps_around(floating, narrow):
    @tf.function(jit_compile=True)
    def cast(x):
        return tf.cast(x, narrow)

    numbers = NUMBERS.astype(floating)
    with tf.device(IPU):
        made = cast(tf.constant(numbers))
    np.testing.assert_array_equal(made, numbers.astype(np.int32).astype(narrow))


def test_in_a_loop():
    """Counts down from 2 through zero: 255 is what follows."""

    @tf.function(jit_compile=True)
    def count(x):
        for _ in tf.range(4):
            x = tf.cast(tf.cast(x, tf.float32) - 1.0, tf.uint8)
        return x

    with tf.device(IPU):
        assert int(count(tf.constant(2, tf.uint8))) == 254
