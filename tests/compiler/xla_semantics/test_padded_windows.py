"""Convolutions leave padding out in each execution mode, also beside NaN and infinity, as stock TensorFlow's do."""

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU
from tf_ipu_shim.ipu import ipu_compiler, scopes

from tf_ipu_shim.compiler.ir import one_dnn

raw = tf.raw_ops
NAN, INF = np.nan, np.inf


@pytest.fixture(autouse=True)
def one_ipu(own_environment, environment):
    environment(ipus=1)


def three(plane, axes, stride, padding):
    """A convolution, its gradient of the input and that of the filter."""
    ops = {
        "Conv2D": (raw.Conv2D, raw.Conv2DBackpropInput, raw.Conv2DBackpropFilter),
        "Conv3D": (raw.Conv3D, raw.Conv3DBackpropInputV2, raw.Conv3DBackpropFilterV2),
        "Depthwise": (
            raw.DepthwiseConv2dNative,
            raw.DepthwiseConv2dNativeBackpropInput,
            raw.DepthwiseConv2dNativeBackpropFilter,
        ),
    }[plane]
    options = {"strides": [1, *[stride] * axes, 1], "padding": padding}
    sizes, filter_sizes = [2, *[5] * axes, 2], [*[3] * axes, 2, 3]
    return (
        lambda x, w, _: ops[0](input=x, filter=w, **options),
        lambda _, w, dy: ops[1](input_sizes=sizes, filter=w, out_backprop=dy, **options),
        lambda x, _, dy: ops[2](input=x, filter_sizes=filter_sizes, out_backprop=dy, **options),
    )


def arrays(plane, axes, stride, padding, edges):
    """An image, a filter and a gradient, of small whole numbers with these elements among them."""
    chance = np.random.RandomState(stride + len(edges))
    places = -(-(5 if padding == "SAME" else 3) // stride)
    shapes = [2, *[5] * axes, 2], [*[3] * axes, 2, 3], [2, *[places] * axes, 6 if plane == "Depthwise" else 3]
    made = [chance.randint(-3, 4, shape).astype("f") for shape in shapes]
    for one in made:
        for element in edges:
            one.flat[chance.choice(one.size, 2)] = element
    return made


def both(built):
    """These ops on the CPU and on an IPU."""

    def model(*inputs):
        return [one(*inputs) for one in built]

    @tf.function
    def stock(*inputs):
        with tf.device("/device:CPU:0"):
            return model(*inputs)

    @tf.function
    def ours(*inputs):
        with scopes.ipu_scope(IPU):
            return ipu_compiler.compile(model, list(inputs))

    return stock, ours


def input_gradient(w, dy, axes, stride):
    """NumPy's sum of the products of elements alone, for VALID padding."""
    total = np.zeros([2, *[5] * axes, 2], "f")
    with np.errstate(invalid="ignore"):
        for place in np.ndindex(*dy.shape[1:-1]):
            for offset in np.ndindex(*[3] * axes):
                target = (slice(None), *(stride * p + o for p, o in zip(place, offset)))
                total[target] += (dy[(slice(None), *place)][:, None] * w[offset]).sum(-1)
    return total


@pytest.mark.parametrize(
    ("plane", "stride", "padding"),
    [
        ("Conv2D", 1, "SAME"),
        ("Conv2D", 2, "SAME"),
        ("Conv2D", 2, "VALID"),
        ("Conv3D", 1, "SAME"),
        ("Conv3D", 2, "SAME"),
        ("Conv3D", 2, "VALID"),
        ("Depthwise", 1, "SAME"),
        ("Depthwise", 2, "SAME"),
        ("Depthwise", 2, "VALID"),
    ],
)
def test_padding_is_left_out(plane, stride, padding, execution_mode):
    """Of finite values, with infinity among them, and with NaN."""
    axes = 3 if plane == "Conv3D" else 2
    stock, ours = both(three(plane, axes, stride, padding))
    for edges in ((), (INF,), (NAN, -INF, INF)):
        values = arrays(plane, axes, stride, padding, edges)
        inputs = [tf.constant(one) for one in values]
        expected = stock(*inputs)
        if execution_mode == "xla" and padding == "VALID" and plane != "Depthwise" and one_dnn.enabled():
            # kernels of 2.21 multiply the zeros between strides
            expected[1] = input_gradient(*values[1:], axes, stride)
        for got, wanted in zip(ours(*inputs), expected, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=str(edges))


def test_kernel_differs_for_one_image(execution_mode):
    """The input gradient of a volume: TensorFlow's own kernel leaves padding out for one, not for two."""
    inputs = [tf.fill([2, 2, 2, 2, 3], -INF), tf.fill([1, 4, 4, 4, 3], -1.0)]
    options = {"input_sizes": [1, 4, 4, 4, 2], "strides": [1] * 5, "padding": "SAME"}
    stock, ours = both([lambda w, dy: raw.Conv3DBackpropInputV2(filter=w, out_backprop=dy, **options)])
    np.testing.assert_array_equal(ours(*inputs)[0], stock(*inputs)[0])


@pytest.mark.parametrize("plane", ["Conv2D", "Conv3D", "Depthwise"])
@pytest.mark.parametrize(("stride", "padding"), [(1, "SAME"), (2, "SAME"), (2, "VALID")])
def test_float64_is_as_on_the_cpu(plane, stride, padding, execution_mode):
    """Whose kernels multiply padding in most of the ops."""
    axes = 3 if plane == "Conv3D" else 2
    stock, ours = both(three(plane, axes, stride, padding))
    values = [tf.constant(one, tf.float64) for one in arrays(plane, axes, stride, padding, (NAN, -INF, INF))]
    for got, wanted in zip(ours(*values), stock(*values), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.slow
def test_padding_is_as_on_the_cpu_with_other_kernels():
    """By TensorFlow's own kernels, of which most multiply padding, or by oneDNN's."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "padding_is_left_out"]
    tests = subprocess.run(
        command,
        env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0" if one_dnn.enabled() else "1"},
        capture_output=True,
        text=True,
    )
    assert tests.returncode == 0, tests.stdout
