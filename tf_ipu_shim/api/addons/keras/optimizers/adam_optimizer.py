"""`ipu_tensorflow_addons.keras.optimizers.adam_optimizer`: Adam with a separate dtype for its moments."""

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
from tf_ipu_shim.frontend.validation import booleans

_Adam: Any = keras2.public_module().optimizers.legacy.Adam


class AdamIpuOptimizer(_Adam, IpuOptimizerBase):
    """Adam whose moments may have other types than the weights.

    Args:
        learning_rate: see Keras.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the divisor, the root of the corrected second moment.
        amsgrad: whether to divide by the largest second moment, corrected, so far.
        name: the name of the operations.
        m_dtype: the dtype of the first moment; the variable's by default.
        v_dtype: the dtype of the second moment; the variable's by default.
        vhat_dtype: the dtype of the largest second moment; the variable's by default.
        debiasing: whether moments are corrected for their start at zero.
        **kwargs: keyword arguments of `IpuOptimizerBase`.

    Raises:
        TypeError: a dtype argument is not a floating-point dtype; a flag is not a bool.
        ValueError: there is more than one compute dtype.

    Source: `ipu_tensorflow_addons.keras.optimizers.adam_optimizer.AdamIpuOptimizer`.

    Example:
        >>> with strategy.scope():
        ...     model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
        ...     model.compile(AdamIpuOptimizer(0.001, m_dtype=tf.float32, v_dtype=tf.float32), "mse")
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "Adam",
        m_dtype: Any = None,
        v_dtype: Any = None,
        vhat_dtype: Any = None,
        debiasing: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            amsgrad=amsgrad,
            name=name,
            **kwargs,
        )
        check_dtype("m_dtype", m_dtype)
        check_dtype("v_dtype", v_dtype)
        check_dtype("vhat_dtype", vhat_dtype)
        booleans.check_boolean("debiasing", debiasing)
        check_one_precision(self)
        self.m_dtype = m_dtype
        self.v_dtype = v_dtype
        self.vhat_dtype = vhat_dtype
        self.debiasing = debiasing

    def get_slot_dtype(self, var: Any, slot_name: str) -> Any:
        """Returns the type of a slot.

        Raises:
            AssertionError: the slot does not exist.
        """
        if slot_name not in ("m", "v", "vhat"):
            raise unknown_slot(slot_name, "'m', 'v' and 'vhat'")
        return getattr(self, f"{slot_name}_dtype") or var.dtype

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        dtype = self.opt_dtypes[0]
        beta_1, beta_2 = self._number("beta_1"), self._number("beta_2")
        grad = tf.cast(grad, dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first = update_slot(m, beta_1 * tf.cast(m, dtype) + (1 - beta_1) * grad)
        second = update_slot(v, beta_2 * tf.cast(v, dtype) + (1 - beta_2) * grad * grad)
        if self.debiasing:
            first = first / (1 - tf.pow(beta_1, self._step()))
            second = second / (1 - tf.pow(beta_2, self._step()))
        if self.amsgrad:
            largest = self.get_slot(var, "vhat")
            second = update_slot(largest, tf.maximum(tf.cast(largest, dtype), second))
        # Epsilon is added after the correction, as in the paper's algorithm; Keras adds it before.
        step = tf.cast(self._decayed_lr(dtype), dtype) * first / (tf.sqrt(second) + tf.cast(self.epsilon, dtype))
        return var.assign_sub(tf.cast(step, var.dtype), read_value=False)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        return IpuOptimizerBase._resource_apply_sparse(self, grad, var, indices, apply_state)

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, var: Any, indices: Any, **kwargs: Any) -> Any:
        return self._resource_apply_sparse(grad, var, indices, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return {
            **super().get_config(),
            "m_dtype": self.m_dtype,
            "v_dtype": self.v_dtype,
            "vhat_dtype": self.vhat_dtype,
            "debiasing": self.debiasing,
        }
