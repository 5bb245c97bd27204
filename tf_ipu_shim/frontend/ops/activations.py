"""Maps activation names to TensorFlow functions, and checks the activations of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf


def hard_sigmoid(x: Any) -> Any:
    """`0.2 * x + 0.5`, clipped to 0 and 1, as in Keras 2.

    Example:
        >>> hard_sigmoid(tf.constant([-5.0, 0.0, 5.0])).numpy().tolist()
        [0.0, 0.5, 1.0]
    """
    return tf.clip_by_value(0.2 * x + 0.5, 0, 1)


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": tf.tanh,
    "relu": tf.nn.relu,
    "softmax": tf.nn.softmax,
    "sigmoid": tf.sigmoid,
    "hard_sigmoid": hard_sigmoid,
}
ACCEPTED_ACTIVATIONS = list(ACTIVATIONS)
ACCEPTED_RECURRENT_ACTIVATIONS = [name for name in ACTIVATIONS if name != "relu"]


def check_activation(name: Any, accepted: list[str], argument: str) -> str:
    """Returns the name of an activation of a recurrent layer.

    Example:
        >>> check_activation(tf.tanh, ACCEPTED_ACTIVATIONS, "activation")
        'tanh'
    """
    activation = name if isinstance(name, str) else getattr(name, "__name__", repr(name))
    if activation not in accepted:
        raise ValueError(
            f"Unsupported {argument} {activation!r}: recurrent layers of the IPU take one of {accepted}. Use "
            "one of these."
        )
    return activation
