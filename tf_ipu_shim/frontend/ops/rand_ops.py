"""Dropout that recomputes its mask from the seed in the backward pass."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration.argument_order import argument_order

LAST_WITH_SCALE = (1, 3)  # the last SDK whose dropout has `seed_modifier` and `scale`


@argument_order(
    1,
    "seed rate seed_modifier noise_shape scale name",
    until=LAST_WITH_SCALE,
    when=lambda second: not isinstance(second, (int, float)),
)
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
        noise_shape: the mask's shape: for each dimension of x its size or None, or 1 to drop along it as a whole.
        seed: `[2]` integers; the same seed results in the same mask. None: another mask in each run.
        name: the name of the op.
        **kwargs: `ref`, whether the backward pass must use the same mask in case the tensor's layout differs there.
            It always does here. SDK 1.2 and 1.3 have two more: `scale` replaces the factor of the others, and another
            `seed_modifier` results in another mask for the same seed. Their `seed` may come before the rate.

    Returns:
        A tensor like x.

    Raises:
        ValueError: the rate, the noise shape or the seed's shape does not fit.
        TypeError: an unknown argument, a tensor or seed of the wrong type, or a noise shape known only when run.

    Source: `tensorflow.python.ipu.rand_ops.dropout`.

    Example:
        >>> sorted(set(dropout(tf.ones([100]), rate=0.5, seed=[1, 2]).numpy().tolist()))
        [0.0, 2.0]
    """
    known = {"ref", "scale", "seed_modifier"} if sdk.current() <= LAST_WITH_SCALE else {"ref"}
    unknown = sorted(set(kwargs) - known)
    if unknown:
        raise TypeError(
            f"dropout() got unexpected keyword arguments {unknown}; under SDK {sdk.current()} expected only "
            f"{', '.join(sorted(known))}. Remove them."
        )
    x = tf.convert_to_tensor(x)
    rate = float(rate)
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"The rate must be in the range [0, 1), but was {rate}. Pass a rate in this range.")
    scale = 1.0 / (1.0 - rate) if kwargs.get("scale") is None else float(kwargs["scale"])
    mask = mask_shape(x, noise_shape)
    if seed is not None:
        seed = tf.convert_to_tensor(seed)
        if seed.shape != (2,):
            raise ValueError(
                f"Expected the seed to have a shape of [2], but got {seed.shape}. Pass a tensor of two integers."
            )
        if not seed.dtype.is_integer:
            raise TypeError(
                f"Expected the seed of dropout to be two integers, but got {seed.dtype.name}. Pass two integers."
            )
        seed += tf.cast([0, kwargs.get("seed_modifier", 1) - 1], seed.dtype)
    elif rate == 0.0 and scale == 1.0:
        return tf.identity(x, name=name)
    else:
        seed = new_seed()
    return tf.identity(apply_dropout(x, seed, rate, scale, mask), name=name)


def new_seed() -> Any:
    """Returns a seed for one mask, another one in each run: `[2]` integers that follow from the device's seed."""
    return tf.random.uniform([2], minval=0, maxval=2**31 - 1, dtype=tf.int32)


def apply_dropout(x: Any, seed: Any, rate: float, scale: float, mask: Any) -> Any:
    """Sets random elements to zero by a seed, and scales the others; the gradient has the same mask."""
    if not x.dtype.is_floating:
        raise TypeError(
            f"dropout multiplies the remaining elements by {scale:.4g} and needs a floating-point input, not "
            f"{x.dtype.name}. Cast it to float32 or float16."
        )

    def masked(values: Any, seed: Any) -> Any:
        # The algorithm is named: the default may differ between TensorFlow's own kernels and XLA's.
        draws = tf.random.stateless_uniform(mask, tf.stop_gradient(seed), alg="philox")
        return tf.where(draws >= rate, values * tf.cast(scale, values.dtype), tf.zeros_like(values))

    @tf.custom_gradient
    def with_gradient(values: Any, seed: Any) -> Any:
        return masked(values, seed), lambda upstream: (masked(upstream, seed), None)

    return with_gradient(x, seed)


def mask_shape(x: Any, noise_shape: Any) -> Any:
    """Returns the shape of a dropout's mask: the noise's, if it fits the tensor, else the tensor's."""
    if tf.is_tensor(noise_shape):
        constant = tf.get_static_value(noise_shape)
        if constant is None:
            raise TypeError("noise_shape of dropout is a tensor whose value is not known yet. Pass a list of numbers.")
        noise_shape = constant
    if noise_shape is None or not len(noise_shape):
        return tf.shape(x)
    shape = x.shape.as_list()
    noise = [None if size is None else int(size) for size in noise_shape]
    if len(shape) != len(noise):
        raise ValueError(
            f"The length of noise_shape must equal the rank of x; got noise_shape {noise} for x of shape {shape}. Pass "
            "a noise_shape with one entry for each axis of x."
        )
    sizes = tf.unstack(tf.shape(x)) if None in shape else shape
    noise = [size if expected is None else expected for size, expected in zip(sizes, noise)]
    for size, expected in zip(shape, noise):
        if tf.is_tensor(expected):
            continue
        if expected != 1 and size != expected:
            raise ValueError(
                f"Dimension mismatch, {size} != {expected}. Both must be equal, or 1 in noise_shape: use "
                "the dimension of x or 1."
            )
    return noise
