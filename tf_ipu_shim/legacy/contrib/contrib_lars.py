"""Implements `LARSOptimizer` of `tensorflow.contrib.opt`: momentum with a learning rate for each layer.

Checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.tf_private import variables as tf_variables


class LARSOptimizer(v1.train.Optimizer):  # type: ignore[misc]
    """Momentum with a rate for each layer (You et al., "Large Batch Training of Convolutional Networks", 2017).

    A layer's rate is `learning_rate * eeta * |w| / (|g| + weight_decay * |w| + epsilon)`. Its gradient grows by
    `weight_decay * w`. If a norm is zero, the rate is `learning_rate`. If only rows of a variable have a gradient,
    these have plain momentum, at `learning_rate`.

    Args:
        learning_rate: the learning rate of the layers in `skip_list`, and the factor of the other layers' rates.
        momentum: the momentum of the updates.
        weight_decay: the weight decay of the weights.
        eeta: the trust coefficient (spelt as TensorFlow 1.15 does).
        epsilon: keeps the divisor from zero.
        name: the name of the optimizer.
        skip_list: variables in whose names one of these is found have the plain rate, and no decay.
        use_nesterov: whether the momentum is Nesterov's.

    Raises:
        ValueError: the momentum or the decay is negative.

    Source: `tensorflow.contrib.opt.python.training.lars_optimizer.LARSOptimizer`.

    Example:
        >>> LARSOptimizer(0.1).get_name()
        'LARSOptimizer'
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: list[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}. Pass a value above 0.")
        super().__init__(False, name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list or []
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: Any) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "momentum", self._name)

    def compute_lr(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """Returns the rate of a variable, and its gradient with the decay."""
        rate = v1.cast(self._rate(), grad.dtype)
        if any(part in var.name for part in self._skip_list):
            return rate, grad
        value = v1.convert_to_tensor(var)
        of_weights, of_gradient = v1.norm(value), v1.norm(grad)
        divisor = of_gradient + self._weight_decay * of_weights + self._epsilon
        is_nonzero = v1.logical_and(of_weights > 0, of_gradient > 0)
        trust = v1.where(is_nonzero, self._eeta * of_weights / divisor, v1.ones_like(of_weights))
        return rate * trust, grad + self._weight_decay * value

    def _rate(self) -> Any:
        return self._learning_rate() if callable(self._learning_rate) else self._learning_rate

    # A layer's rate is a factor of the gradient that goes into the momentum, not of the update. Earlier steps keep
    # their rate in it.
    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        rate, gradient = self.compute_lr(grad, var)
        return v1.raw_ops.ResourceApplyMomentum(
            var=var.handle,
            accum=self.get_slot(var, "momentum").handle,
            lr=v1.ones([], grad.dtype),
            grad=gradient * rate,
            momentum=v1.cast(self._momentum, grad.dtype),
            use_nesterov=self._use_nesterov,
        )

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        rate, gradient = self.compute_lr(grad, var)
        return v1.raw_ops.ApplyMomentum(
            var=tf_variables.reference(var),
            accum=tf_variables.reference(self.get_slot(var, "momentum")),
            lr=v1.ones([], grad.dtype),
            grad=gradient * rate,
            momentum=v1.cast(self._momentum, grad.dtype),
            use_nesterov=self._use_nesterov,
        )

    # Rows are plain momentum's, with the learning rate as it is and no decay. They are made a whole variable's, as XLA
    # has no kernel for updates of rows; an index that is there twice is added up.
    def _resource_apply_sparse_duplicate_indices(self, grad: Any, handle: Any, indices: Any) -> Any:
        return self._apply_rows(grad, handle, indices)

    def _apply_sparse_duplicate_indices(self, grad: Any, var: Any) -> Any:
        return self._apply_rows(grad.values, var, grad.indices)

    def _apply_rows(self, rows: Any, var: Any, indices: Any) -> Any:
        accumulator = self.get_slot(var, "momentum")
        rate, momentum = v1.cast(self._rate(), rows.dtype), v1.cast(self._momentum, rows.dtype)
        at, shape = indices[:, v1.newaxis], v1.shape(var, out_type=indices.dtype)
        gradient = v1.scatter_nd(at, rows, shape)
        updated = v1.scatter_nd(at, v1.ones_like(rows), shape) > 0
        summed = v1.where(updated, momentum * accumulator + gradient, v1.convert_to_tensor(accumulator))
        step = rate * (gradient + momentum * summed) if self._use_nesterov else rate * summed
        assigned = v1.assign(accumulator, summed)
        with v1.control_dependencies([assigned]):
            return v1.assign_sub(var, v1.where(updated, step, v1.zeros_like(step))).op
