"""Optimizers of `tensorflow.contrib.opt` with decoupled weight decay.

Checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as v1


class DecoupledWeightDecayExtension:
    """Decays weights separately from an optimizer's update (Loshchilov and Hutter, "Decoupled Weight Decay", 2017).

    `weight_decay * w` is subtracted from a weight before each of its updates; it does not include the learning rate. A
    class that has an optimizer as its second base has that optimizer's arguments too.

    Args:
        weight_decay: the part of a weight that is subtracted, a number or a tensor.
        **kwargs: the optimizer's.

    Source: `tensorflow.contrib.opt.python.training.weight_decay_optimizers.DecoupledWeightDecayExtension`.

    Example:
        >>> class DecayedFtrl(DecoupledWeightDecayExtension, tf.compat.v1.train.FtrlOptimizer):
        ...     pass
        >>> DecayedFtrl(0.01, learning_rate=0.1).get_name()
        'Ftrl'
    """

    def __init__(self, weight_decay: Any, **kwargs: Any) -> None:
        self._decay_var_list: list[Any] | None = None
        self._weight_decay = weight_decay
        super().__init__(**kwargs)

    def minimize(self, loss: Any, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """Returns the optimizer's `minimize`.

        Args:
            loss: the loss to minimise.
            *args: positional arguments of the optimizer's `minimize`.
            decay_var_list: variables that decay; by default all.
            **kwargs: keyword arguments of the optimizer's `minimize`.
        """
        self._decay_var_list = list(decay_var_list) if decay_var_list else None
        return super().minimize(loss, *args, **kwargs)  # type: ignore[misc]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None, decay_var_list: Any = None
    ) -> Any:
        """Returns the optimizer's `apply_gradients`.

        Args:
            grads_and_vars: gradients, each with its variable.
            global_step: a variable that counts the updates.
            name: the name of the operation.
            decay_var_list: variables that decay; by default the variables passed to `minimize`, else all.
        """
        if decay_var_list:
            self._decay_var_list = list(decay_var_list)
        return super().apply_gradients(grads_and_vars, global_step, name)  # type: ignore[misc]

    def _decays(self, var: Any) -> bool:
        return self._decay_var_list is None or any(var is decaying for decaying in self._decay_var_list)

    def _decayed(self, var: Any, grad: Any) -> list[Any]:
        """The ops that an update of a whole variable waits for; the gradient is computed before the weight decays."""
        if not self._decays(var):
            return []
        with v1.control_dependencies([grad]):
            return [var.assign_sub(self._part(var) * var)]

    def _part(self, var: Any) -> Any:
        decay = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
        return v1.cast(decay, var.dtype.base_dtype)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with v1.control_dependencies(self._decayed(var, grad)):
            return super()._apply_dense(grad, var)  # type: ignore[misc]

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with v1.control_dependencies(self._decayed(var, grad)):
            return super()._resource_apply_dense(grad, var)  # type: ignore[misc]

    # Of a variable of which some rows have a gradient, these decay, and no others.
    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with v1.control_dependencies(self._decayed_rows(var, grad.values, grad.indices)):
            return super()._apply_sparse(grad, var)  # type: ignore[misc]

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        with v1.control_dependencies(self._decayed_rows(var, grad, indices)):
            return super()._resource_apply_sparse(grad, var, indices)  # type: ignore[misc]

    def _decayed_rows(self, var: Any, grad: Any, indices: Any) -> list[Any]:
        if not self._decays(var):
            return []
        with v1.control_dependencies([grad]):
            return [v1.scatter_sub(var, indices, self._part(var) * v1.gather(var, indices))]


class AdamWOptimizer(DecoupledWeightDecayExtension, v1.train.AdamOptimizer):  # type: ignore[misc]
    """Adam with decoupled weight decay.

    Args:
        weight_decay: the part of a weight that each update subtracts.
        learning_rate: the learning rate of Adam; the arguments below are also those of Adam.
        beta1: decay of the means of gradients.
        beta2: decay of the means of their squares.
        epsilon: keeps the divisor from zero.
        use_locking: the `use_locking` of the updates.
        name: the name of the optimizer.

    Source: `tensorflow.contrib.opt.AdamWOptimizer`.

    Example:
        >>> AdamWOptimizer(0.01, 0.001).get_name()
        'AdamW'
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )


class MomentumWOptimizer(DecoupledWeightDecayExtension, v1.train.MomentumOptimizer):  # type: ignore[misc]
    """Momentum with decoupled weight decay.

    Args:
        weight_decay: the part of a weight that each update subtracts.
        learning_rate: the learning rate; the arguments below are also those of the optimizer.
        momentum: the momentum of the updates.
        use_locking: the `use_locking` of the updates.
        name: the name of the optimizer.
        use_nesterov: whether the momentum is Nesterov's.

    Source: `tensorflow.contrib.opt.MomentumWOptimizer`.

    Example:
        >>> MomentumWOptimizer(0.01, 0.1, 0.9).get_name()
        'MomentumW'
    """

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any:
    """Derives a class of optimizers that decay weights from one that does not.

    Args:
        base_optimizer: a class of `tf.compat.v1.train`.

    Returns:
        The class: its first argument is `weight_decay`, and the others are keyword arguments.

    Source: `tensorflow.contrib.opt.extend_with_decoupled_weight_decay`.

    Example:
        >>> decaying = extend_with_decoupled_weight_decay(tf.compat.v1.train.GradientDescentOptimizer)
        >>> decaying(0.1, learning_rate=0.5).get_name()
        'GradientDescent'
    """
    name = f"{base_optimizer.__name__}WithDecoupledWeightDecay"
    return type(name, (DecoupledWeightDecayExtension, base_optimizer), {"__module__": __name__})
