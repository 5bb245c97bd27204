"""`tf.keras.mixed_precision.experimental` of TensorFlow 2.1 to 2.6, over the current mixed precision API.

Checked on `keras` 2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import errors, keras2
from tf_ipu_shim.tf_private import keras_members

_DYNAMIC = "dynamic"


def __getattr__(name: str) -> Any:
    """Returns the two classes, which are derived from Keras' and so are made when they are asked for."""
    if name in _CLASSES:
        return _CLASSES[name]()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _class(name: str, stock: Any, base: Any, make: Callable[..., Any], init: Callable[..., None]) -> type:
    """A class that creates today's objects and accepts them as instances; a script's subclass is one of `stock`."""
    meta: Any = type(stock)

    class Kind(meta):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            return make(*args, **kwargs) if cls is subclass else type.__call__(cls, *args, **kwargs)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, base) if cls is subclass else type.__instancecheck__(cls, instance)

    subclass: type = Kind(name, (stock,), {"__init__": init, "__module__": __name__, "__doc__": make.__doc__})
    return subclass


@functools.cache
def _policy() -> type:
    stock = keras2.module("mixed_precision.policy").Policy

    def init(self: Any, name: str, loss_scale: Any = "auto") -> None:
        _check_loss_scale(name, loss_scale)
        stock.__init__(self, name)

    return _class("Policy", stock, stock, _make_policy, init)


@functools.cache
def _loss_scale_optimizer() -> type:
    module = keras2.module("mixed_precision.loss_scale_optimizer")

    def init(self: Any, optimizer: Any, loss_scale: Any) -> None:
        module.LossScaleOptimizer.__init__(self, optimizer, **_scaling(loss_scale))

    base = module.BaseLossScaleOptimizer
    return _class("LossScaleOptimizer", module.LossScaleOptimizer, base, _make_loss_scale_optimizer, init)


_CLASSES = {"Policy": _policy, "LossScaleOptimizer": _loss_scale_optimizer}


def _make_policy(name: str, loss_scale: Any = "auto") -> Any:
    """Returns a policy of dtypes. One of `mixed_float16` scales the loss in `compile`, dynamically, and no other does.

    Args:
        name: such as `"mixed_float16"`.
        loss_scale: `"auto"`, or the policy's own behaviour.

    Raises:
        UnsupportedError: the loss is to be scaled in another way.

    Source: `tf.keras.mixed_precision.experimental.Policy` of TensorFlow 2.1 to 2.6.

    Example:
        >>> from tf_ipu_shim.legacy.keras_2_6.mixed_precision import Policy
        >>> Policy("mixed_float16").variable_dtype
        'float32'
    """
    _check_loss_scale(name, loss_scale)
    return keras2.module("mixed_precision.policy").Policy(name)


def _check_loss_scale(name: str, loss_scale: Any) -> None:
    usual = _DYNAMIC if name == "mixed_float16" else None
    if loss_scale not in ("auto", usual):
        raise errors.UnsupportedError(
            f"Policy({name!r}, loss_scale={loss_scale!r}): a policy of the installed Keras can only "
            f"scale the loss as {usual!r}. Leave loss_scale out, and pass compile an optimizer that "
            "says how the loss is scaled: "
            "tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, loss_scale)."
        )


def set_policy(policy: Any) -> None:
    """Sets the policy of layers that are made without one.

    Args:
        policy: a policy, or its name.
    """
    keras2.module("mixed_precision.policy").set_global_policy(policy)


def global_policy() -> Any:
    """Returns the policy of layers that are made without one."""
    return keras2.module("mixed_precision.policy").global_policy()


def get_layer_policy(layer: Any) -> Any:
    """Returns the policy that a layer was made with.

    Args:
        layer: a Keras layer.

    Raises:
        ValueError: it is not a layer.

    Source: `tf.keras.mixed_precision.experimental.get_layer_policy` of TensorFlow 2.1 to 2.6.

    Example:
        >>> import tensorflow as tf
        >>> get_layer_policy(tf.keras.layers.Dense(1)).name
        'float32'
    """
    if not isinstance(layer, keras2.module("engine.base_layer").Layer):
        raise ValueError(
            f"get_layer_policy(layer): layer is a {type(layer).__name__!r}; expected a Keras layer. Pass a layer."
        )
    return layer.dtype_policy


def _make_loss_scale_optimizer(optimizer: Any, loss_scale: Any) -> Any:
    """Returns an optimizer that scales the loss, so that fewer gradients are zero in float16.

    Args:
        optimizer: a Keras optimizer.
        loss_scale: a factor, `"dynamic"`, or a `tf.compat.v1.mixed_precision` loss scale.

    Source: `tf.keras.mixed_precision.experimental.LossScaleOptimizer` of TensorFlow 2.1 to 2.6.

    Example:
        >>> from tf_ipu_shim.legacy.keras_2_6.mixed_precision import LossScaleOptimizer
        >>> float(LossScaleOptimizer(tf.keras.optimizers.SGD(0.1), 128).loss_scale)
        128.0
    """
    base = keras2.module("mixed_precision.loss_scale_optimizer").BaseLossScaleOptimizer
    return base(optimizer, **_scaling(loss_scale))


def _scaling(loss_scale: Any) -> dict[str, Any]:
    """Returns the setting for a current optimizer.

    Raises:
        UnsupportedError: it cannot be.
    """
    if loss_scale == _DYNAMIC:
        return {}
    if isinstance(loss_scale, (int, float)):
        return {"dynamic": False, "initial_scale": loss_scale}
    kind = type(loss_scale).__name__
    if kind == "FixedLossScale":
        return {"dynamic": False, "initial_scale": keras_members.loss_scale_value(loss_scale)}
    if kind == "DynamicLossScale" and loss_scale.multiplier == 2:
        return {"initial_scale": loss_scale.initial_loss_scale, "dynamic_growth_steps": loss_scale.increment_period}
    raise errors.UnsupportedError(
        f"LossScaleOptimizer(optimizer, {loss_scale!r}): the installed Keras only scales by a "
        "number, or dynamically by powers of 2. Give it a number, 'dynamic', a FixedLossScale, or a "
        "DynamicLossScale whose multiplier is 2."
    )
