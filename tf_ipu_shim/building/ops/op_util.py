"""`tensorflow.python.ipu.ops.op_util`: what several modules of Graphcore's library share, and some scripts import."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.building.gradients import accumulators
from tf_ipu_shim.messages import threestate_pb2


def get_accumulator_dtype(variable: Any, dtype_override: Any) -> Any:
    """The type in which a variable's gradients are summed.

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
    return accumulators.accumulator_dtype(dtype_override, variable)


def bool_to_three_state(value: bool | None, default: str | None = None) -> str:
    """The name of a choice that may be left open.

    Args:
        value: the choice; None where it is open.
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
    """The name of an activation given by name or as a function of TensorFlow's or Keras's.

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
        raise TypeError(f"Unrecognized function : {module}.{name}. Give an activation of tf.nn or Keras, or its name.")
    raise TypeError(f"Could not interpret activation function identifier: {identifier!r}. Give a name or a function.")
