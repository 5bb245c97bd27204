"""What runs by kernels is put on oneDNN's as TensorFlow does on the CPU: the same values, fewer ops."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

from tf_ipu_shim.compiler.ir.one_dnn import enabled
from tf_ipu_shim.compiler.kernels.bias_fusion import fuse_biases
from tf_ipu_shim.compiler.kernels.one_dnn_pooling import use_one_dnn_pooling

v1 = tf.compat.v1
pytestmark = pytest.mark.skipif(not enabled(), reason="TensorFlow has no oneDNN here")

IMAGES = np.random.default_rng(0).normal(size=(2, 6, 6, 3)).astype(np.float32)
FILTERS = np.random.default_rng(1).normal(size=(3, 3, 3, 4)).astype(np.float32)
BIAS = np.random.default_rng(2).normal(size=4).astype(np.float32)
GRADIENTS = np.random.default_rng(3).normal(size=(2, 6, 6, 4)).astype(np.float32)


def rewritten(function, *inputs, runs=True):
    """The ops of a function that was rewritten, and what messages call them, once its values are those of stock."""
    signature = [tf.TensorSpec(value.shape, value.dtype) for value in inputs]
    concrete = tf.function(function, autograph=False).get_concrete_function(*signature)
    definition = concrete.function_def
    changed = type(definition)()
    changed.CopyFrom(definition)
    names = {}
    for rewrite in (fuse_biases, use_one_dnn_pooling):
        names.update(rewrite(changed))
    ops = [node.op for node in changed.node_def]
    if not runs:
        return ops, names
    graph = function_def_to_graph(changed)
    with v1.Session(graph=graph) as session:
        found = session.run(graph.outputs, {tensor.name: value for tensor, value in zip(graph.inputs, inputs)})
    for value, expected in zip(found, tf.nest.flatten(concrete(*map(tf.constant, inputs))), strict=True):
        np.testing.assert_allclose(value, expected.numpy(), rtol=1e-5, atol=1e-5)
    return ops, names


def test_a_convolution_and_its_bias_are_one_op():
    def model(images, filters, bias):
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, filters, 2, "SAME"), bias, name="last"))

    ops, names = rewritten(model, IMAGES, FILTERS, BIAS)
    assert {"_MklNativeFusedConv2D", "Relu"} <= set(ops)
    assert {"Conv2D", "BiasAdd"}.isdisjoint(ops)
    assert names["last"].op == "BiasAdd", "messages name what the script has"


@pytest.mark.parametrize("columns", [False, True])
def test_a_matmul_and_its_bias_are_one_op_unless_transposed(columns):
    def model(x, weights, bias):
        made = tf.matmul(x, weights, transpose_a=columns, transpose_b=not columns)
        return tf.nn.relu(tf.nn.bias_add(made, bias))

    ops, _ = rewritten(model, IMAGES[:, 0, 0], IMAGES[:, 0, 1], BIAS[: 3 if columns else 2])
    assert ("_MklNativeFusedMatMul" in ops) is not columns
    assert {"MatMul", "BiasAdd"}.isdisjoint(ops) is not columns


def test_what_somebody_else_takes_or_waits_for_stays():
    def taken(images, filters, bias):
        made = tf.nn.conv2d(images, filters, 1, "SAME")
        added = tf.nn.bias_add(made, bias)
        return tf.nn.relu(added), added, made

    def waited_for(images, filters, bias):
        made = tf.nn.conv2d(images, filters, 1, "SAME")
        with tf.control_dependencies([made]):
            other = tf.identity(bias)
        return tf.nn.bias_add(made, other)

    for model in (taken, waited_for):
        ops, _ = rewritten(model, IMAGES, FILTERS, BIAS)
        assert {"Conv2D", "BiasAdd"} <= set(ops)


def filter_gradient(images, gradients):
    return tf.raw_ops.Conv2DBackpropFilter(
        input=images, filter_sizes=[3, 3, 3, 4], out_backprop=gradients, strides=[1] * 4, padding="SAME"
    )


def test_the_gradients_of_filters_and_bias_are_one_op():
    def gradients(images, given):
        return filter_gradient(images, given), tf.raw_ops.BiasAddGrad(out_backprop=given)

    ops, _ = rewritten(gradients, IMAGES, GRADIENTS)
    assert "_MklNativeConv2DBackpropFilterWithBias" in ops
    assert "BiasAddGrad" not in ops


def test_a_bias_gradient_that_the_other_gradient_needs_stays():
    """One op of both would wait for itself. TensorFlow's own rewriting makes one, and cannot run it."""

    def gradients(images, given):
        of_bias = tf.raw_ops.BiasAddGrad(out_backprop=given)
        return filter_gradient(images * tf.reduce_max(of_bias), given), of_bias

    ops, _ = rewritten(gradients, IMAGES, GRADIENTS, runs=False)
    assert {"Conv2DBackpropFilter", "BiasAddGrad"} <= set(ops)


def test_the_gradient_of_max_pooling_takes_where_the_maxima_are():
    def both(images):
        with tf.GradientTape() as tape:
            tape.watch(images)
            pooled = tf.nn.max_pool2d(images, 3, 2, "SAME")
        return pooled, tape.gradient(pooled, images)

    ops, _ = rewritten(both, IMAGES)
    assert ops.count("_MklNativeMaxPool") == ops.count("_MklNativeMaxPoolGrad") == 1
    assert {"MaxPool", "MaxPoolGrad"}.isdisjoint(ops)


def test_a_gradient_of_max_pooling_by_itself_pools_again():
    """As in a pipeline stage that keeps no activations."""
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    pooled = IMAGES.reshape(2, 3, 2, 3, 2, 3).max((2, 4))

    def gradient(images, result, given):
        return tf.raw_ops.MaxPoolGrad(orig_input=images, orig_output=result, grad=given, name="mine", **window)

    ops, names = rewritten(gradient, IMAGES, pooled, GRADIENTS[:, :3, :3, :3])
    assert ops.count("_MklNativeMaxPool") == ops.count("_MklNativeMaxPoolGrad") == 1
    assert {node.name for node in names.values()} == {"mine"}


def test_other_types_and_windows_stay():
    def halves(images):
        return tf.nn.max_pool2d(tf.cast(images, tf.float16), 2, 2, "SAME")

    def over_channels(images):
        return tf.nn.max_pool(images, [1, 1, 1, 3], [1, 1, 1, 3], "SAME")

    for model in (halves, over_channels):
        ops, _ = rewritten(model, IMAGES)
        assert "MaxPool" in ops


@pytest.fixture
def by_kernels(monkeypatch):
    """One IPU, whose programs run by kernels."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")
    configure(1)


def on_ipu(function, *inputs):
    """What a function gives as a program."""
    with tf.device(IPU):
        made = tf.function(function, jit_compile=True, autograph=False)(*map(tf.constant, inputs))
    return tf.nest.map_structure(lambda value: value.numpy(), made)


def gradient_of_max_pooling(images):
    with tf.GradientTape() as tape:
        tape.watch(images)
        pooled = tf.nn.max_pool2d(images, 2, 2, "VALID")
    return tape.gradient(pooled, images)


def test_empty_batches(by_kernels):
    """oneDNN's gradient of max-pooling would end the process, its norms would leave means as they find them.

    Convolutions would have as many channels as their input.
    """
    none = np.zeros((0, 6, 6, 3), np.float32)
    assert on_ipu(gradient_of_max_pooling, none).shape == none.shape

    def means(images):
        made, mean, _ = v1.nn.fused_batch_norm(images, np.ones(3, np.float32), np.ones(3, np.float32))
        return tf.concat([mean, tf.reshape(made, [-1])], 0)

    np.testing.assert_array_equal(on_ipu(means, none), means(tf.constant(none)))
    filters, bias = np.ones((2, 2, 3, 5), np.float32), np.ones(5, np.float32)
    for kind in (tf.float32, tf.float16):

        def convolved(images, kind=kind):
            return tf.nn.conv2d(tf.cast(images, kind), tf.cast(filters, kind), 1, "SAME")

        def fused(images, kind=kind):
            return tf.nn.relu(tf.nn.bias_add(convolved(images), tf.cast(bias, kind)))

        assert on_ipu(convolved, none).shape == on_ipu(fused, none).shape == (0, 6, 6, 5)
        some = np.ones((1, 6, 6, 3), np.float32)
        np.testing.assert_array_equal(on_ipu(fused, some), fused(tf.constant(some)))
    assert on_ipu(lambda x: tf.nn.depthwise_conv2d(x, filters, [1] * 4, "SAME"), none).shape == (0, 6, 6, 15)
    volumes = np.zeros((0, 4, 4, 4, 3), np.float32)
    assert on_ipu(lambda x: tf.nn.conv3d(x, filters[None], [1] * 5, "SAME"), volumes).shape == (0, 4, 4, 4, 5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_windows_that_overlap_or_end_beyond_the_edge(by_kernels, padding):
    def gradient(images):
        with tf.GradientTape() as tape:
            tape.watch(images)
            pooled = tf.nn.max_pool2d(images, 3, 2, padding) ** 2
        return tape.gradient(pooled, images)

    np.testing.assert_allclose(on_ipu(gradient, IMAGES), gradient(tf.constant(IMAGES)), rtol=1e-5)


@pytest.mark.parametrize("rows", [(1, 2), (0, 1)])
@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_convolutions_with_padding_of_their_own(by_kernels, stride, rows):
    """oneDNN's kernels leave it out: they fail, or give what no padding would."""

    def gradients(images, filters):
        with tf.GradientTape() as tape:
            tape.watch([images, filters])
            made = tf.nn.conv2d(images, filters, stride, [[0, 0], rows, (1, 0), [0, 0]])
            loss = tf.reduce_sum(made**2)
        return tape.gradient(loss, [images, filters])

    padded = tf.pad(IMAGES, [[0, 0], rows, (1, 0), [0, 0]])
    with tf.GradientTape() as tape:
        tape.watch([padded, filters := tf.constant(FILTERS)])
        loss = tf.reduce_sum(tf.nn.conv2d(padded, filters, stride, "VALID") ** 2)
    of_images, of_filters = tape.gradient(loss, [padded, filters])
    found = on_ipu(gradients, IMAGES, FILTERS)
    np.testing.assert_allclose(found[0], of_images[:, rows[0] : rows[0] + 6, 1:], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found[1], of_filters, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("plain", [False, True])
def test_batch_normalisation_of_five_axes(by_kernels, plain):
    """oneDNN's op takes four."""
    volumes = np.random.default_rng(4).normal(size=(2, 3, 3, 3, 2)).astype(np.float32)
    ones = np.ones(2, np.float32)

    def normalised(volumes):
        empty = tf.zeros([0])
        return tf.raw_ops.FusedBatchNormV3(
            x=volumes, scale=ones, offset=ones, mean=empty, variance=empty, epsilon=0.001, data_format="NDHWC"
        ).y

    if plain:
        with tf.device(IPU):
            found = normalised(tf.constant(volumes)).numpy()
    else:
        found = on_ipu(normalised, volumes)
    mean, variance = volumes.mean((0, 1, 2, 3)), volumes.var((0, 1, 2, 3))
    np.testing.assert_allclose(found, (volumes - mean) / np.sqrt(variance + 0.001) + 1, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("version", ["", "V2", "V3"])
def test_batch_normalisation_and_its_gradient_are_the_cpus(by_kernels, version):
    """To the bit: TensorFlow has oneDNN's op for each version."""

    def normalised(images):
        scale, offset, empty = tf.constant([1.0, 2.0, 0.5]), tf.constant([0.1, -0.2, 0.3]), tf.zeros([0])
        with tf.GradientTape() as tape:
            tape.watch(images)
            norm = getattr(tf.raw_ops, f"FusedBatchNorm{version}")
            y = norm(x=images, scale=scale, offset=offset, mean=empty, variance=empty, epsilon=0.001).y
        return y, tape.gradient(y, images, tf.sin(y))

    with tf.device("/device:CPU:0"):
        expected = normalised(tf.constant(IMAGES))
    with tf.device(IPU):
        found = normalised(tf.constant(IMAGES))
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value.numpy(), wanted.numpy())


def test_gradients_of_another_shape_are_refused(by_kernels):
    """oneDNN would read beyond their end."""
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}

    def gradient(images, given):
        return tf.raw_ops.MaxPoolGrad(orig_input=images, orig_output=given, grad=given, **window)

    with pytest.raises(tf.errors.OpError):
        on_ipu(gradient, IMAGES, np.ones((2, 1, 1, 3), np.float32))
    assert on_ipu(gradient_of_max_pooling, IMAGES).shape == IMAGES.shape, "the next one runs"


def test_a_norm_and_its_relu_of_a_session(by_kernels):
    """TensorFlow's rewriting makes one op of them, which is oneDNN's alone."""
    ones = np.ones(3, np.float32)

    def model(images):
        return tf.nn.relu(v1.nn.fused_batch_norm(images, ones, ones, ones, ones, is_training=False)[0])

    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, IMAGES.shape)
        with tf.device(IPU):
            made = model(fed)
        found = session.run(made, {fed: IMAGES})
    np.testing.assert_allclose(found, np.maximum((IMAGES - 1) / np.sqrt(1.001) + 1, 0), rtol=1e-5, atol=1e-6)


def test_plain_kernels_are_made_without_a_word(by_kernels, capfd):
    """oneDNN's fused convolution has an attribute on TensorFlow 2.21 that the plain op has not."""

    def model(images):
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, FILTERS, 1, "SAME"), BIAS))

    np.testing.assert_allclose(on_ipu(model, IMAGES), model(tf.constant(IMAGES)), rtol=1e-5, atol=1e-5)
    assert "attribute" not in capfd.readouterr().err
