"""`gen_poputil_ops`: barriers, FIFOs, replication, recomputation with Graphcore's arguments, computed by `ipu.ops`.

The arguments are the op's inputs, then its attributes, then `name`. Names that are not here are refused by name.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import plugin
from tf_ipu_shim.frontend.ops import control_flow_ops, internal_ops, library_scopes, op_specs
from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops, replication_ops, uncompiled_collectives


def ipu_barrier(inputs: Any, insert_barrier_for_gradients: bool = False, name: Any = None) -> Any:
    """See `control_flow_ops.barrier`."""
    return control_flow_ops.barrier(list(inputs), insert_barrier_for_gradients, name or "IpuBarrier")


def ipu_print_tensor(input: Any, tensor_name: str, name: Any = None) -> Any:
    """See `internal_ops.print_tensor`."""
    with tf.name_scope(name or "IpuPrintTensor"):
        return internal_ops.print_tensor(input, tensor_name)


ipu_fifo = op_specs.op("ipu_fifo(input, depth, offload)", internal_ops.fifo)
ipu_remap = op_specs.op("ipu_remap(input)", internal_ops.remap)
ipu_remap_deduce = op_specs.op("ipu_remap_deduce(input)", internal_ops.remap_deduce)
ipu_suggest_recompute = op_specs.op("ipu_suggest_recompute(input)", internal_ops.recompute)
ipu_block_recompute = op_specs.op("ipu_block_recompute(input)", internal_ops.block_recompute)


def replication_index(name: Any = None) -> Any:
    """See `replication_ops.replication_index`."""
    return replication_ops.replication_index(name)


def ipu_replication_factor(name: Any = None) -> Any:
    """Returns the number of replicas that run the program: an int32 scalar, 1 without replication."""
    return uncompiled_collectives.build_replicated(lambda: plugin.load().ops.ipu_replication_factor(name=name))


def ipu_replication_normalise(input: Any, name: Any = None) -> Any:
    """Returns a tensor divided by the number of replicas."""
    with tf.name_scope(name or "IpuReplicationNormalise"):
        value = tf.convert_to_tensor(input)
        share = uncompiled_collectives.build_replicated(
            lambda: tf.cast(1 / plugin.load().ops.ipu_replication_factor(), value.dtype)
        )
        with library_scopes.library_scope("replication-normalise/replication_normalise", ""):
            return value * share


def ipu_assume_equal_across_replicas(inputs: Any, name: Any = None) -> Any:
    """See `cross_replica_ops.assume_equal_across_replicas`."""
    with tf.name_scope(name or "IpuAssumeEqualAcrossReplicas"):
        return cross_replica_ops.assume_equal_across_replicas(tf.convert_to_tensor(inputs))


def ipu_stateful_gradient_accumulate(
    input: Any, num_mini_batches: int, verify_usage: bool = True, name: Any = None
) -> Any:
    """Sums its input over the iterations of the enclosing loop.

    The sum is zero when the loop begins. It belongs in a program's loop: outside one the op is refused.

    Args:
        input: the value to accumulate, of a fully defined shape.
        num_mini_batches: how many make a sum, which is the result of every `num_mini_batches`-th iteration; the others
            have zeros. The number of iterations has to be a multiple of it.
        verify_usage: whether it is an error that the result updates no variable.
        name: the name of the op.

    Raises:
        ValueError: the shape is not fully defined.

    Example:
        >>> def body(total):
        ...     return total + ipu_stateful_gradient_accumulate(tf.ones([1]), num_mini_batches=5, verify_usage=False)
        >>> step = tf.function(lambda: ipu.loops.repeat(10, body, [tf.zeros([1])]))
        >>> strategy.run(step).numpy().tolist()
        [10.0]
    """
    value = tf.convert_to_tensor(input)
    return plugin.load().ops.ipu_stateful_gradient_accumulate(
        value, _shape_of(value), num_mini_batches=num_mini_batches, verify_usage=verify_usage, name=name
    )


def ipu_stateful_gradient_accumulate_with_momentum(
    accum: Any, grad: Any, momentum: Any, num_mini_batches: int, name: Any = None
) -> Any:
    """`ipu_stateful_gradient_accumulate` whose sum is kept in a variable, and added to the next sum.

    Args:
        accum: the variable's handle.
        grad: the value to accumulate.
        momentum: the factor of the last sum with which the next one begins: 0.0 or 1.0, for example. A number, or a
            tensor whose value is known when the program is built.
        num_mini_batches: how many make a sum.
        name: the name of the op.

    Raises:
        ValueError: the shape is not fully defined.
        NotImplementedError: `momentum` is computed while the program runs.

    Example:
        >>> momentum = tf.Variable([0.0])
        >>> def body(total):
        ...     return total + ipu_stateful_gradient_accumulate_with_momentum(momentum.handle, tf.ones([1]), 0.5, 2)
        >>> step = tf.function(lambda: ipu.loops.repeat(4, body, [tf.zeros([1])]))
        >>> strategy.run(step).numpy().tolist()
        [5.0]
    """
    value = tf.convert_to_tensor(grad)
    static_momentum = tf.get_static_value(tf.convert_to_tensor(momentum, value.dtype))
    if static_momentum is None:
        raise NotImplementedError(
            "momentum is a tensor that is computed while the program runs: the momentum of accumulated "
            "gradients has to be known when the program is built. Pass a number, or a constant tensor."
        )
    return plugin.load().ops.ipu_stateful_gradient_accumulate_with_momentum(
        accum, value, _shape_of(value), momentum=float(static_momentum), num_mini_batches=num_mini_batches, name=name
    )


def _shape_of(value: Any) -> Any:
    if not value.shape.is_fully_defined():
        raise ValueError(
            f"A gradient of shape {value.shape} cannot be accumulated: its shape has to be fully defined. Set the "
            "gradient's static shape, for example with tf.ensure_shape."
        )
    return value.shape


def gradient_accumulator_add_with_scale(
    accumulator: Any, gradients: Any, accumulator_scale: Any, name: Any = None
) -> Any:
    """Returns an accumulator times a scale, plus gradients.

    Args:
        accumulator: the sum so far.
        gradients: gradients of the same shape; they are not scaled.
        accumulator_scale: a scalar for the accumulator.
        name: the name of the op.

    Example:
        >>> gradient_accumulator_add_with_scale([4.0], [1.0], 0.5).numpy().tolist()
        [3.0]
    """
    with tf.name_scope(name or "GradientAccumulatorAddWithScale") as scope:
        value = tf.convert_to_tensor(accumulator)
        scaled = value * tf.cast(tf.convert_to_tensor(accumulator_scale), value.dtype)
        return tf.add(scaled, tf.convert_to_tensor(gradients), name=scope)
