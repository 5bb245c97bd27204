"""`tensorflow.python.ipu.ops.internal_ops`: printing, FIFOs inside a program, compiler hints."""

from __future__ import annotations

import sys
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.control_flow import loops
from tf_ipu_shim.frontend.ops.program_state import program_state
from tf_ipu_shim.frontend.tracing import host_ops


def print_tensor(input: Any, name: str = "") -> Any:
    """Prints a tensor to the standard error each time the op runs, in a compiled program too.

    Args:
        input: the tensor.
        name: printed in front of it.

    Returns:
        In a graph the op that prints: return it from the program, or make another op depend on it. None if ops run
        eagerly.

    Source: `tensorflow.python.ipu.ops.internal_ops.print_tensor`.

    Example:
        >>> def step(loss):
        ...     with tf.control_dependencies([print_tensor(loss, "loss")]):
        ...         return tf.identity(loss)
        >>> float(strategy.run(tf.function(step), args=[tf.constant(0.5)]))
        0.5
    """
    with host_ops.host_placement("print_tensor"):
        return tf.print(f"{name}:" if name else "", input, output_stream=sys.stderr, summarize=-1, sep=" ")


def fifo(x: Any, depth: int, offload: bool = False, name: Any = None) -> tf.Tensor:
    """A queue inside a program: each execution adds a tensor and removes the one that was added `depth` executions ago.

    The queue is a variable that belongs to the program, begins with zeros and is kept between its runs; each replica
    has its own. In a TensorFlow 1 graph `global_variables_initializer` sets it to zeros. Iterations of a loop are
    executions.

    Args:
        x: the tensor, of a shape that is known.
        depth: the depth of the queue, in executions.
        offload: whether the queue is in remote memory; no effect.
        name: the name of the op.

    Returns:
        The tensor of `depth` executions ago; the tensor itself for depth 0. It has a gradient only for depth 0, because
        otherwise it does not depend on the input.

    Raises:
        ValueError: the depth is below 0, a size of the shape is unknown, or the call is outside a program, which would
            keep the queue.

    Source: `tensorflow.python.ipu.ops.internal_ops.fifo`.

    Example:
        >>> delayed = tf.function(lambda x: fifo(x, 2))
        >>> [float(strategy.run(delayed, args=[tf.constant(float(i))])) for i in range(4)]
        [0.0, 0.0, 0.0, 1.0]
    """
    note_arguments("fifo", offload=offload)
    if depth < 0:
        raise ValueError(
            f"internal_ops.fifo(depth={depth}): expected a number of executions, 0 or more. Pass 0 or more."
        )
    if depth == 0:
        return tf.identity(x, name=name)
    value = tf.convert_to_tensor(x)
    if not value.shape.is_fully_defined():
        raise ValueError(
            f"internal_ops.fifo was given the shape {value.shape}; expected a fully defined one. Set "
            "the static shape, for example with tf.ensure_shape."
        )
    if tf.executing_eagerly():
        raise ValueError(
            "internal_ops.fifo was called outside a program, but can only keep values between the "
            "executions of one. Call it in a tf.function that runs on the IPU, or in "
            "ipu_compiler.compile."
        )
    with tf.name_scope(name or "fifo") as scope:
        queue = program_state([depth, *value.shape], value.dtype, "fifo")
        waiting = queue.read_value()
        with tf.control_dependencies([waiting]):
            written = queue.assign(tf.concat([waiting[1:], value[tf.newaxis]], 0), read_value=False)
        with tf.control_dependencies([written]):
            return tf.identity(waiting[0], name=scope)


def remap(x: Any, name: Any = None) -> tf.Tensor:
    """Spreads a tensor over the tiles again; its values stay.

    Args:
        x: the tensor.
        name: the name of the op.

    Returns:
        The same values.

    Source: `tensorflow.python.ipu.ops.internal_ops.remap`.

    Example:
        >>> remap(tf.constant([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]
    """
    return tf.identity(x, name=name or "remap")


def remap_deduce(x: Any, name: Any = None) -> tf.Tensor:
    """Spreads a tensor over the tiles for its use; values stay.

    Args:
        x: the tensor.
        name: the name of the op.

    Returns:
        The same values.

    Source: `tensorflow.python.ipu.ops.internal_ops.remap_deduce`.

    Example:
        >>> remap_deduce(tf.constant([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]
    """
    return tf.identity(x, name=name or "remap_deduce")


def recompute(x: Any, name: Any = None) -> tf.Tensor:
    """Suggests that a value be computed again in the backward pass (until SDK 2.1); its values stay.

    Args:
        x: the tensor.
        name: the name of the op.

    Returns:
        The same values.

    Source: `tensorflow.python.ipu.ops.internal_ops.recompute`.

    Example:
        >>> recompute(tf.nn.relu(tf.constant([-1.0, 2.0]))).numpy().tolist()
        [0.0, 2.0]
    """
    return tf.identity(x, name=name or "recompute")


def block_recompute(x: Any, name: Any = None) -> tf.Tensor:
    """Keeps a value from being computed again in the backward pass (until SDK 2.1); its values stay.

    Args:
        x: the tensor.
        name: the name of the op.

    Returns:
        The same values.

    Source: `tensorflow.python.ipu.ops.internal_ops.block_recompute`.

    Example:
        >>> block_recompute(tf.constant([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]
    """
    return tf.identity(x, name=name or "block_recompute")


def get_current_iteration_counter(name: str | None = None, **kwargs: Any) -> Any:
    """Returns the iteration of the enclosing loop, or the mini-batch of a pipeline stage, from 0.

    Args:
        name: the name of the operation.
        **kwargs: `lower_bound` and `upper_bound`, which are hints on the values for Graphcore's compiler; no effect.

    Returns:
        An int32 scalar.

    Raises:
        ValueError: it is not in the body of `ipu.loops.repeat` or `while_loop`, nor in a stage of a pipeline, or an
            argument is unknown.

    Source: `tensorflow.python.ipu.ops.internal_ops.get_current_iteration_counter`.

    Example:
        >>> rates = tf.constant([0.1, 0.2, 0.4])
        >>> def body(total):
        ...     return total + rates[get_current_iteration_counter()]
        >>> round(float(strategy.run(tf.function(lambda: ipu.loops.repeat(3, body, [0.0])))), 4)
        0.7
    """
    unknown = sorted(set(kwargs) - {"lower_bound", "upper_bound"})
    if unknown:
        raise ValueError(
            f"get_current_iteration_counter takes no argument {unknown[0]!r}; expected only `name`. Remove it."
        )
    note_arguments("get_current_iteration_counter", **kwargs)
    counter = loops.current_counter()
    if counter is None:
        raise ValueError(
            "get_current_iteration_counter was called outside a loop body; expected one of "
            "ipu.loops.repeat, ipu.loops.while_loop or a pipeline. Add a counter to the variables of "
            "other loops."
        )
    return tf.identity(counter, name=name)
