"""Tensors whose size follows from values: XLA knows their largest size, and computes several ops of them wrongly."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure

VALUES = np.array([4.0, 3.0, 2.5, 1.5, 1.0, 0.5], np.float32)
FUNCTIONS = {
    "back": lambda x, first: (first + 1024.0) - 1024.0,
    "chosen": lambda x, first: tf.where(x[0] > 0.0, first, 0.0),
    "chosen rows": lambda x, first: tf.where(x[:2, tf.newaxis] > 3.5, first, 0.0),
    "cumulative product": lambda x, first: tf.math.cumprod(first),
    "cumulative sum": lambda x, first: tf.cumsum(first),
    "last": lambda x, first: first[0] + first[-1],
    "ones": lambda x, first: tf.ones_like(first) * 2.0,
    "rolled": lambda x, first: tf.roll(first, 1, 0),
    "gradient": lambda x, first: tf.gradients(tf.reduce_sum(first * 2.0 * 3.0), x)[0],
}


@pytest.fixture(autouse=True, params=["auto", "xla", "kernels"])
def mode(request, own_environment, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", request.param)
    configure()
    return request.param


def first(x):
    return x[: tf.cast(tf.reduce_max(x), tf.int32) - 1]


def ran(function, device, x):
    with tf.device(device):
        return tf.function(function, jit_compile=device == IPU, autograph=False)(tf.constant(x)).numpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_the_kernels(name):
    def function(x):
        return tf.convert_to_tensor(FUNCTIONS[name](x, first(x)))

    np.testing.assert_array_equal(ran(function, IPU, VALUES), ran(function, "CPU", VALUES))


def test_a_program_that_is_fast_in_xla():
    """By its work alone `auto` would choose XLA."""

    def function(x):
        chosen = tf.where(x[0] > 0.0, first(x), 0.0)
        for _ in range(40):
            chosen = tf.abs(chosen - 0.5) + 0.25
        return chosen

    x = np.linspace(1.0, 200_000.0, 200_000, dtype=np.float32)
    np.testing.assert_array_equal(ran(function, IPU, x), ran(function, "CPU", x))


@pytest.mark.parametrize("name", ["chosen", "cumulative sum"])
def test_without_a_memory_plan(name, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_MEMORY_PLAN", "off")
    test_results_are_the_kernels(name)


def test_beside_an_op_without_a_kernel():
    """Channels first: TensorFlow's CPU has no kernel for it, and XLA would return too many elements of the other."""

    def function(x):
        pooled = tf.nn.max_pool2d(tf.reshape(x[:4], [1, 1, 2, 2]), 2, 2, "SAME", data_format="NCHW")
        return tf.concat([tf.where(x[0] > 0.0, first(x), 0.0), tf.reshape(pooled, [1])], 0)

    np.testing.assert_array_equal(ran(function, IPU, VALUES), [4.0, 3.0, 2.5, 4.0])


def test_a_step_in_such_a_tensor_is_refused_with_its_line():
    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        ran(lambda x: first(x)[::2], IPU, VALUES)
    text = str(raised.value)
    assert "needs constant sizes takes a tensor with a size that follows from values. Op strided_slice" in text
    assert "test_dynamic_sizes.py" in text and "Compute sizes, axes and slice offsets from Python numbers" in text


def test_mode_xla_says_that_kernels_run(mode, monkeypatch, capfd):
    monkeypatch.setenv("TF_IPU_SHIM_LOG_LEVEL", "1")
    ran(lambda x: first(x) * 2.0, IPU, VALUES)
    told = "which has a size that follows from values" in capfd.readouterr().err
    assert told == (mode == "xla")
