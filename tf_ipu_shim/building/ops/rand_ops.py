"""Dropout that keeps no mask: the backward pass makes it again from the seed."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf


def dropout(
    x: Any,
    rate: float = 0.5,
    noise_shape: Any = None,
    seed: Any = None,
    name: str | None = None,
    **kwargs: Any,
) -> Any:
    """Sets elements to zero at random and scales the others by `1 / (1 - rate)`.

    Stock `tf.nn.dropout` stores its mask for the backward pass; this one keeps two integers.

    Args:
        x: a float tensor.
        rate: the share that is dropped, a Python number in [0, 1).
        noise_shape: the mask's shape: for each dimension of x its size, or 1 to drop along it as a whole.
        seed: `[2]` integers; the same seed gives the same mask. None: another mask in each run.
        name: of the op.
        **kwargs: `ref`, whether the backward pass must use the same mask in case the tensor's layout differs there.
            It always does here.

    Returns:
        A tensor like x.

    Raises:
        ValueError: the rate, the noise shape or the seed's shape does not fit.
        TypeError: an unknown argument.

    Source: `tensorflow.python.ipu.rand_ops.dropout`.

    Example:
        >>> sorted(set(dropout(tf.ones([100]), rate=0.5, seed=[1, 2]).numpy().tolist()))
        [0.0, 2.0]
    """
    unknown = sorted(set(kwargs) - {"ref"})
    if unknown:
        raise TypeError(f"dropout() got unexpected keyword arguments {unknown}. Besides its named ones it takes `ref`.")
    x = tf.convert_to_tensor(x)
    rate = float(rate)
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"The rate must be in the range [0, 1), but was {rate}.")
    mask_shape = _mask_shape(x, noise_shape)
    if seed is not None:
        seed = tf.convert_to_tensor(seed)
        if seed.shape != (2,):
            raise ValueError(f"Expected the seed to have a shape of [2], but got {seed.shape}.")
    elif rate == 0.0:
        return tf.identity(x, name=name)
    else:
        seed = tf.random.uniform([2], minval=0, maxval=2**31 - 1, dtype=tf.int32)

    def drop(values: Any, seed: Any) -> Any:
        # The algorithm is named: the default may differ between TensorFlow's own kernels and XLA's.
        draws = tf.random.stateless_uniform(mask_shape, tf.stop_gradient(seed), alg="philox")
        return tf.where(draws >= rate, values / tf.cast(1.0 - rate, values.dtype), tf.zeros_like(values))

    @tf.custom_gradient
    def with_gradient(values: Any, seed: Any) -> Any:
        return drop(values, seed), lambda upstream: (drop(upstream, seed), None)

    return tf.identity(with_gradient(x, seed), name=name)


def _mask_shape(x: Any, noise_shape: Any) -> Any:
    if not noise_shape:
        return tf.shape(x)
    shape, noise = x.shape.as_list(), [int(size) for size in noise_shape]
    if len(shape) != len(noise):
        raise ValueError(
            f"The length of noise_shape must equal the rank of x; got noise_shape {noise} for x of shape {shape}."
        )
    for size, wanted in zip(shape, noise):
        if wanted != 1 and size != wanted:
            raise ValueError(f"Dimension mismatch, {size} != {wanted}. Use the dimension of x or 1 in noise_shape.")
    return noise
