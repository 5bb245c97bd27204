"""`LARSOptimizer` of `tensorflow.contrib.opt`; checked on TensorFlow 2.15.1 and 2.21.0."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as v1


class LARSOptimizer(v1.train.Optimizer):  # type: ignore[misc]
    """Momentum with a rate for each layer (You et al., "Large Batch Training of Convolutional Networks", 2017).

    A layer's rate is `learning_rate * eeta * |w| / (|g| + weight_decay * |w| + epsilon)`, and `weight_decay * w` is
    added to its gradient. Where a norm is zero the rate is `learning_rate`.

    Args:
        learning_rate: of the layers in `skip_list`, and what the other's are multiplied with.
        momentum: of the updates.
        weight_decay: of the weights.
        eeta: the trust coefficient (spelt as TensorFlow 1.15 does).
        epsilon: keeps the divisor from zero.
        name: of the optimizer.
        skip_list: variables in whose names one of these is found have the plain rate, and no decay.
        use_nesterov: whether the momentum is Nesterov's.

    Raises:
        ValueError: the momentum is negative.

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
        """The rate of a variable, and its gradient with the decay."""
        rate = v1.cast(self._rate(), grad.dtype)
        if any(part in var.name for part in self._skip_list):
            return rate, grad
        value = v1.convert_to_tensor(var)
        of_weights, of_gradient = v1.norm(value), v1.norm(grad)
        divisor = of_gradient + self._weight_decay * of_weights + self._epsilon
        known = v1.logical_and(of_weights > 0, of_gradient > 0)
        trust = v1.where(known, self._eeta * of_weights / divisor, v1.ones_like(of_weights))
        return rate * trust, grad + self._weight_decay * value

    def _rate(self) -> Any:
        return self._learning_rate() if callable(self._learning_rate) else self._learning_rate

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        rate, gradient = self.compute_lr(grad, var)
        return v1.raw_ops.ResourceApplyMomentum(
            var=var.handle,
            accum=self.get_slot(var, "momentum").handle,
            lr=rate,
            grad=gradient,
            momentum=v1.cast(self._momentum, grad.dtype),
            use_nesterov=self._use_nesterov,
        )

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        rate, gradient = self.compute_lr(grad, var)
        return v1.raw_ops.ApplyMomentum(
            var=var._ref(),
            accum=self.get_slot(var, "momentum")._ref(),
            lr=rate,
            grad=gradient,
            momentum=v1.cast(self._momentum, grad.dtype),
            use_nesterov=self._use_nesterov,
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        whole = v1.scatter_nd(indices[:, v1.newaxis], grad, v1.shape(var, out_type=indices.dtype))
        return self._resource_apply_dense(whole, var)
