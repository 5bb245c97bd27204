"""`gen_popops_ops`: collectives, slices, histograms, float8 ops with Graphcore's arguments, computed by `ipu.ops`.

The arguments are the op's inputs, then its attributes, then `name`. Other names are refused by name.
"""

from __future__ import annotations

import collections
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops import image_ops, op_specs, slicing_ops, statistics_ops
from tf_ipu_shim.frontend.ops.collectives import all_to_all_op, cross_replica_ops, reduce_scatter_op, within_replica_ops
from tf_ipu_shim.frontend.ops.float8 import f8_ops

IpuConvertToF8 = collections.namedtuple("IpuConvertToF8", ["output", "output_metadata"])
IpuF8Matmul = collections.namedtuple("IpuF8Matmul", ["output", "output_meta"])
IpuF8Conv2D = collections.namedtuple("IpuF8Conv2D", ["output", "output_meta"])
IpuF8Conv3D = collections.namedtuple("IpuF8Conv3D", ["output", "output_meta"])


def ipu_cross_replica_sum(input: Any, replica_group_size: int = 0, name: Any = None) -> Any:
    """See `cross_replica_ops.cross_replica_sum`; a group size of 0 means all replicas."""
    return cross_replica_ops.cross_replica_sum(
        input, replica_group_size=replica_group_size or None, name=name or "IpuCrossReplicaSum"
    )


def ipu_cross_replica_mean(input: Any, replica_group_size: int = 0, name: Any = None) -> Any:
    """See `cross_replica_ops.cross_replica_mean`; a group size of 0 means all replicas."""
    return cross_replica_ops.cross_replica_mean(input, replica_group_size or None, name or "IpuCrossReplicaMean")


ipu_all_gather = op_specs.op("ipu_all_gather(inputs, replication_factor)", all_to_all_op.all_gather)
ipu_all_to_all = op_specs.op(
    "ipu_all_to_all(input, split_dimension, concat_dimension, number_of_replicas)", all_to_all_op.all_to_all
)


def ipu_reduce_scatter(inputs: Any, op: str, replication_factor: int, name: Any = None) -> Any:
    """See `reduce_scatter_op.reduce_scatter`; a list, or up to SDK 2.4 one tensor."""
    return reduce_scatter_op.reduce_scatter(inputs, replication_factor, op=op, name=name or "IpuReduceScatter")


ipu_all_gather_within_replica = op_specs.op("ipu_all_gather_within_replica(inputs)", within_replica_ops.all_gather)
ipu_all_reduce_within_replica = op_specs.op(
    "ipu_all_reduce_within_replica(inputs, collective_op)", within_replica_ops.all_reduce
)
ipu_reduce_scatter_within_replica = op_specs.op(
    "ipu_reduce_scatter_within_replica(inputs, collective_op)", within_replica_ops.reduce_scatter
)
ipu_histogram = op_specs.op("ipu_histogram(input, levels, absolute_of_input)", statistics_ops.histogram)
ipu_histogram_update = op_specs.op(
    "ipu_histogram_update(hist, input, levels, absolute_of_input)", statistics_ops.histogram_update
)


def ipu_multi_slice(input: Any, indices: Any, indices_are_sorted: bool = False, name: Any = None) -> Any:
    """Rows of `input`, shape [*indices.shape, *input.shape[1:]]."""
    note_arguments("gen_popops_ops", indices_are_sorted=indices_are_sorted)
    return tf.gather(input, indices, name=name or "IpuMultiSlice")


def ipu_multi_update(input: Any, indices: Any, updates: Any, indices_are_sorted: bool = False, name: Any = None) -> Any:
    """`input` with rows replaced: `updates` has the shape [rows, ...], `indices` [rows] or [rows, 1]."""
    note_arguments("gen_popops_ops", indices_are_sorted=indices_are_sorted)
    return tf.tensor_scatter_nd_update(input, _rows(indices), updates, name=name or "IpuMultiUpdate")


def ipu_multi_update_add(
    input: Any, indices: Any, updates: Any, scale: Any, indices_are_sorted: bool = False, name: Any = None
) -> Any:
    """Returns `input` with `scale * updates` added to rows; repeated rows accumulate."""
    note_arguments("gen_popops_ops", indices_are_sorted=indices_are_sorted)
    with tf.name_scope(name or "IpuMultiUpdateAdd"):
        updates = tf.convert_to_tensor(updates)
        return tf.tensor_scatter_nd_add(input, _rows(indices), updates * tf.cast(scale, updates.dtype))


normalise_image = op_specs.op(
    "normalise_image(image, channel_offsets, channel_scales, scale)", image_ops.normalise_image
)
ipu_sequence_slice = op_specs.op(
    "ipu_sequence_slice(dst, src, num_elems, src_offsets, dst_offsets, zero_unused=False)", slicing_ops.sequence_slice
)


def ipu_sequence_slice_unpack(
    src: Any, num_elems: Any, src_offsets: Any, dst_offsets: Any, total_elements: int, name: Any = None
) -> Any:
    """Copies slices of `src` into zeros of `total_elements`; see `slicing_ops.sequence_slice`."""
    with tf.name_scope(name or "IpuSequenceSliceUnpack"):
        src = tf.convert_to_tensor(src)
        dst = tf.zeros([total_elements, *src.shape[1:]], src.dtype)
        return slicing_ops.sequence_slice(dst, src, num_elems, src_offsets, dst_offsets, True)


def ipu_convert_from_f8(input: Any, input_metadata: Any, name: Any = None) -> Any:
    """See `f8_ops.convert_from_f8`; float16."""
    return f8_ops.convert_from_f8((input, input_metadata), name=name or "IpuConvertFromF8")


def ipu_convert_to_f8(input: Any, input_metadata: Any, name: Any = None) -> Any:
    """See `f8_ops.convert_to_f8`; the bits and the metadata."""
    return IpuConvertToF8(*f8_ops.convert_to_f8(input, input_metadata, name=name or "IpuConvertToF8"))


def ipu_f8_matmul(lhs: Any, lhs_meta: Any, rhs: Any, rhs_meta: Any, name: Any = None) -> Any:
    """See `f8_ops.f8_matmul`. Returns the matmul in float16, and the left operand's metadata."""
    return IpuF8Matmul(f8_ops.f8_matmul((lhs, lhs_meta), (rhs, rhs_meta), name or "IpuF8Matmul"), lhs_meta)


def ipu_f8_conv2d(
    inputs: Any,
    filters: Any,
    inputs_meta: Any,
    filters_meta: Any,
    strides: Any,
    padding: str,
    explicit_paddings: Any = (),
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: Any = None,
) -> Any:
    """See `f8_ops.f8_conv_2d`; the result in float16, and the metadata of `inputs`."""
    pairs = [list(explicit_paddings[index : index + 2]) for index in range(0, len(explicit_paddings), 2)]
    operands = (inputs, inputs_meta), (filters, filters_meta)
    result = f8_ops.f8_conv_2d(*operands, strides, pairs or padding, data_format, dilations, name or "IpuF8Conv2D")
    return IpuF8Conv2D(result, inputs_meta)


def ipu_f8_conv3d(
    inputs: Any,
    filters: Any,
    inputs_meta: Any,
    filters_meta: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: Any = None,
) -> Any:
    """See `f8_ops.f8_conv_3d`; the result in float16, and the metadata of `inputs`."""
    operands = (inputs, inputs_meta), (filters, filters_meta)
    result = f8_ops.f8_conv_3d(*operands, strides, padding, data_format, dilations, name or "IpuF8Conv3D")
    return IpuF8Conv3D(result, inputs_meta)


def _rows(indices: Any) -> Any:
    return tf.reshape(indices, [-1, 1])
