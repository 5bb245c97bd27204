"""`tf.keras.mixed_precision.experimental`, as TensorFlow 2.1 to 2.6 had it, on the mixed precision of today.

Checked on `keras` 2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import errors, keras2

_DYNAMIC = "dynamic"


def Policy(name: str, loss_scale: Any = "auto") -> Any:
    """A policy of dtypes. One of `mixed_float16` scales the loss in `compile`, dynamically, and no other does.

    Args:
        name: such as `"mixed_float16"`.
        loss_scale: `"auto"`, or what the policy does anyway.

    Raises:
        UnsupportedError: the loss is to be scaled in another way.

    Source: `tf.keras.mixed_precision.experimental.Policy` of TensorFlow 2.1 to 2.6.

    Example:
        >>> Policy("mixed_float16").variable_dtype
        'float32'
    """
    usual = _DYNAMIC if name == "mixed_float16" else None
    if loss_scale not in ("auto", usual):
        raise errors.UnsupportedError(
            f"Policy({name!r}, loss_scale={loss_scale!r}): a policy of the installed Keras scales the loss as "
            f"{usual!r}. Leave loss_scale out, and give compile an optimizer that says how the loss is scaled: "
            "tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, loss_scale)."
        )
    return keras2.module("mixed_precision.policy").Policy(name)


def set_policy(policy: Any) -> None:
    """Sets the policy of layers that are made without one.

    Args:
        policy: a policy, or its name.
    """
    keras2.module("mixed_precision.policy").set_global_policy(policy)


def global_policy() -> Any:
    """The policy of layers that are made without one."""
    return keras2.module("mixed_precision.policy").global_policy()


def get_layer_policy(layer: Any) -> Any:
    """The policy that a layer was made with.

    Args:
        layer: a Keras layer.

    Raises:
        ValueError: it is no layer.

    Source: `tf.keras.mixed_precision.experimental.get_layer_policy` of TensorFlow 2.1 to 2.6.

    Example:
        >>> import tensorflow as tf
        >>> get_layer_policy(tf.keras.layers.Dense(1)).name
        'float32'
    """
    if not isinstance(layer, keras2.module("engine.base_layer").Layer):
        raise ValueError(f"get_layer_policy(layer): layer is no Keras layer, it is {type(layer).__name__!r}")
    return layer.dtype_policy


def LossScaleOptimizer(optimizer: Any, loss_scale: Any) -> Any:
    """An optimizer whose gradients are those of a larger loss, so that fewer of them are zero in float16.

    Args:
        optimizer: a Keras optimizer.
        loss_scale: a factor, `"dynamic"`, or a `tf.compat.v1.mixed_precision` loss scale.

    Source: `tf.keras.mixed_precision.experimental.LossScaleOptimizer` of TensorFlow 2.1 to 2.6.

    Example:
        >>> float(LossScaleOptimizer(tf.keras.optimizers.SGD(0.1), 128).loss_scale)
        128.0
    """
    module = keras2.module("mixed_precision.loss_scale_optimizer")
    if loss_scale == _DYNAMIC:
        return module.BaseLossScaleOptimizer(optimizer)
    if isinstance(loss_scale, (int, float)):
        return module.BaseLossScaleOptimizer(optimizer, dynamic=False, initial_scale=loss_scale)
    return module._create_loss_scale_optimizer_from_v1_loss_scale(optimizer, loss_scale)
