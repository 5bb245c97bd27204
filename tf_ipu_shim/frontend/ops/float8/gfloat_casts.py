"""Rounds, encodes and decodes numbers of floating-point formats with any layout, exactly in float64."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import errors

_ROUNDINGS = {
    "RZ": lambda size, negative: tf.floor(size),
    "RN": lambda size, negative: tf.round(size),
    "RA": lambda size, negative: tf.floor(size + 0.5),
    "RU": lambda size, negative: tf.where(negative, tf.floor(size), tf.math.ceil(size)),
    "RD": lambda size, negative: tf.where(negative, tf.math.ceil(size), tf.floor(size)),
}


def round_to_format(values: Any, params: Any, en_nanoo: bool, round_mode: str, sr_bits: int, sr_density: str) -> Any:
    """Rounds to the nearest values of a format by the rounding mode."""
    if sr_density not in ("Invalid", "Uniform") or round_mode not in (*_ROUNDINGS, "SR"):
        raise errors.UnsupportedError(
            f"popfloat's round_mode={round_mode!r} with sr_density={sr_density!r} is not emulated. Use one of "
            f"{', '.join(_ROUNDINGS)}, or 'SR' with the density 'Uniform'."
        )
    mantissa, _, bias, denormals, infinities = (params[index] for index in range(5))
    float64_values = tf.cast(values, tf.float64)
    largest = largest_value(params)
    size, negative = tf.minimum(tf.abs(float64_values), 2.0 * largest), float64_values < 0
    step = tf.maximum(exponents(size), 1 - bias) - mantissa
    steps = size / exact_power_of_two(step)
    if round_mode == "SR":
        draw = tf.random.uniform(tf.shape(steps), maxval=2**sr_bits if sr_bits < 31 else 2**30, dtype=tf.int32)
        steps = tf.floor(steps + tf.cast(draw, tf.float64) / 2.0 ** min(sr_bits, 30))
    else:
        steps = _ROUNDINGS[round_mode](steps, negative)
    rounded = steps * exact_power_of_two(step)
    flushed = tf.where(tf.cast(denormals, tf.bool) | (rounded >= exact_power_of_two(1 - bias)), rounded, 0.0)
    nan = tf.constant(float("nan"), tf.float64)
    beyond = tf.where(tf.cast(infinities, tf.bool) & en_nanoo, nan, largest)
    result = tf.where(flushed > largest, beyond, flushed)
    result = tf.where(tf.math.is_nan(float64_values), tf.where(tf.cast(infinities, tf.bool), nan, largest), result)
    return tf.where(negative, -result, result)


def encode(float64_values: Any, params: Any, dtype: Any) -> Any:
    """Returns the bits of numbers that a format has: sign, exponent, mantissa, in the lower bits of an integer."""
    mantissa, exponent_bits, bias = params[0], params[1], params[2]
    size = tf.abs(float64_values)
    exponent = tf.maximum(exponents(size), 1 - bias)
    steps = tf.cast(size / exact_power_of_two(exponent - mantissa), tf.int32)
    code = (exponent + bias - 1) * tf.bitwise.left_shift(1, mantissa) + steps
    sign_bit = tf.bitwise.left_shift(1, mantissa + exponent_bits)
    code = tf.where(tf.math.is_nan(float64_values), sign_bit - 1, code)
    code = tf.where(float64_values < 0, code + sign_bit, code)
    bits = 8 * tf.as_dtype(dtype).size
    return tf.cast(tf.where(code >= 1 << (bits - 1), code - (1 << bits), code), dtype)


def decode(codes: Any, params: Any) -> Any:
    """Decodes bits to numbers, in float64."""
    mantissa, exponent_bits, bias, _, infinities = (params[index] for index in range(5))
    width = 8 * codes.dtype.size
    code = tf.bitwise.bitwise_and(tf.cast(codes, tf.int32), (1 << width) - 1)
    sign_bit = tf.bitwise.left_shift(1, mantissa + exponent_bits)
    body = code % sign_bit
    exponent = tf.bitwise.right_shift(body, mantissa)
    fraction = body % tf.bitwise.left_shift(1, mantissa)
    significand = tf.where(exponent > 0, fraction + tf.bitwise.left_shift(1, mantissa), fraction)
    size = tf.cast(significand, tf.float64) * exact_power_of_two(tf.maximum(exponent, 1) - bias - mantissa)
    special = tf.cast(infinities, tf.bool) & (exponent == tf.bitwise.left_shift(1, exponent_bits) - 1)
    infinity = tf.constant(float("inf"), tf.float64)
    size = tf.where(special, tf.where(fraction > 0, tf.constant(float("nan"), tf.float64), infinity), size)
    return tf.where(tf.bitwise.bitwise_and(code, sign_bit) > 0, -size, size)


def largest_value(params: Any) -> Any:
    """Returns the largest finite number of a format."""
    top = tf.bitwise.left_shift(1, params[1]) - 1 - params[2] - params[4]
    return (2.0 - exact_power_of_two(-params[0])) * exact_power_of_two(top)


def exponents(size: Any) -> Any:
    """Returns the exponents of float64 numbers that are not negative; a very small one for zero."""
    bits = tf.bitwise.right_shift(tf.bitcast(size, tf.int64), tf.constant(52, tf.int64))
    return tf.minimum(tf.cast(bits, tf.int32) - 1023, 512)


def exact_power_of_two(exponent: Any) -> Any:
    """Exact, in float64."""
    bits = tf.cast(exponent + 1023, tf.int64)
    return tf.bitcast(tf.bitwise.left_shift(bits, tf.constant(52, tf.int64)), tf.float64)
