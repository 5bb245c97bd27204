"""`gen_poprand_ops`: dropout with Graphcore's arguments, computed by `rand_ops`.

The arguments are the op's inputs, then its attributes, then `name`. A mask follows only from its seed here, so the
reference, which keeps the mask's layout on an IPU, is empty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops import rand_ops


class IpuDropout(NamedTuple):
    """The remaining input, the seed `[2]` of the mask, and a tensor without elements."""

    output: Any
    seed: Any
    reference: Any


class IpuDropoutNoRef(NamedTuple):
    """The remaining input, and the seed `[2]` of the mask."""

    output: Any
    seed: Any


class IpuDropoutWithSeed(NamedTuple):
    """The remaining input, the given seed, and a tensor without elements."""

    output: Any
    output_seed: Any
    reference: Any


class IpuDropoutWithSeedNoRef(NamedTuple):
    """The remaining input, and the given seed."""

    output: Any
    output_seed: Any


def ipu_dropout(input: Any, rate: float, scale: float, noise_shape: Any = (), name: Any = None) -> IpuDropout:
    """Sets a share `rate` of the elements to zero at random, with another mask in each run, and scales the others.

    Args:
        input: the input of the dropout.
        rate: the share that becomes zero.
        scale: the scale for the others; `rand_ops.dropout` has `1 / (1 - rate)`.
        noise_shape: as for `rand_ops.dropout`.
        name: the name of the op.

    Example:
        >>> output, seed, _ = ipu_dropout(tf.ones([4]), rate=0.5, scale=2.0)
        >>> seed.shape
        TensorShape([2])
    """
    with tf.name_scope(name or "IpuDropout"):
        return IpuDropout(*_dropped(input, rand_ops.new_seed(), rate, scale, noise_shape), _nothing())


def ipu_dropout_no_ref(
    input: Any, rate: float, scale: float, noise_shape: Any = (), name: Any = None
) -> IpuDropoutNoRef:
    """`ipu_dropout` without the reference."""
    with tf.name_scope(name or "IpuDropoutNoRef"):
        return IpuDropoutNoRef(*_dropped(input, rand_ops.new_seed(), rate, scale, noise_shape))


def ipu_dropout_with_seed(
    input: Any, seed: Any, rate: float, scale: float, noise_shape: Any = (), name: Any = None
) -> IpuDropoutWithSeed:
    """`ipu_dropout` with a mask that follows from a seed.

    Args:
        input: the input of the dropout.
        seed: `[2]` integers.
        rate: the share that becomes zero.
        scale: the scale for the others.
        noise_shape: as for `rand_ops.dropout`.
        name: the name of the op.

    Example:
        >>> ipu_dropout_with_seed(tf.ones([4]), [1, 2], rate=0.0, scale=3.0).output.numpy().tolist()
        [3.0, 3.0, 3.0, 3.0]
    """
    with tf.name_scope(name or "IpuDropoutWithSeed"):
        return IpuDropoutWithSeed(*_dropped(input, seed, rate, scale, noise_shape), _nothing())


def ipu_dropout_with_seed_no_ref(
    input: Any, seed: Any, rate: float, scale: float, noise_shape: Any = (), name: Any = None
) -> IpuDropoutWithSeedNoRef:
    """`ipu_dropout_with_seed` without the reference."""
    with tf.name_scope(name or "IpuDropoutWithSeedNoRef"):
        return IpuDropoutWithSeedNoRef(*_dropped(input, seed, rate, scale, noise_shape))


def ipu_dropout_with_seed_and_reference(
    input: Any, seed: Any, reference: Any, rate: float, scale: float, noise_shape: Any = (), name: Any = None
) -> IpuDropoutWithSeedNoRef:
    """`ipu_dropout_with_seed` with the layout of an earlier mask, which changes no values."""
    with tf.name_scope(name or "IpuDropoutWithSeedAndReference"):
        return IpuDropoutWithSeedNoRef(*_dropped(input, seed, rate, scale, noise_shape))


def _dropped(input: Any, seed: Any, rate: float, scale: float, noise_shape: Any) -> tuple[Any, Any]:
    values, seed = tf.convert_to_tensor(input), tf.convert_to_tensor(seed, tf.int32)
    mask = rand_ops.mask_shape(values, noise_shape)
    return rand_ops.apply_dropout(values, seed, float(rate), float(scale), mask), tf.identity(seed)


def _nothing() -> Any:
    return tf.zeros([0])
