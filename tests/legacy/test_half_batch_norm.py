"""`tf.nn.fused_batch_norm` with statistics of half precision."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import gen_nn_ops

from tf_ipu_shim.legacy.names.tensorflow import half_batch_norm

IPU = "/device:IPU:0"
norm = tf.compat.v1.nn.fused_batch_norm


@pytest.fixture(autouse=True)
def halves():
    half_batch_norm.install()


def arguments(dtype):
    random = np.random.RandomState(0)
    x = tf.constant(random.rand(2, 3, 3, 4), dtype)
    scale, offset, mean, variance = (tf.constant(random.rand(4) + 0.5, dtype) for _ in range(4))
    return x, scale, offset, mean, variance


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("device", ["/device:CPU:0", IPU])
def test_halves_are_as_whole_statistics(is_training, device):
    def results(dtype):
        x, scale, offset, mean, variance = arguments(dtype)
        given = {} if is_training else {"mean": mean, "variance": variance}

        @tf.function(jit_compile=device == IPU)
        def run(scale, offset):
            with tf.GradientTape() as tape:
                tape.watch([scale, offset])
                y, batch_mean, batch_variance = norm(
                    tf.cast(x, tf.float16), scale, offset, is_training=is_training, **given
                )
                loss = tf.reduce_sum(tf.cast(y, tf.float32) ** 2)
            return [y, batch_mean, batch_variance, *tape.gradient(loss, [scale, offset])]

        with tf.device(device):
            return run(scale, offset)

    halves, whole = results(tf.float16), results(tf.float32)
    assert {value.dtype for value in halves} == {tf.float16}
    for half, full in zip(halves, whole):
        np.testing.assert_allclose(half.numpy().astype("f"), full.numpy().astype("f"), rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_raw_ops_and_their_gradients(version):
    random = np.random.RandomState(1)
    x, upstream = random.rand(2, 3, 3, 4).astype("f"), random.rand(2, 3, 3, 4).astype("f")
    scale, offset = random.rand(4).astype("f") + 0.5, random.rand(4).astype("f")
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    x16, upstream16, scale16, offset16, mean16, variance16 = (
        tf.constant(value, tf.float16) for value in (x, upstream, scale, offset, mean, variance)
    )
    forward = getattr(gen_nn_ops, f"fused_batch_norm_{version}")(
        x16, scale=scale16, offset=offset16, mean=[], variance=[]
    )
    normalised = (x - mean) / np.sqrt(variance + 1e-3)
    assert forward.y.dtype == forward.batch_mean.dtype == tf.float16
    np.testing.assert_allclose(forward.y, normalised * scale + offset, rtol=2e-2, atol=1e-2)
    further = [mean16] if version == "v3" else []
    gradient = getattr(gen_nn_ops, f"fused_batch_norm_grad_{version}")(
        upstream16, x16, scale16, mean16, variance16, *further, epsilon=1e-3
    )
    assert {gradient.x_backprop.dtype, gradient.scale_backprop.dtype, gradient.offset_backprop.dtype} == {tf.float16}
    np.testing.assert_allclose(gradient.offset_backprop, upstream.sum((0, 1, 2)), rtol=1e-2)
    np.testing.assert_allclose(gradient.scale_backprop, (upstream * normalised).sum((0, 1, 2)), rtol=5e-2, atol=5e-2)


def test_other_types_are_as_they_were():
    y, mean, _ = norm(*arguments(tf.float32)[:3])
    x = arguments(tf.float32)[0].numpy()
    assert y.dtype == mean.dtype == tf.float32
    np.testing.assert_allclose(mean, x.mean((0, 1, 2)), rtol=1e-5)
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError)):
        norm(*arguments(tf.float64)[:3])
