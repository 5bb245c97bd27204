"""Plain ops that TensorFlow's CPU has no kernel for: against the same op with channels last, which it has one for."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim import ipu, plugin

v1 = tf.compat.v1
IPU = "/device:IPU:0"


def image(dimensions, channels=3, dtype=np.float32):
    shape = [2, *[7, 6, 5][:dimensions], channels]
    values = np.arange(np.prod(shape)) * 37 % 101 / 101
    return values.reshape(shape).astype(dtype)


def first(value):
    return np.moveaxis(value, -1, 1)


def sizes(dimensions, size, channels_first):
    return [1, 1, *[size] * dimensions] if channels_first else [1, *[size] * dimensions, 1]


def pool(op, dimensions, padding):
    def model(x, channels_first):
        form = {2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[dimensions][channels_first]
        window = {"ksize": sizes(dimensions, 3, channels_first), "strides": sizes(dimensions, 2, channels_first)}
        return op(x, **window, padding=padding, data_format=form)

    return model


def convolution(x, channels_first):
    kernel = tf.constant(np.linspace(-1, 1, 3 * 3 * 3 * 4).reshape(3, 3, 3, 4), x.dtype)
    form = "NCHW" if channels_first else "NHWC"
    return tf.nn.conv2d(x, kernel, strides=2, padding="VALID", data_format=form)


MODELS = {
    **{
        f"{op.__name__} {dimensions}D {padding}": (pool(op, dimensions, padding), dimensions)
        for op, dimensions in (
            (tf.nn.avg_pool2d, 2),
            (tf.nn.max_pool2d, 2),
            (tf.nn.avg_pool3d, 3),
            (tf.nn.max_pool3d, 3),
        )
        for padding in ("SAME", "VALID")
    },
    "convolution": (convolution, 2),
}


def with_gradient(model, x, channels_first):
    """The result, and the gradient of the sum of its squares."""
    result = model(x, channels_first)
    (gradient,) = tf.gradients(tf.reduce_sum(result * result), [x])
    return result, gradient


def expected(model, value):
    with tf.Graph().as_default(), v1.Session() as session, tf.device("cpu"):
        x = v1.placeholder(tf.float32, value.shape)
        return [first(part) for part in session.run(with_gradient(model, x, False), {x: value.astype(np.float32)})]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", MODELS)
def test_channels_first(ipus, name, dtype):
    ipus(1)
    model, dimensions = MODELS[name]
    value = image(dimensions, dtype=dtype)
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(dtype, first(value).shape)
        with tf.device(IPU):
            made = with_gradient(model, x, True)
        for _ in range(2):
            found = session.run(made, {x: first(value)})
    tolerance = 1e-5 if dtype == np.float32 else 0.02
    for one, other in zip(found, expected(model, value)):
        assert one.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_run_eagerly_and_in_functions(ipus):
    ipus(1)
    value = image(2)
    model, _ = MODELS["max_pool2d 2D SAME"]
    with tf.device(IPU):
        eager = model(tf.constant(first(value)), True)
        in_function = tf.function(lambda x: model(x, True))(tf.constant(first(value)))
    result, _ = expected(model, value)
    np.testing.assert_array_equal(eager, result)
    np.testing.assert_array_equal(in_function, result)


def test_halves_with_channels_last(ipus):
    ipus(1)
    value = image(3, dtype=np.float16)
    with tf.device(IPU):
        found = MODELS["avg_pool3d 3D VALID"][0](tf.constant(value), False)
    result, _ = expected(MODELS["avg_pool3d 3D VALID"][0], value)
    np.testing.assert_allclose(first(found.numpy()), result, rtol=2e-3)


def test_such_an_op_is_a_program_of_its_own(ipus):
    ipus(1)
    before = plugin.load().programs_lowered(0)
    with tf.device(IPU):
        x = tf.constant(first(image(2)))
        for _ in range(3):
            MODELS["avg_pool2d 2D SAME"][0](x, True)
    assert plugin.load().programs_lowered(0) == before + 1


def test_a_program_with_such_an_op_is_one_program_in_both_ways(ipus, monkeypatch):
    """No program is inside another one: where programs run by kernels, XLA runs one with such an op."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")
    ipus(2)
    value = image(2)
    model, _ = MODELS["max_pool2d 2D VALID"]

    def program(x):
        with ipu.scopes.ipu_shard(1):
            return model(x, True)

    before = plugin.load().programs_lowered(0)
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(tf.float32, first(value).shape)
        with ipu.scopes.ipu_scope(IPU):
            compiled = ipu.ipu_compiler.compile(program, [x])
        (found,) = session.run(compiled, {x: first(value)})
    np.testing.assert_array_equal(found, expected(model, value)[0])
    assert plugin.load().programs_lowered(0) == before + 1
