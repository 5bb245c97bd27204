"""`tensorflow.python.ipu.ops.slicing_ops`: copies many slices at offsets known only at run time."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf


def sequence_slice(
    dst: Any, src: Any, num_elems: Any, src_offsets: Any, dst_offsets: Any, zero_unused: bool
) -> tf.Tensor:
    """Copies slices of one tensor into another.

    Args:
        dst: shape [elements, ...]; the tensor to update. It is not changed; the result is a new tensor.
        src: shape [elements, ...]; the tensor to read.
        num_elems: shape [slices]; how many elements each slice has.
        src_offsets: shape [slices]; the start of each in `src`.
        dst_offsets: shape [slices]; the start of each in `dst`. Of slices that overlap there the last one stays.
        zero_unused: whether elements that no slice reaches become zero instead of the elements of `dst`.

    Returns:
        A tensor of the shape of `dst`. Gradients reach `src` and the elements of `dst` that remain.

    Raises:
        ValueError: the numbers of slices differ or are zero, or the inner shapes differ.
        TypeError: these numbers are not integers.

    Source: `tensorflow.python.ipu.ops.slicing_ops.sequence_slice`.

    Example:
        >>> sequence_slice(tf.zeros([6]), tf.range(6.0), [2], [3], [0], False).numpy().tolist()
        [3.0, 4.0, 0.0, 0.0, 0.0, 0.0]
    """
    dst, src = tf.convert_to_tensor(dst), tf.convert_to_tensor(src)
    counts, sources, targets = _slice_error(
        "num_elems, src_offsets and dst_offsets must have matching, nonzero first dimensions",
        num_elems,
        src_offsets,
        dst_offsets,
    )
    _check_inner_shapes(src, dst)
    return _copy_slices(dst, src, counts, sources, targets, zero_unused)


def sequence_slice_pack(dst: Any, src: Any, num_elems: Any, dst_offsets: Any, zero_unused: bool) -> tf.Tensor:
    """Copies consecutive slices of a tensor to positions in another.

    Args:
        dst: shape [elements, ...]; the tensor to update.
        src: shape [elements, ...]; holds the slices without gaps.
        num_elems: shape [slices]; how many elements each slice has.
        dst_offsets: shape [slices]; the start of each in the result.
        zero_unused: as in `sequence_slice`.

    Returns:
        A tensor of the shape of `dst`.

    Raises:
        ValueError: the numbers of slices differ or are zero, or the inner shapes differ.
        TypeError: these numbers are not integers.

    Source: `tensorflow.python.ipu.ops.slicing_ops.sequence_slice_pack`.

    Example:
        >>> sequence_slice_pack(tf.zeros([6]), tf.constant([1.0, 2.0, 3.0]), [1, 2], [0, 3], True).numpy().tolist()
        [1.0, 0.0, 0.0, 2.0, 3.0, 0.0]
    """
    dst, src = tf.convert_to_tensor(dst), tf.convert_to_tensor(src)
    counts, targets = _slice_error(
        "num_elems and dst_offsets must have matching, nonzero first dimensions", num_elems, dst_offsets
    )
    _check_inner_shapes(src, dst)
    return _copy_slices(dst, src, counts, tf.cumsum(counts, exclusive=True), targets, zero_unused)


def sequence_slice_unpack(src: Any, num_elems: Any, src_offsets: Any, total_elements: int) -> tf.Tensor:
    """Concatenates slices of a tensor.

    Args:
        src: shape [elements, ...]; the tensor to read.
        num_elems: shape [slices]; how many elements each slice has.
        src_offsets: shape [slices]; the start of each.
        total_elements: the number of elements of the result. Elements outside the slices are zero.

    Returns:
        A tensor of shape [total_elements, ...].

    Raises:
        ValueError: the numbers of slices differ or are zero, or `src` is a scalar.
        TypeError: these numbers are not integers.

    Source: `tensorflow.python.ipu.ops.slicing_ops.sequence_slice_unpack`.

    Example:
        >>> sequence_slice_unpack(tf.range(6.0), [1, 2], [0, 3], 3).numpy().tolist()
        [0.0, 3.0, 4.0]
    """
    src = tf.convert_to_tensor(src)
    counts, sources = _slice_error(
        "num_elems and src_offsets must have matching, nonzero first dimensions", num_elems, src_offsets
    )
    if not src.shape.rank:
        raise ValueError(
            "sequence_slice_unpack needs a tensor with elements, but src is a scalar. Add an axis with tf.expand_dims."
        )
    dst = tf.zeros([total_elements, *src.shape[1:]], src.dtype)
    return _copy_slices(dst, src, counts, sources, tf.cumsum(counts, exclusive=True), True)


def _slice_error(message: str, *details: Any) -> list[tf.Tensor]:
    operands = [tf.convert_to_tensor(value) for value in details]
    for tensor in operands:
        if not tensor.dtype.is_integer:
            raise TypeError(f"Slices must be given by integers, not by {tensor.dtype.name}. Cast them with tf.cast.")
    tensors = [tf.cast(tensor, tf.int32) for tensor in operands]
    lengths = [tensor.shape[0] if tensor.shape.rank else 0 for tensor in tensors]
    if lengths[0] == 0 or len(set(lengths)) != 1:
        raise ValueError(
            f"{message}, but they have {lengths}; expected equal lengths. Pass one number a slice in each."
        )
    return tensors


def _check_inner_shapes(src: tf.Tensor, dst: tf.Tensor) -> None:
    if not src.shape.rank or not dst.shape.rank or src.shape[1:] != dst.shape[1:]:
        raise ValueError(
            f"src and dst inner shapes must match. src has the shape {src.shape}, dst {dst.shape}; "
            "both have a first dimension, and only that may differ."
        )


def _copy_slices(dst: Any, src: Any, counts: Any, sources: Any, targets: Any, zero_unused: bool) -> tf.Tensor:
    """One gather: for each element of the result, the last slice that covers it, and its place in the source."""
    positions = tf.range(dst.shape[0])
    begins, slice_indices = targets[:, tf.newaxis], tf.range(tf.shape(targets)[0])[:, tf.newaxis]
    covers = tf.logical_and(positions >= begins, positions < begins + counts[:, tf.newaxis])
    last = tf.reduce_max(tf.where(covers, slice_indices, -1), axis=0)
    chosen = tf.maximum(last, 0)
    origin = tf.clip_by_value(tf.gather(sources - targets, chosen) + positions, 0, src.shape[0] - 1)
    covered = tf.reshape(last >= 0, [-1] + [1] * (len(dst.shape) - 1))
    return tf.where(covered, tf.gather(src, origin), tf.zeros_like(dst) if zero_unused else dst)
