"""Gradients of pictures resized by their nearest pixels: stock TensorFlow's on the CPU, and sums by hand."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import config

import tf_ipu_shim
from tf_ipu_shim import ipu
from tf_ipu_shim.compiler.kernels import kernels
from tf_ipu_shim.compiler.xla_semantics import kernels_only
from tf_ipu_shim.driver import planned_program

pytestmark = pytest.mark.one_version

OPTIONS = [
    {"align_corners": False, "half_pixel_centers": False},
    {"align_corners": True, "half_pixel_centers": False},
    {"align_corners": False, "half_pixel_centers": True},
]


@pytest.fixture(autouse=True, params=["xla", "kernels"])
def execution_mode(request, own_environment, monkeypatch):
    """XLA computes them where kernels cannot run a program: NaN spreads there, so that kernels do wherever they can."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", request.param)
    monkeypatch.setattr(kernels_only, "describe_kernel_only_ops", lambda *_: [])
    configure()


def gradient_of_all(gradients, size, options):
    return [tf.raw_ops.ResizeNearestNeighborGrad(grads=one, size=size, **options) for one in gradients]


@pytest.mark.parametrize(
    ("options", "kind"), [*((options, tf.float32) for options in OPTIONS), (OPTIONS[1], tf.float64)]
)
@pytest.mark.slow
def test_the_sizes_that_tensorflow_is_asked_for(options, kind):
    """Larger, smaller, odd, one pixel; whole numbers, which are added up exactly in any order."""
    random = np.random.default_rng(3)
    made = [random.integers(-9, 9, [2, rows, columns, 3]) for rows, columns in itertools.product([1, 4, 9], [2, 7])]
    gradients = [tf.constant(one, kind) for one in made]
    for size in ([2, 2], [1, 5], [7, 3]):
        with tf.device("CPU"):
            expected = gradient_of_all(gradients, size, options)
        with tf.device(IPU):
            found = tf.function(gradient_of_all, jit_compile=True)(gradients, size, options)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [tf.float16, tf.bfloat16])
def test_sums_of_16_bits_are_rounded_once(kind):
    """Four of 0.5 beside 256: each sum of 16 bits by itself would lose bfloat16's."""
    gradient = np.zeros([1, 2, 4, 1], np.float32)
    gradient[0, :, :2, 0] = [[256, 0.5], [0.5, 1]]

    def function(g):
        return tf.raw_ops.ResizeNearestNeighborGrad(grads=tf.cast(g, kind), size=[1, 2])

    with tf.device(IPU):
        found = tf.function(function, jit_compile=True)(tf.constant(gradient))
    assert found.dtype == kind
    np.testing.assert_array_equal(tf.cast(found, tf.float32), [[[[258], [0]]]])


def test_upsampling_in_a_loop():
    """By hand: each pixel is taken four times, its gradient is four times the weight."""

    def function(x, weight):
        def step(i, total):
            with tf.GradientTape() as tape:
                tape.watch(x)
                loss = tf.reduce_sum(tf.keras.layers.UpSampling2D()(x) * weight)
            return i + 1, total + tape.gradient(loss, x)

        return tf.while_loop(lambda i, total: i < 3, step, [0, tf.zeros_like(x)])[1]

    with tf.device(IPU):
        found = tf.function(function, jit_compile=True)(tf.ones([1, 2, 3, 1]), tf.constant(2.0))
    np.testing.assert_array_equal(found, np.full([1, 2, 3, 1], 3 * 4 * 2.0))


def enlarged_twice(picture, weights):
    """Two shards, each with gradients of its own."""
    with ipu.scopes.ipu_shard(0):
        first = tf.raw_ops.ResizeNearestNeighborGrad(grads=picture * weights, size=[4, 2])
    with ipu.scopes.ipu_shard(1):
        return tf.raw_ops.ResizeNearestNeighborGrad(grads=first + 1.0, size=[2, 2])


def test_by_kernels_tensorflow_s_own_runs_and_memory_is_the_same(monkeypatch):
    ran = []

    def by_kernels(*arguments, **options):
        ran.append(kernels.to_kernels(*arguments, **options))
        return ran[-1]

    monkeypatch.setattr(planned_program, "to_kernels", by_kernels)
    values = np.random.default_rng(4).standard_normal([2, 2, 8, 6, 3], np.float32)
    with tf.device("CPU"):
        first = tf.raw_ops.ResizeNearestNeighborGrad(grads=tf.constant(values[0] * values[1]), size=[4, 2])
        expected = tf.raw_ops.ResizeNearestNeighborGrad(grads=first + 1.0, size=[2, 2])
    planned = []
    for way in ("xla", "kernels"):
        monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", way)
        configure(2)
        with tf.device(IPU):
            found = tf.function(enlarged_twice, jit_compile=True)(*map(tf.constant, values))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        (device,) = json.loads(tf_ipu_shim.memory_report().to_json())["devices"]
        (program,) = device["modelled"]["programs"]
        assert program.pop("mode") == way
        del program["mode_reason"]
        planned.append(program)
        config.reset_ipu_configuration()
    assert planned[0] == planned[1]
    (program,) = ran
    run = [function for function in program.functions if function.signature.name not in program.traced]
    ops = [node.op for function in run for node in function.node_def]
    assert ops.count("ResizeNearestNeighborGrad") == 2 and "Einsum" not in ops


def test_gradients_of_integers_are_refused():
    def function(g):
        made = tf.raw_ops.ResizeNearestNeighborGrad(grads=tf.cast(g, tf.int32), size=[1, 2])
        return tf.cast(made, tf.float32)

    with tf.device(IPU), pytest.raises(tf.errors.InvalidArgumentError, match="ResizeNearestNeighborGrad.*made at"):
        tf.function(function, jit_compile=True)(tf.zeros([1, 2, 4, 1]))
