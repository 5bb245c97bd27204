"""Numbers of eight bits against a table made from the formats' definition, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from harness import configure, run_function, run_session
from tf_ipu_shim.ipu.ops import f8_ops
from tf_ipu_shim.ipu.ops.f8_ops import Format

pytestmark = pytest.mark.one_version

LAYOUT = {Format.F143: (4, 3, 8), Format.F152: (5, 2, 16)}


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def value_of(code, fmt):
    """What a code means: sign, exponent with a bias, mantissa; 0x80 is the one NaN."""
    exponent_bits, mantissa_bits, bias = LAYOUT[fmt]
    if code == 0x80:
        return np.nan
    exponent = (code & 0x7F) >> mantissa_bits
    mantissa = (code & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    size = (1 + mantissa) * 2.0 ** (exponent - bias) if exponent else mantissa * 2.0 ** (1 - bias)
    return -size if code & 0x80 else size


def nearest(value, fmt, scale):
    """The code of the number nearest to a value, of two the one with an even mantissa; beyond the largest, that one."""
    if np.isnan(value):
        return 0x80
    values = np.array([value_of(code, fmt) for code in range(128)])
    distance = np.abs(values - min(abs(float(value)) / 2.0**scale, values[-1]))
    best = np.flatnonzero(distance == distance.min())
    code = int(best[0] if len(best) == 1 or best[0] % 2 == 0 else best[1])
    return code + 0x80 if value < 0 and code else code


@pytest.mark.parametrize("fmt", list(Format))
@pytest.mark.parametrize("scale", [-32, -3, 0, 7, 31])
def test_all_codes_and_roundings(fmt, scale):
    metadata = f8_ops.create_metadata(fmt, scale)
    codes = np.arange(256, dtype=np.uint8)
    numbers = f8_ops.convert_from_f8((codes, metadata), tf.float32).numpy()
    np.testing.assert_array_equal(numbers, [value_of(code, fmt) * 2.0**scale for code in range(256)])
    back = f8_ops.convert_to_f8(numbers, metadata)
    np.testing.assert_array_equal(back.data, codes)
    steps = np.sort(numbers[:128])
    middles = ((steps[1:] + steps[:-1]) / 2).astype(np.float32)
    values = np.concatenate([middles, -middles, np.nextafter(middles, np.float32(np.inf)), steps[-1:] * 9, [0.0, -0.0]])
    rounded = f8_ops.convert_to_f8(values.astype(np.float32), metadata).data.numpy()
    np.testing.assert_array_equal(rounded, [nearest(value, fmt, scale) for value in values])


def test_infinities_and_what_is_no_number():
    metadata = f8_ops.create_metadata(Format.F143)
    values = np.array([np.inf, -np.inf, np.nan, 65504], np.float16)
    np.testing.assert_array_equal(f8_ops.convert_to_f8(values, metadata).data, [0x7F, 0xFF, 0x80, 0x7F])


@pytest.mark.parametrize("fmt", list(Format))
def test_in_compiled_programs(fmt):
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float16)

    def model(parts, values):
        packed = f8_ops.convert_to_f8(values, f8_ops.create_metadata(fmt, 1))
        return [packed.data, f8_ops.convert_from_f8(packed)]

    codes = np.array([[nearest(value, fmt, 1) for value in row] for row in x])
    numbers = np.array([[value_of(code, fmt) * 2 for code in row] for row in codes])
    for run in (run_session(model, [x], on_ipu=True), run_function(model, [x], mode="compile")):
        data, values = run.steps[0]
        assert values.dtype == np.float16
        np.testing.assert_array_equal(data, codes)
        np.testing.assert_array_equal(values, numbers)


def packed(values, fmt=Format.F143, scale=0):
    """The tensor, and the numbers it stands for in NumPy."""
    numbers = np.vectorize(lambda value: value_of(nearest(value, fmt, scale), fmt) * 2.0**scale)(values)
    return f8_ops.convert_to_f8(values, f8_ops.create_metadata(fmt, scale)), numbers


def test_matmul():
    random = np.random.default_rng(2)
    left, left_numbers = packed(random.normal(size=(2, 3, 4)).astype(np.float32))
    right, right_numbers = packed(random.normal(size=(2, 4, 5)).astype(np.float32), Format.F152, -1)
    product = f8_ops.f8_matmul(left, right)
    assert product.dtype == tf.float16
    np.testing.assert_allclose(product, left_numbers @ right_numbers, rtol=2e-3, atol=1e-3)
    data, metadata = f8_ops.canonicalise_input(f8_ops.QuarterTensor(left.data[0], left.metadata))
    assert data.shape == (1, 3, 4) and metadata is left.metadata
    assert f8_ops.canonicalise_output(tf.zeros([6, 3, 7]), tf.zeros([2, 3, 3, 4])).shape == (2, 3, 3, 7)
    with tf.Graph().as_default(), pytest.raises(Exception, match="Input shape must be fully defined"):
        f8_ops.canonicalise_input((tf.compat.v1.placeholder(tf.uint8, [None, 2]), metadata))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions(axes):
    random = np.random.default_rng(axes)
    inputs, numbers = packed(random.normal(size=(1, *[4] * axes, 2)).astype(np.float32))
    filters, weights = packed(random.normal(size=(*[2] * axes, 2, 3)).astype(np.float32))
    op, stock = [
        (f8_ops.f8_conv_1d, tf.nn.conv1d),
        (f8_ops.f8_conv_2d, tf.nn.conv2d),
        (f8_ops.f8_conv_3d, tf.nn.conv3d),
    ][axes - 1]
    strides = 1 if axes < 3 else [1] * 5
    expected = stock(numbers.astype(np.float32), weights.astype(np.float32), strides, "VALID")
    result = op(inputs, filters, strides, "VALID")
    assert result.dtype == tf.float16
    np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-3)
    first = [0, axes + 1, *range(1, axes + 1)]
    turned = f8_ops.QuarterTensor(tf.transpose(inputs.data, first), inputs.metadata)
    result = op(turned, filters, strides, "VALID", data_format="NC" + "DHW"[3 - axes :])
    np.testing.assert_allclose(result, tf.transpose(expected, first), rtol=2e-3, atol=2e-3)
    if axes == 1:
        with pytest.raises(ValueError, match="`data_format` must be 'NWC' or 'NCW'. Received"):
            op(inputs, filters, 1, "SAME", data_format="NHWC")


def test_quarter_tensors():
    one = f8_ops.convert_to_f8([1.0, 2.0], f8_ops.create_metadata(Format.F143))
    data, metadata = one
    assert len(one) == 2 and one[0] is data and one.shape == (2,) and one.dtype == tf.uint8
    assert one == f8_ops.QuarterTensor(data, metadata)
    assert one != f8_ops.QuarterTensor(data, f8_ops.create_metadata(Format.F152))
    held = f8_ops.QuarterTensor(tf.Variable(data), metadata)
    held.assign(f8_ops.convert_to_f8([3.0, 4.0], metadata))
    np.testing.assert_array_equal(f8_ops.convert_from_f8(held), [3.0, 4.0])
    with pytest.raises(TypeError, match="Trying to set/update QuarterTensor data with a"):
        f8_ops.QuarterTensor([1.0], metadata)
    with pytest.raises(TypeError, match="Trying to set/update QuarterTensor data with a"):
        held.assign(([1.0, 1.0], metadata))
    with pytest.raises(ValueError, match="from -32 to 31"):
        f8_ops.create_metadata(Format.F143, 32)


def test_metadata_feed_a_placeholder():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        metadata = tf.compat.v1.placeholder(tf.uint8, [])
        back = f8_ops.convert_from_f8(f8_ops.convert_to_f8(tf.constant([1.5, -3.0]), metadata), tf.float32)
        for fmt in Format:
            assert session.run(back, {metadata: f8_ops.create_metadata(fmt, 2)}).tolist() == [1.5, -3.0]
