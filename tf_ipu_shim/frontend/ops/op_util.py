"""`tensorflow.python.ipu.ops.op_util`: accumulates gradients over a loop, names activations and optional choices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.gradients import accumulators
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.messages import threestate_pb2


def get_accumulator_dtype(variable: Any, dtype_override: Any) -> Any:
    """Returns the type in which a variable's gradients are summed.

    Args:
        variable: the variable.
        dtype_override: a type, a function from the variable to one, or None for the variable's own.

    Returns:
        The type.

    Source: `tensorflow.python.ipu.ops.op_util.get_accumulator_dtype`.

    Example:
        >>> get_accumulator_dtype(tf.Variable(1.0, dtype=tf.float16), tf.float32)
        tf.float32
    """
    return accumulators.resolve_accumulator_dtype(dtype_override, variable)


def accumulate_gradients(
    grads_and_vars: Iterable[tuple[Any, Any]],
    gradient_accumulation_dtype: Any,
    accum_scale: Any = 1.0,
    grad_scale: Any = None,
    create_accumulator_from_shape: bool = False,
) -> list[tuple[Any, Any]]:
    """Sums gradients over the iterations of the `ipu.loops` loop in which it is called.

    Outside a loop the sums are variables that `tf.compat.v1.global_variables_initializer` sets to zero, and grow with
    each run. The caller defines how the sums are used after a number of mini-batches. Graphcore uses a pipeline's
    update for that; pipelines and accumulating optimizers here do the same.

    Args:
        grads_and_vars: pairs of gradient and variable; a gradient may be None, and stays None.
        gradient_accumulation_dtype: the dtype of the sums: a type, a function from the variable to one, or None for the
            variable's own.
        accum_scale: a number or scalar by which the sum so far is multiplied.
        grad_scale: a factor by which the new gradients are multiplied; None leaves them unchanged.
        create_accumulator_from_shape: no effect: the sum of a variable always has its shape.

    Returns:
        Pairs of the sum so far, this mini-batch's gradient included, and variable.

    Source: `tensorflow.python.ipu.ops.op_util.accumulate_gradients`.

    Example:
        >>> with tf.Graph().as_default():
        ...     weight = tf.compat.v1.get_variable("w", initializer=2.0)
        ...     sgd = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        ...     [(total, _)] = accumulate_gradients(sgd.compute_gradients(tf.square(weight)), tf.float32)
    """
    note_arguments("op_util.accumulate_gradients", create_accumulator_from_shape=create_accumulator_from_shape)
    accumulation = accumulators.GradientAccumulator(
        1, GradientAccumulationReductionMethod.SUM, gradient_accumulation_dtype
    )
    return accumulation.totals(list(grads_and_vars), accum_scale, grad_scale)


def bool_to_three_state(value: bool | None, default: str | None = None) -> str:
    """Returns the name of an optional choice.

    Args:
        value: the choice; None if it is open.
        default: the name for None.

    Returns:
        `"THREESTATE_ON"`, `"THREESTATE_OFF"`, or for None the default, else `"THREESTATE_UNDEFINED"`.

    Source: `tensorflow.python.ipu.ops.op_util.bool_to_three_state`.

    Example:
        >>> bool_to_three_state(True)
        'THREESTATE_ON'
    """
    names = threestate_pb2.ThreeState
    if value is None:
        return default or names.Name(threestate_pb2.THREESTATE_UNDEFINED)
    return names.Name(threestate_pb2.THREESTATE_ON if value else threestate_pb2.THREESTATE_OFF)


def get_activation_name(identifier: Any) -> str:
    """Returns the name of an activation given by name or as a function of TensorFlow's or Keras's.

    Args:
        identifier: such as `"tanh"`, `tf.nn.tanh` or `tf.keras.activations.tanh`.

    Returns:
        The name.

    Raises:
        TypeError: it is neither, or a function of another module.

    Source: `tensorflow.python.ipu.ops.op_util.get_activation_name`.

    Example:
        >>> get_activation_name(tf.nn.relu)
        'relu'
    """
    if isinstance(identifier, str):
        return identifier
    if callable(identifier):
        module, name = getattr(identifier, "__module__", ""), getattr(identifier, "__name__", "")
        parts = module.split(".")
        if parts[0] in ("tensorflow", "keras", "tf_keras", "tf_ipu_shim") and parts[-1].endswith(
            ("activations", "_ops", "nn_impl", "dispatch")
        ):
            return name.removesuffix("_v2")
        raise TypeError(f"Unrecognized function : {module}.{name}. Pass an activation of tf.nn or Keras, or its name.")
    raise TypeError(f"Could not interpret activation function identifier: {identifier!r}. Pass a name or a function.")
