"""`ipu_tensorflow_addons.keras.optimizers.lamb_optimizer`: LAMB, Adam with steps scaled by each weight's norm."""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.api.addons.keras.optimizers.ipu_optimizer_base import (
    IpuOptimizerBase,
    check_dtype,
    unknown_slot,
    update_slot,
)
from tf_ipu_shim.frontend.validation import booleans


class LAMBIpuOptimizer(IpuOptimizerBase):
    """LAMB (You et al. 2019) whose moments may have other types than the weights.

    Args:
        learning_rate: a number, or a Keras schedule.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the divisor.
        weight_decay_rate: the weight decay rate of the weights, in each step.
        exclude_from_weight_decay: regular expressions of names of variables that do not decay.
        exclude_from_layer_adaptation: regular expressions of names of variables whose rate is not adapted; by default
            those that do not decay.
        name: the name of the operations.
        debiasing: whether moments are corrected for their start at zero.
        m_dtype: the dtype of the first moment; the variable's by default.
        v_dtype: the dtype of the second moment; the variable's by default.
        weight_norm_clip: the largest norm of a layer's weights that counts.
        optimizer_compute_precisions: the types of the moments' arithmetic, and of the norms and the step.
        **kwargs: keyword arguments of `IpuOptimizerBase`.

    Raises:
        TypeError: a type is not a floating-point dtype; another argument is invalid.
        ValueError: the number of types is not two.

    Source: `ipu_tensorflow_addons.keras.optimizers.lamb_optimizer.LAMBIpuOptimizer`.

    Example:
        >>> optimizer = LAMBIpuOptimizer(0.001, weight_decay_rate=0.01, exclude_from_weight_decay=["bias", "norm"])
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-6,
        weight_decay_rate: Any = 0.0,
        exclude_from_weight_decay: Sequence[str] | None = None,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        name: str = "LAMB",
        debiasing: bool = True,
        m_dtype: Any = None,
        v_dtype: Any = None,
        weight_norm_clip: float | None = None,
        optimizer_compute_precisions: Sequence[Any] = (tf.float32, tf.float32),
        **kwargs: Any,
    ) -> None:
        super().__init__(name, optimizer_compute_precisions, **kwargs)
        if len(self.opt_dtypes) != 2:
            raise ValueError(
                "Must provide a list of two elements for optimizer_compute_precisions: for the moments, and for the "
                f"norms and the step. It has {len(self.opt_dtypes)}. Pass two types."
            )
        check_dtype("m_dtype", m_dtype)
        check_dtype("v_dtype", v_dtype)
        booleans.check_boolean("debiasing", debiasing)
        _check_norm(weight_norm_clip)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self._set_hyper("weight_decay_rate", weight_decay_rate)
        self.epsilon = epsilon
        self.exclude_from_weight_decay = exclude_from_weight_decay
        self.exclude_from_layer_adaptation = exclude_from_layer_adaptation or exclude_from_weight_decay
        self.debiasing = debiasing
        self.m_dtype = m_dtype
        self.v_dtype = v_dtype
        self.weight_norm_clip = weight_norm_clip

    def get_slot_dtype(self, var: Any, slot_name: str) -> Any:
        """Returns the type of a slot.

        Raises:
            AssertionError: the slot does not exist.
        """
        if slot_name not in ("m", "v"):
            raise unknown_slot(slot_name, "'m' and 'v'")
        return getattr(self, f"{slot_name}_dtype") or var.dtype

    def _create_slots(self, var_list: Any) -> None:
        for slot_name in ("m", "v"):
            for var in var_list:
                self.add_slot(var, slot_name)

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        first_type, second_type = self.opt_dtypes
        beta_1, beta_2 = self._number("beta_1"), self._number("beta_2")
        grad = tf.cast(grad, first_type)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        first = update_slot(m, beta_1 * tf.cast(m, first_type) + (1 - beta_1) * grad)
        second = update_slot(v, beta_2 * tf.cast(v, first_type) + (1 - beta_2) * grad * grad)
        if self.debiasing:
            first /= 1 - tf.pow(beta_1, self._step())
            second /= 1 - tf.pow(beta_2, self._step())
        step = tf.cast(first / (tf.sqrt(second) + tf.cast(self.epsilon, first_type)), second_type)
        weight = tf.cast(var, second_type)
        if self._do_use_weight_decay(_name(var)):
            step += self._get_hyper("weight_decay_rate", second_type) * weight
        step *= tf.cast(self._decayed_lr(second_type), second_type) * self._ratio(var, weight, step)
        return var.assign_sub(tf.cast(step, var.dtype), read_value=False)

    # Called as in TensorFlow Addons, of which scripts know them.
    def _do_use_weight_decay(self, param_name: str) -> bool:
        return not _is_one_of(param_name, self.exclude_from_weight_decay)

    def _do_layer_adaptation(self, param_name: str) -> bool:
        return not _is_one_of(param_name, self.exclude_from_layer_adaptation)

    def _ratio(self, var: Any, weight: Any, step: Any) -> Any:
        one = tf.ones([], step.dtype)
        if not self._do_layer_adaptation(_name(var)):
            return one
        weight_norm, step_norm = tf.norm(weight), tf.norm(step)
        if self.weight_norm_clip is not None:
            weight_norm = tf.minimum(weight_norm, tf.cast(self.weight_norm_clip, weight_norm.dtype))
        has_norms = tf.logical_and(weight_norm > 0, step_norm > 0)
        return tf.where(has_norms, weight_norm / tf.where(has_norms, step_norm, one), one)

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        hyperparameters = ("learning_rate", "beta_1", "beta_2", "weight_decay_rate")
        return {
            **super().get_config(),
            **{name: self._serialize_hyperparameter(name) for name in hyperparameters},
            "decay": self._initial_decay,
            "epsilon": self.epsilon,
            "exclude_from_weight_decay": self.exclude_from_weight_decay,
            "exclude_from_layer_adaptation": self.exclude_from_layer_adaptation,
            "debiasing": self.debiasing,
            "m_dtype": self.m_dtype,
            "v_dtype": self.v_dtype,
            "weight_norm_clip": self.weight_norm_clip,
        }


def _check_norm(norm: Any) -> None:
    is_number = isinstance(norm, numbers.Real) and not isinstance(norm, bool)
    if norm is not None and not is_number and not tf.is_tensor(norm):
        raise TypeError(
            f"weight_norm_clip must be a number, the largest norm that counts, or None, not {norm!r}. Pass a number."
        )


def _name(var: Any) -> str:
    return str(var.name.partition(":")[0])


def _is_one_of(name: str, patterns: Sequence[str] | None) -> bool:
    return any(re.search(pattern, name) is not None for pattern in patterns or ())
