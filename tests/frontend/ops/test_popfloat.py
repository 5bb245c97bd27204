"""Generic floats against the list of a format's numbers, and against NumPy's and ml_dtypes' own types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from harness import configure, run_function, run_session
from tf_ipu_shim.ipu.ops.experimental.popfloat_cast_to_gfloat import GenericFloat, calc_gfloat_params
from tf_ipu_shim.poplar.ops import gen_popfloat_ops

from tf_ipu_shim import errors

pytestmark = pytest.mark.one_version

FORMATS = [(3, 4, 7), (2, 5, 15), (7, 8, 127), (10, 5, 15), (1, 2, 1)]


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def numbers_of(man, exp, bias, denormals=True, infinities=True):
    """All numbers of a format that are not negative, in order."""
    exponents = range(2**exp - infinities)
    pairs = ((e, m) for e in exponents for m in range(2**man))
    values = [(m + (2**man if e else 0)) * 2.0 ** (max(e, 1) - bias - man) for e, m in pairs if e or denormals or not m]
    return np.array(values)


def rounded(value, numbers, mode):
    """By search among the numbers; beyond the largest, that one."""
    size = min(abs(value), numbers[-1])
    above = min(np.searchsorted(numbers, size), len(numbers) - 1)
    below = above if numbers[above] == size else above - 1
    up = {"RZ": False, "RU": value > 0, "RD": value < 0}.get(mode)
    if up is None:
        left, right = size - numbers[below], numbers[above] - size
        up = right < left or (right == left and (mode == "RA" or above % 2 == 0))
    return np.copysign(numbers[above if up else below], value)


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("mode", ["RN", "RA", "RZ", "RU", "RD"])
def test_rounding(layout, mode):
    numbers = numbers_of(*layout)
    if len(numbers) > 300:
        numbers = numbers[numbers >= 2.0**-14]
    random = np.random.default_rng(0)
    values = np.concatenate(
        [(numbers[1:] + numbers[:-1]) / 2, random.choice(numbers, 50) * random.uniform(0.9, 1.1, 50)]
    )
    values = values[values > numbers[0]].astype(np.float32)[:400]
    values = np.concatenate([values, -values])
    result = GenericFloat(*layout).cast_native_to_gfloat(values, en_nanoo=False, round_mode=mode, storage_type="fp32")
    np.testing.assert_array_equal(result, [rounded(value, numbers, mode) for value in values])


@pytest.mark.parametrize("layout, kind", [((2, 5, 15), ml_dtypes.float8_e5m2), ((7, 8, 127), ml_dtypes.bfloat16)])
def test_known_formats(layout, kind):
    values = np.random.default_rng(1).normal(scale=8, size=500).astype(np.float32)
    cast = GenericFloat(*layout)
    bits = cast.cast_native_to_gfloat(values)
    expected = values.astype(kind)
    np.testing.assert_array_equal(bits, expected.view(np.int8 if expected.itemsize == 1 else np.int16))
    np.testing.assert_array_equal(cast.cast_gfloat_to_native(bits), expected.astype(np.float32))


def test_denormals_overflow_and_nan():
    values = np.array([1e9, -1e9, np.nan, 2.0**-9, -0.0], np.float32)
    eight = GenericFloat(3, 4, 7)
    for nanoo, beyond in ((True, np.nan), (False, 240)):
        result = eight.cast_native_to_gfloat(values, en_nanoo=nanoo, storage_type="fp32")
        np.testing.assert_array_equal(result, [beyond, -beyond, np.nan, 2.0**-9, 0])
        unpacked = eight.cast_gfloat_to_native(eight.cast_native_to_gfloat(values, en_nanoo=nanoo))
        np.testing.assert_array_equal(unpacked, result)
    bounded = GenericFloat(3, 4, 7, en_denorm=False, en_inf=False)
    result = bounded.cast_native_to_gfloat(values[[0, 3]], en_nanoo=False, storage_type="fp32")
    np.testing.assert_array_equal(result, [480, 0])
    with pytest.raises(RuntimeWarning, match="Gfloat format's Infs and Nans are not"):
        bounded.cast_native_to_gfloat(values)


def test_stochastic_rounding():
    values = np.full(4000, 1.25, np.float32)
    cast = GenericFloat(1, 4, 7).get_cast_native_to_gfloat_fun(
        round_mode="SR", sr_density="Uniform", storage_type="fp32"
    )
    result = cast(values).numpy()
    assert set(result) == {1.0, 1.5}
    assert abs(result.mean() - 1.25) < 0.03


def test_in_compiled_programs():
    values = np.random.default_rng(2).normal(size=20).astype(np.float32)
    cast = GenericFloat(3, 4, 7)

    def model(parts, x):
        packed = cast.cast_native_to_gfloat(x)
        return [packed, cast.cast_gfloat_to_native(packed, storage_type="fp32")]

    numbers = numbers_of(3, 4, 7)
    for run in (run_session(model, [values], on_ipu=True), run_function(model, [values], mode="compile")):
        packed, unpacked = run.steps[0]
        assert packed.dtype == np.int8
        np.testing.assert_array_equal(unpacked, [rounded(value, numbers, "RN") for value in values])


def test_types_and_errors():
    assert GenericFloat(3, 4, 7).get_gfloat_storage_dtype() == tf.int8
    assert GenericFloat(7, 8, 127).get_gfloat_storage_dtype() == tf.int16
    assert GenericFloat().get_gfloat_native_dtype() == tf.float32 and not GenericFloat().is_packed_float()
    assert calc_gfloat_params().shape == (29,)
    with pytest.raises(RuntimeError, match="Gfloat format cannot be generated using IEEE"):
        GenericFloat(7, 8, 127, calc_type="fp16").set_param()
    with pytest.raises(RuntimeError, match="Gfloat calculation type not supported"):
        GenericFloat(calc_type="fp64").set_param()
    with pytest.raises(RuntimeError, match="Gfloat format calculation type not supported"):
        GenericFloat.get_gfloat_param_size(tf.int32)
    cast = GenericFloat()
    with pytest.raises(RuntimeError, match="Gfloat storage format not supported"):
        cast.cast_native_to_gfloat([1.0], storage_type="fp64")
    with pytest.raises(errors.UnsupportedError, match="round_mode='SX'"):
        cast.cast_native_to_gfloat([1.0], round_mode="SX")
    cast.reset()
    with pytest.raises(RuntimeError, match="Cast object properties were modified and object"):
        cast.cast_native_to_gfloat([1.0])
    with pytest.raises(RuntimeError, match="Gfloat parameters are not set. Try to"):
        cast.cast_gfloat_to_native([1.0])
    with pytest.raises(errors.UnsupportedError, match="exp=0"):
        calc_gfloat_params(exp=0)


def test_generated_wrappers():
    params = gen_popfloat_ops.calc_gfloat_params([29], tf.float32, mantissa=2, exponent=5)
    values = np.array([1.0, -0.3, 700.0], np.float32)
    bits = gen_popfloat_ops.cast_native_to_gfloat(values, params, tf.int8, tf.float32)
    expected = values.astype(ml_dtypes.float8_e5m2)
    np.testing.assert_array_equal(bits, expected.view(np.int8))
    numbers = gen_popfloat_ops.cast_gfloat_to_native(bits, params, tf.float32, tf.float32)
    np.testing.assert_array_equal(numbers, expected.astype(np.float32))
