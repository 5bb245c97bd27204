"""Implements `LazyAdamOptimizer` and `NadamOptimizer` of `tensorflow.contrib.opt`.

Checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow.compat.v1 as v1

from tf_ipu_shim.tf_private import variables as tf_variables


class _Rows(NamedTuple):
    """Gradients of some rows of a variable, as a whole one's. XLA does not have a kernel for updates of rows.

    Args:
        gradient: zero if there is none; repeated rows are summed.
        is_present: 1 for rows that have a gradient, else 0, in its dtype.
    """

    gradient: Any
    is_present: Any

    @classmethod
    def of(cls, rows: Any, indices: Any, variable: Any) -> _Rows:
        shape = v1.shape(variable, out_type=indices.dtype)
        at = indices[:, v1.newaxis]
        return cls(v1.scatter_nd(at, rows, shape), v1.scatter_nd(at, v1.ones_like(rows), shape) > 0)


class _Adam(v1.train.AdamOptimizer):  # type: ignore[misc]
    """Adam whose updates of rows are one method, for variables of both kinds."""

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._apply_rows(_Rows.of(grad, indices, handle), handle)

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        return self._apply_rows(_Rows.of(grad.values, grad.indices, var), var)

    def _apply_rows(self, rows: _Rows, var: Any) -> Any:
        raise NotImplementedError

    def _moments(self, var: Any) -> tuple[Any, Any]:
        return self.get_slot(var, "m"), self.get_slot(var, "v")

    def _hyperparameters(self, kind: Any) -> tuple[Any, Any, Any, Any]:
        """Returns the corrected rate, both betas, and the constant that keeps the divisor from zero."""
        first, second = (v1.cast(power, kind) for power in self._get_beta_accumulators())
        rate, beta1, beta2, epsilon = (
            v1.cast(number, kind) for number in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        return rate * v1.sqrt(1 - second) / (1 - first), beta1, beta2, epsilon

    @staticmethod
    def _assigned(var: Any, rows: _Rows, step: Any, updates: list[tuple[Any, Any]]) -> Any:
        """Moves the rows that have a gradient, and keeps the moments."""
        with v1.control_dependencies([v1.assign(slot, value) for slot, value in updates]):
            return v1.assign_sub(var, v1.where(rows.is_present, step, v1.zeros_like(step))).op


class LazyAdamOptimizer(_Adam):
    """Adam that does not change rows without a gradient, including their moments.

    For dense gradients it is Adam. A repeated index has one update, with the sum of its gradients.

    Args: as for `tf.compat.v1.train.AdamOptimizer`.

    Source: `tensorflow.contrib.opt.python.training.lazy_adam_optimizer.LazyAdamOptimizer`.

    Example:
        >>> LazyAdamOptimizer(0.01).get_name()
        'Adam'
    """

    def _apply_rows(self, rows: _Rows, var: Any) -> Any:
        m, v = self._moments(var)
        rate, beta1, beta2, epsilon = self._hyperparameters(rows.gradient.dtype)
        first = v1.where(rows.is_present, beta1 * m + (1 - beta1) * rows.gradient, v1.convert_to_tensor(m))
        second = v1.where(rows.is_present, beta2 * v + (1 - beta2) * v1.square(rows.gradient), v1.convert_to_tensor(v))
        step = rate * first / (v1.sqrt(second) + epsilon)
        return self._assigned(var, rows, step, [(m, first), (v, second)])


class NadamOptimizer(_Adam):
    """Adam with Nesterov's momentum (Dozat, "Incorporating Nesterov Momentum into Adam", 2015).

    An update uses `beta1 * m + (1 - beta1) * g` as the moment, with `m` already updated by the gradient `g`. Moments of
    rows without a gradient decay, and the rows stay.

    Args: as for `tf.compat.v1.train.AdamOptimizer`.

    Source: `tensorflow.contrib.opt.python.training.nadam_optimizer.NadamOptimizer`.

    Example:
        >>> NadamOptimizer(0.01).get_name()
        'Adam'
    """

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        references = {name: tf_variables.reference(variable) for name, variable in self._updated(var).items()}
        return v1.raw_ops.ApplyAdam(**references, **self._of_op(grad))

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        handles = {name: variable.handle for name, variable in self._updated(var).items()}
        return v1.raw_ops.ResourceApplyAdam(**handles, **self._of_op(grad))

    def _updated(self, var: Any) -> dict[str, Any]:
        m, v = self._moments(var)
        return {"var": var, "m": m, "v": v}

    def _of_op(self, grad: Any) -> dict[str, Any]:
        first, second = self._get_beta_accumulators()
        numbers = {"beta1_power": first, "beta2_power": second, "lr": self._lr_t, "beta1": self._beta1_t}
        numbers |= {"beta2": self._beta2_t, "epsilon": self._epsilon_t}
        kind = grad.dtype.base_dtype
        cast = {name: v1.cast(number, kind) for name, number in numbers.items()}
        return {**cast, "grad": grad, "use_locking": self._use_locking, "use_nesterov": True}

    def _apply_rows(self, rows: _Rows, var: Any) -> Any:
        m, v = self._moments(var)
        rate, beta1, beta2, epsilon = self._hyperparameters(rows.gradient.dtype)
        added = (1 - beta1) * rows.gradient
        first = beta1 * m + added
        second = beta2 * v + (1 - beta2) * v1.square(rows.gradient)
        step = rate * (beta1 * first + added) / (v1.sqrt(second) + epsilon)
        return self._assigned(var, rows, step, [(m, first), (v, second)])
