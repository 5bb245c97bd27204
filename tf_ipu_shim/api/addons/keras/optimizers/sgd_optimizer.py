"""`ipu_tensorflow_addons.keras.optimizers.sgd_optimizer`: gradient descent with a separate dtype for momentum."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.api.addons.keras.optimizers.ipu_optimizer_base import (
    IpuOptimizerBase,
    check_dtype,
    check_one_precision,
    unknown_slot,
    update_slot,
)

_SGD: Any = keras2.public_module().optimizers.legacy.SGD


class SGDIpuOptimizer(_SGD, IpuOptimizerBase):
    """Gradient descent whose momentum may have another type than the weights.

    Args:
        learning_rate: see Keras.
        momentum: share of the last step that is kept.
        nesterov: whether to use Nesterov momentum.
        name: the name of the operations.
        momentum_accum_dtype: the dtype of the momentum; the variable's by default.
        **kwargs: keyword arguments of `IpuOptimizerBase`.

    Raises:
        TypeError: a dtype argument is not a floating-point dtype.
        ValueError: there is more than one compute dtype.

    Source: `ipu_tensorflow_addons.keras.optimizers.sgd_optimizer.SGDIpuOptimizer`.

    Example:
        >>> with strategy.scope():
        ...     model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
        ...     model.compile(SGDIpuOptimizer(0.1, 0.9, momentum_accum_dtype=tf.float32), "mse")
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: Any = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        momentum_accum_dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate=learning_rate, momentum=momentum, nesterov=nesterov, name=name, **kwargs)
        check_dtype("momentum_accum_dtype", momentum_accum_dtype)
        check_one_precision(self)
        self.momentum_accum_dtype = momentum_accum_dtype

    def get_slot_dtype(self, var: Any, slot_name: str) -> Any:
        """Returns the type of a slot.

        Raises:
            AssertionError: the slot does not exist.
        """
        if slot_name != "momentum":
            raise unknown_slot(slot_name, "'momentum'")
        return self.momentum_accum_dtype or var.dtype

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        dtype = self.opt_dtypes[0]
        step = tf.cast(self._decayed_lr(dtype), dtype) * tf.cast(grad, dtype)
        if not self._momentum:
            return var.assign_sub(tf.cast(step, var.dtype), read_value=False)
        momentum, slot = self._number("momentum"), self.get_slot(var, "momentum")
        moved = update_slot(slot, momentum * tf.cast(slot, dtype) - step)
        if self.nesterov:
            moved = momentum * moved - step
        return var.assign_add(tf.cast(moved, var.dtype), read_value=False)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        return IpuOptimizerBase._resource_apply_sparse(self, grad, var, indices, apply_state)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, var: Any, indices: Any, **kwargs: Any) -> Any:
        return self._resource_apply_sparse(grad, var, indices, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return {**super().get_config(), "momentum_accum_dtype": self.momentum_accum_dtype}
