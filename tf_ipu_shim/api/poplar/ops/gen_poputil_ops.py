"""`gen_poputil_ops`: op wrappers with the arguments of Graphcore's, computed by the modules of `ipu.ops`.

An argument is an input of the op, then come attributes, then `name`. Names that are not here are refused by name.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import plugin
from tf_ipu_shim.building.ops import control_flow_ops, cross_replica_ops, internal_ops, replication_ops
from tf_ipu_shim.configuration.arguments import note_arguments


def ipu_barrier(inputs: Any, insert_barrier_for_gradients: bool = False, name: Any = None) -> Any:
    """See `control_flow_ops.barrier`."""
    return control_flow_ops.barrier(list(inputs), insert_barrier_for_gradients, name or "IpuBarrier")


def ipu_print_tensor(input: Any, tensor_name: str, name: Any = None) -> Any:
    """See `internal_ops.print_tensor`."""
    with tf.name_scope(name or "IpuPrintTensor"):
        return internal_ops.print_tensor(input, tensor_name)


def ipu_fifo(input: Any, depth: int, offload: bool, name: Any = None) -> Any:
    """See `internal_ops.fifo`."""
    return internal_ops.fifo(input, depth, offload, name or "IpuFifo")


def ipu_remap(input: Any, name: Any = None) -> Any:
    """See `internal_ops.remap`."""
    return internal_ops.remap(input, name or "IpuRemap")


def ipu_remap_deduce(input: Any, name: Any = None) -> Any:
    """See `internal_ops.remap_deduce`."""
    return internal_ops.remap_deduce(input, name or "IpuRemapDeduce")


def ipu_suggest_recompute(input: Any, name: Any = None) -> Any:
    """See `internal_ops.recompute`."""
    return internal_ops.recompute(input, name or "IpuSuggestRecompute")


def ipu_block_recompute(input: Any, name: Any = None) -> Any:
    """See `internal_ops.block_recompute`."""
    return internal_ops.block_recompute(input, name or "IpuBlockRecompute")


def replication_index(name: Any = None) -> Any:
    """See `replication_ops.replication_index`."""
    return replication_ops.replication_index(name)


def ipu_replication_factor(name: Any = None) -> Any:
    """How many replicas run the program: an int32 scalar, 1 where there are none."""
    return plugin.load().ops.ipu_replication_factor(name=name)


def ipu_replication_normalise(input: Any, name: Any = None) -> Any:
    """A tensor divided by the number of replicas."""
    with tf.name_scope(name or "IpuReplicationNormalise") as scope:
        value = tf.convert_to_tensor(input)
        return tf.divide(value, tf.cast(ipu_replication_factor(), value.dtype), name=scope)


def ipu_assume_equal_across_replicas(inputs: Any, name: Any = None) -> Any:
    """See `cross_replica_ops.assume_equal_across_replicas`."""
    with tf.name_scope(name or "IpuAssumeEqualAcrossReplicas"):
        return cross_replica_ops.assume_equal_across_replicas(tf.convert_to_tensor(inputs))


def ipu_stateful_gradient_accumulate(
    input: Any, num_mini_batches: int, verify_usage: bool = True, name: Any = None
) -> Any:
    """Sums what it is given over executions; gives the sum at each `num_mini_batches`-th, and zeros at the others.

    The sum and the number are variables: `global_variables_initializer` sets them to zero in a TensorFlow 1 graph.

    Args:
        input: what is summed; each call in a program's Python has a sum of its own.
        num_mini_batches: how many make a sum.
        verify_usage: Graphcore's check that the result goes into an update; recorded.
        name: of the variables.

    Example:
        >>> gradient = tf.constant([1.0])
        >>> ipu_stateful_gradient_accumulate(gradient, num_mini_batches=1).numpy().tolist()
        [1.0]
    """
    note_arguments("GradientAccumulationOptimizer", verify_usage=verify_usage)
    value = tf.convert_to_tensor(input)
    v1 = tf.compat.v1
    with v1.variable_scope(None, name or "IpuStatefulGradientAccumulate", use_resource=True):
        zeros = v1.zeros_initializer()
        total = v1.get_variable("total", value.shape, value.dtype, zeros, trainable=False)
        count = v1.get_variable("count", [], tf.int32, zeros, trainable=False)
    summed, number = total.read_value() + value, count.read_value() + 1
    due = tf.equal(number, num_mini_batches)
    nothing = tf.zeros_like(summed)
    writes = [total.assign(tf.where(due, nothing, summed)), count.assign(tf.where(due, 0, number))]
    with tf.control_dependencies([write for write in writes if write is not None]):
        return tf.where(due, summed, nothing)


def gradient_accumulator_add_with_scale(accumulator: Any, grad: Any, scale: Any, name: Any = None) -> Any:
    """An accumulator times a scale, plus a gradient.

    Args:
        accumulator: what was accumulated so far.
        grad: of the same shape; it is not scaled.
        scale: a scalar for the accumulator.
        name: of the op.

    Example:
        >>> gradient_accumulator_add_with_scale([4.0], [1.0], 0.5).numpy().tolist()
        [3.0]
    """
    with tf.name_scope(name or "GradientAccumulatorAddWithScale") as scope:
        value = tf.convert_to_tensor(accumulator)
        scaled = value * tf.cast(tf.convert_to_tensor(scale), value.dtype)
        return tf.add(scaled, tf.convert_to_tensor(grad), name=scope)
