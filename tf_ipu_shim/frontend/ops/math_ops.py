"""`tensorflow.python.ipu.ops.math_ops`: segment sums and serialized matmuls."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops.serialization_factor import check_factor


def segment_sum(data: Any, segment_ids: Any, num_segments: int, name: Any = None) -> tf.Tensor:
    """Sums rows that belong together.

    Args:
        data: shape [rows, ...], fully defined.
        segment_ids: int32, shape [rows], ascending; the segment of each row.
        num_segments: how many segments there are.
        name: the name of the op.

    Returns:
        Shape [num_segments, ...]; zero for a segment without rows.

    Raises:
        ValueError: a shape is not fully defined or of another rank, the lengths differ, or there is no segment.

    Source: `tensorflow.python.ipu.ops.math_ops.segment_sum`.

    Example:
        >>> segment_sum([1.0, 2.0, 4.0], [0, 0, 1], 2).numpy().tolist()
        [3.0, 4.0]
    """
    data, segment_ids = tf.convert_to_tensor(data), tf.convert_to_tensor(segment_ids)
    for argument, tensor in (("data", data), ("segment_ids", segment_ids)):
        if not tensor.shape.is_fully_defined():
            raise ValueError(f"Shape of {argument} must be fully defined, but it is {tensor.shape}. Use set_shape.")
    if not len(data.shape):
        raise ValueError(f"Shape {data.shape} must have rank at least 1: data is a scalar. Give it an axis of rows.")
    if len(segment_ids.shape) != 1:
        raise ValueError(
            f"Shape {segment_ids.shape} must have rank 1: segment_ids has a segment for each row of data. Flatten "
            "segment_ids with tf.reshape."
        )
    if num_segments <= 0:
        raise ValueError(f"num_segments must be greater than 0; got {num_segments}. Pass a value above 0.")
    if data.shape[0] != segment_ids.shape[0]:
        raise ValueError(
            f"segment_ids (shape {segment_ids.shape}) must have same length as axis 0 of data (shape {data.shape}): "
            "one segment a row. Pass one segment id for each row."
        )
    return tf.math.unsorted_segment_sum(data, segment_ids, num_segments, name=name or "segment_sum")


def serialized_matmul(
    a: Any,
    b: Any,
    serialization_factor: int,
    serialization_dimension: str,
    transpose_a: bool = False,
    transpose_b: bool = False,
    name: Any = None,
) -> tf.Tensor:
    """Returns a matmul computed in sequential parts, to use less memory at a time.

    Args:
        a: shape [..., m, k]; [..., k, m] if transposed.
        b: shape [..., k, n]; [..., n, k] if transposed.
        serialization_factor: how many parts.
        serialization_dimension: the dimension to split: `"a_columns"` splits m, `"a_rows_b_columns"` splits k and adds
            the partial results, `"b_rows"` splits n.
        transpose_a: whether to transpose `a` first.
        transpose_b: whether to transpose `b` first.
        name: the name of the op.

    Returns:
        Shape [..., m, n].

    Raises:
        TypeError: the factor is not a whole number.
        ValueError: it is below 1 or does not divide the dimension, or a tensor is not a matrix.

    Source: `tensorflow.python.ipu.ops.math_ops.serialized_matmul`.

    Example:
        >>> serialized_matmul(tf.ones([1, 8]), tf.ones([8, 4]), 4, "b_rows").numpy().tolist()
        [[8.0, 8.0, 8.0, 8.0]]
    """
    a, b = tf.convert_to_tensor(a), tf.convert_to_tensor(b)
    serialization_factor = check_factor(serialization_factor)
    for argument, tensor in (("a", a), ("b", b)):
        if len(tensor.shape) < 2:
            raise ValueError(
                f"Expected tensor '{argument}' to have a minimum rank of 2, but its shape is {tensor.shape}. Add "
                "axes with "
                "tf.expand_dims."
            )
    with tf.name_scope(name or "serialized_matmul"):
        rows, inner_a = (-1, -2) if transpose_a else (-2, -1)
        inner_b, columns = (-1, -2) if transpose_b else (-2, -1)

        def product(left: Any, right: Any) -> tf.Tensor:
            return tf.matmul(left, right, transpose_a=transpose_a, transpose_b=transpose_b)

        if serialization_dimension == "a_columns":
            _check_divisible("columns of 'a'", a.shape[rows], serialization_factor)
            return tf.concat([product(part, b) for part in tf.split(a, serialization_factor, rows)], -2)
        if serialization_dimension == "a_rows_b_columns":
            if a.shape[inner_a] != b.shape[inner_b]:
                raise ValueError(
                    f"Expected the number of columns in 'a' ({a.shape[inner_a]}) to be the number of rows in 'b' "
                    f"({b.shape[inner_b]}). Transpose or reshape one of them."
                )
            _check_divisible("rows of 'a' and the columns of 'b'", a.shape[inner_a], serialization_factor)
            lefts, rights = tf.split(a, serialization_factor, inner_a), tf.split(b, serialization_factor, inner_b)
            return tf.add_n([product(left, right) for left, right in zip(lefts, rights)])
        if serialization_dimension == "b_rows":
            _check_divisible("rows of 'b'", b.shape[columns], serialization_factor)
            return tf.concat([product(a, part) for part in tf.split(b, serialization_factor, columns)], -1)
    raise ValueError(
        f"Invalid serialization_dimension={serialization_dimension}, expected one of: 'a_columns', "
        "'a_rows_b_columns', 'b_rows'. Pass one of these."
    )


def _check_divisible(label: str, size: int | None, factor: int) -> None:
    if size is not None and size % factor:  # a Keras input's mini-batch has a size only when the model runs
        raise ValueError(
            f"Expected 'serialization_factor' ({factor}) to divide the {label} ({size}). Choose a divisor."
        )
