"""Convolutions with groups of channels train in each execution mode, as stock TensorFlow's do by XLA."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU
from tf_ipu_shim.ipu import ipu_compiler, scopes


@pytest.fixture(autouse=True)
def one_ipu(own_environment, environment):
    environment(ipus=1)


def plain(x, _):
    return x


def with_a_sort(x, y):
    """An op that is always TensorFlow's kernel, as XLA sorts NaN otherwise."""
    return tf.sort(tf.reshape(y, [-1]))


@pytest.mark.parametrize("beside", [plain, with_a_sort])
@pytest.mark.parametrize(
    ("convolve", "axes", "kind"),
    [
        (tf.nn.conv1d, 1, "float32"),
        (tf.nn.conv2d, 2, "float32"),
        (tf.nn.conv2d, 2, "float16"),
        (tf.nn.conv3d, 3, "float32"),
    ],
)
def test_groups_have_gradients(convolve, axes, kind, beside, execution_mode):
    chance = np.random.RandomState(axes)
    image = tf.constant(chance.randint(-2, 3, [2, *[5] * axes, 4]), kind)
    filters = tf.constant(chance.randint(-2, 3, [*[3] * axes, 2, 6]), kind)

    def model(x, w):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = convolve(x, w, [1] * (axes + 2) if axes > 1 else 1, "SAME")
        return y, *tape.gradient(y, [x, w]), beside(x, y)

    @tf.function
    def ours(x, w):
        with scopes.ipu_scope(IPU):
            return ipu_compiler.compile(model, [x, w])

    for got, expected in zip(ours(image, filters), tf.function(model, jit_compile=True)(image, filters), strict=True):
        np.testing.assert_array_equal(got, expected)
