"""`tensorflow.python.ipu.keras.optimizers.ipu_wrappers`: the base class of optimizer wrappers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.frontend.keras.optimizers.optimizer_v2_wrapper import _OptimizerV2Wrapper
from tf_ipu_shim.tf_private.eager import gradients_impl
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import state_ops
from tf_ipu_shim.tf_private.training import optimizer


class IpuOptimizer(_OptimizerV2Wrapper):
    """Forwards all calls to the wrapped Keras 2 optimizer; subclasses override `preprocess_gradients`.

    Args:
        opt: a Keras 2 optimizer.
        name: the name of the operations.
        **kwargs: keyword arguments of Keras's base class.

    Raises:
        TypeError: `opt` is not a Keras 2 optimizer.

    Source: `tensorflow.python.ipu.keras.optimizers.ipu_wrappers.IpuOptimizer`.

    Example:
        >>> class Negated(IpuOptimizer):
        ...     def preprocess_gradients(self, grad, var):
        ...         return -grad, var
    """

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """Gradients in a graph.

        Args:
            loss: the loss.
            params: variables.
        """
        return gradients_impl.gradients(loss, params)


class _KerasOptimizerWrapper(optimizer.Optimizer):
    """A Keras 2 optimizer that wraps one of TensorFlow 1.

    Args:
        model: the model whose weights are trained if none are named; None for all trainable variables of the graph.
        opt: a Keras 2 optimizer.
    """

    def __init__(self, model: Any, opt: Any) -> None:
        super().__init__(use_locking=False, name=type(opt).__name__)
        self._model, self._optimizer = model, opt

    def compute_gradients(self, loss: Any, var_list: Any = None, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Returns pairs of gradients and variables."""
        if var_list is None and self._model is not None:
            var_list = self._model.trainable_weights
        pairs: list[tuple[Any, Any]] = super().compute_gradients(loss, var_list, **kwargs)
        return pairs

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients by the Keras optimizer, then counts the step."""
        applied = self._optimizer.apply_gradients(grads_and_vars, name=name)
        if global_step is None:
            return applied
        with ops.control_dependencies([applied]):
            return state_ops.assign_add(global_step, 1)
