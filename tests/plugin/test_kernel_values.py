"""What kernels make of bad input and of halves, which is what XLA makes of them."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from kernel_programs import compiled
from tf_ipu_shim.ipu import config

from tf_ipu_shim.compiler.kernels.execution_mode import Execution
from tf_ipu_shim.driver import planned_program

v1, raw = tf.compat.v1, tf.raw_ops


@pytest.fixture(autouse=True)
def by_kernels(own_environment, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")


def embedding(indices):
    table = v1.get_variable("table", [4, 3], initializer=v1.ones_initializer(), use_resource=True)
    rows = tf.nn.embedding_lookup(table, indices)
    (gradient,) = tf.gradients(tf.reduce_sum(rows * tf.reshape(tf.range(12.0), [4, 3])), [table])
    update = tf.raw_ops.ResourceScatterAdd(resource=table.handle, indices=indices, updates=rows * 2.0)
    with tf.control_dependencies([gradient, update]):
        return table.read_value(), tf.convert_to_tensor(gradient)


def labelled(labels):
    logits = tf.sin(tf.reshape(tf.range(20.0), [4, 5]))
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), logits


BAD = np.array([1, 7, -2, 3], np.int32)

BAD_INPUT = {
    "rows of a matrix": lambda i: tf.gather(tf.reshape(tf.range(12.0), [4, 3]), i),
    "columns of a matrix": lambda i: tf.gather(tf.reshape(tf.range(12.0), [3, 4]), i, axis=1),
    "rows of a variable, and updates of them": embedding,
    "slices": lambda i: tf.map_fn(
        lambda one: tf.slice(tf.reshape(tf.range(12.0), [3, 4]), [one, one - 1], [2, 3]),
        i,
        fn_output_signature=tf.float32,
    ),
    "labels": lambda i: labelled(i)[0],
    "the gradient of labels": lambda i: tf.gradients(*labelled(i)),
    "segments": lambda i: tf.math.unsorted_segment_sum(tf.range(4.0), i, 4),
    "largest of segments": lambda i: tf.math.unsorted_segment_max(tf.range(4.0), i, 4),
    "integers divided by zero": lambda i: tf.stack(
        [divide(x=[7, -7, -9, 5], y=tf.maximum(i, 0)) for divide in (raw.Div, raw.FloorDiv, raw.FloorMod, raw.Mod)]
    ),
    "negative powers of integers": lambda i: tf.stack([tf.pow(value, i) for value in (-2, 0, 1, 2)]),
    "numbers that are none": lambda i: tf.debugging.check_numerics(tf.math.log(tf.cast(i, tf.float32)), "none"),
}


@pytest.mark.parametrize("indices", [BAD, np.array([2, 0, 3, 1], np.int32)], ids=["bad", "good"])
@pytest.mark.parametrize("what", BAD_INPUT)
def test_results_of_bad_input_do_not_depend_on_the_mode(monkeypatch, what, indices):
    def execution(work):
        return Execution("kernels", "for the test")

    monkeypatch.setattr(planned_program, "choose", execution)
    found = {}
    for way in ("xla", "auto"):
        monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", way)
        configure(1)
        with tf.Graph().as_default(), v1.Session() as session:
            fed = v1.placeholder(tf.int32, [4])
            result = compiled(BAD_INPUT[what], fed)
            session.run(v1.global_variables_initializer())
            found[way] = session.run(result, {fed: indices})
        config.reset_ipu_configuration()
    for ours, theirs in zip(found["auto"], found["xla"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("execution_mode", ["kernels", "xla"])
@pytest.mark.parametrize("kind", [tf.float16, tf.bfloat16], ids=lambda kind: kind.name)
def test_halves_are_added_up_in_float32(monkeypatch, execution_mode, kind):
    """The mean of numbers whose sum is out of range, and sums of numbers that a sum of halves loses."""

    def reductions(x):
        mean = tf.reduce_mean(x * tf.cast(30000.0, kind), axis=1)
        eighths = x * tf.cast(0.125, kind)
        bias = tf.raw_ops.BiasAddGrad(out_backprop=tf.transpose(eighths))
        product = tf.matmul(eighths, tf.transpose(x[:1]))[:, 0]
        return tf.stack([mean, tf.reduce_sum(eighths, 1), bias, product, tf.reduce_prod(x, 1)]) + 0.0

    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)
    configure(1)
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(kind, [2, 8192])
        result = tf.cast(compiled(reductions, fed)[0], tf.float32)
        found = session.run(result, {fed: np.ones([2, 8192])})
    config.reset_ipu_configuration()
    mean = np.float32(tf.cast(tf.constant(30000.0), kind))
    np.testing.assert_array_equal(found, np.repeat([[mean], [1024.0], [1024.0], [1024.0], [1.0]], 2, axis=1))


def test_every_float16_is_converted_as_numpy_does():
    """To float32 for a product's kernel, and its results to the nearest; the last few one by one."""
    bits = np.arange(2**16 + 5, dtype=np.uint32).astype(np.uint16)
    bits = bits[(bits & 0x7C00) != 0x7C00]
    halves = np.append(bits.view(np.float16), np.float16("nan"))[:, None]
    factors = np.array([[1.0, 0.3, 2.0**-10]], np.float16)
    configure(1)
    with tf.device(IPU):
        found = tf.matmul(halves, factors).numpy()
    expected = (halves.astype(np.float32) * factors.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(found, expected)


def sums_of_halves(image, volume, kernel, deep_kernel, matrix):
    """What the plugin has a float32 kernel for; sums and products of some hundred numbers."""
    same = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    deep = {"strides": [1, 1, 1, 1, 1], "padding": "SAME"}
    sizes, kernel_sizes = image.shape, kernel.shape
    return {
        "product": tf.matmul(matrix, matrix, transpose_b=True),
        "products": tf.matmul(tf.stack([matrix, -matrix]), tf.transpose(matrix)[None]),
        "einsum": tf.einsum("ij,kj->ik", matrix, matrix),
        "mean": tf.reduce_mean(matrix * tf.cast(2.0**14, matrix.dtype), 1),
        "sum": tf.reduce_sum(matrix, [0, 1]),
        "number": tf.reduce_prod(matrix * tf.cast(2.0, matrix.dtype), 0),
        "bias": tf.raw_ops.BiasAddGrad(out_backprop=image),
        "convolution": tf.nn.conv2d(image, kernel, **same),
        "its input": tf.raw_ops.Conv2DBackpropInput(input_sizes=sizes, filter=kernel, out_backprop=image, **same),
        "its filter": tf.raw_ops.Conv2DBackpropFilter(
            input=image, filter_sizes=kernel_sizes, out_backprop=image, **same
        ),
        "deep": tf.nn.conv3d(volume, deep_kernel, **deep),
        "its pixels": tf.raw_ops.ResizeNearestNeighborGrad(grads=tf.concat([image] * 20, 1), size=[2, 2]),
        "by channel": tf.nn.depthwise_conv2d(image, kernel, **same),
    }


@pytest.mark.parametrize("kind", [tf.float16, tf.bfloat16], ids=lambda kind: kind.name)
def test_plain_ops_add_halves_up_in_float32(kind):
    """As stock TensorFlow's kernels of float32 do with the same numbers; beyond the range of halves too."""
    random = np.random.RandomState(3)
    shapes = [2, 9, 9, 4], [1, 5, 5, 5, 4], [3, 3, 4, 4], [3, 3, 3, 4, 4], [3, 500]
    halves = [tf.cast(tf.constant(random.rand(*shape)), kind) for shape in shapes]
    configure(1)
    with tf.device(IPU):
        found = sums_of_halves(*halves)
    with tf.device("/CPU:0"):
        expected = sums_of_halves(*(tf.cast(value, tf.float32) for value in halves))
    for what, value in found.items():
        assert value.dtype == kind and "IPU" in value.device, what
        whole = expected[what].numpy()
        np.testing.assert_allclose(tf.cast(value, tf.float32), whole, rtol=2**-10 if kind == tf.float16 else 2**-7)
