"""Ops without a kernel beside ops that only kernels compute as TensorFlow does: each way, against channels last."""

import numpy as np
import pytest
import tensorflow as tf
from harness import CPU, IPU, configure

PICTURE = np.random.default_rng(3).standard_normal([2, 3, 8, 8]).astype(np.float32)
NAN = np.array([3.0, np.nan, -1.0, np.inf, np.nan, 2.0, -np.inf, 0.0], np.float32)
KERNEL = np.random.default_rng(4).standard_normal([3, 3, 3, 4]).astype(np.float32)


def forms(is_first):
    return {"data_format": "NCHW" if is_first else "NHWC"}


def pooled(x, is_first):
    return tf.nn.max_pool2d(x, 3, 2, "SAME", **forms(is_first))


def differentiated(x, is_first):
    averages = tf.nn.avg_pool2d(x, 2, 2, "VALID", **forms(is_first))
    return tf.gradients(tf.reduce_sum(averages * averages), x)[0]


def normalised(x, is_first):
    """An op of several results, whose later ones are used, too."""
    ones = tf.ones([3])
    result, mean, variance = tf.raw_ops.FusedBatchNormV3(
        x=x, scale=ones, offset=ones * 0.5, mean=ones[:0], variance=ones[:0], epsilon=0.1, **forms(is_first)
    )[:3]
    return result * tf.reduce_sum(mean) + tf.reduce_sum(variance)


def convolved(x, is_first):
    return tf.nn.conv2d(x, tf.constant(KERNEL), 2, "VALID", **forms(is_first))


def differentiated_convolution(x, is_first):
    """Its op takes a shape, which XLA must know."""
    return tf.gradients(tf.reduce_sum(tf.square(convolved(x, is_first))), x)[0]


@pytest.fixture(params=["auto", "xla", "kernels"])
def mode(request, own_environment, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", request.param)
    configure()
    return request.param


def ran(function, device, *values):
    with tf.device(device):
        results = tf.function(function, jit_compile=device == IPU, autograph=False)(*map(tf.constant, values))
    return [result.numpy() for result in results]


@pytest.mark.parametrize("op", [pooled, differentiated, normalised, convolved, differentiated_convolution])
def test_beside_a_sort_of_nan(mode, op):
    """XLA's sort would put NaN elsewhere; only the other op is XLA's."""

    def function(is_first):
        return lambda x, y: (op(x, is_first), *tf.math.top_k(y, 8))

    found, *order = ran(function(True), IPU, PICTURE, NAN)
    expected, *stock = ran(function(False), CPU, PICTURE.transpose(0, 2, 3, 1), NAN)
    np.testing.assert_allclose(found.transpose(0, 2, 3, 1), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(order, stock)


def test_such_an_op_clips_halves_as_all_do(mode):
    """An IPU's float16 has no infinity unless a script asks for it."""

    def function(x, y):
        return tf.nn.avg_pool2d(x * 200.0, 2, 1, "VALID", data_format="NCHW") * 2.0, tf.sort(y)

    found, order = ran(function, IPU, np.full([1, 1, 2, 3], 300.0, np.float16), NAN)
    np.testing.assert_array_equal(found, np.full([1, 1, 1, 2], 65504.0))
    np.testing.assert_array_equal(order, ran(lambda y: (tf.sort(y),), CPU, NAN)[0])


def test_in_a_loop(mode):
    def function(x, y):
        shapes = (tf.TensorShape([]), tf.TensorShape([2, 3, None, None]))
        return tf.while_loop(lambda i, _: i < 2, step, (0, x), shapes)[1], tf.sort(y)

    def step(i, x):
        return i + 1, tf.nn.max_pool2d(x, 3, 1, "SAME", data_format="NCHW") + 1.0

    with tf.device(CPU):
        expected = tf.constant(PICTURE.transpose(0, 2, 3, 1))
        for _ in range(2):
            expected = tf.nn.max_pool2d(expected, 3, 1, "SAME") + 1.0
    found, order = ran(function, IPU, PICTURE, NAN)
    np.testing.assert_array_equal(found.transpose(0, 2, 3, 1), expected)
    np.testing.assert_array_equal(order, ran(lambda y: (tf.sort(y),), CPU, NAN)[0])
