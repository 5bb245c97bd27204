"""`tensorflow.python.ipu.keras.optimizers.ipu_wrappers`: the base of the others."""

from __future__ import annotations

from typing import Any

from tensorflow.python.ops import gradients_impl

from tf_ipu_shim.building.keras.optimizer_v2_wrapper import _OptimizerV2Wrapper


class IpuOptimizer(_OptimizerV2Wrapper):
    """Hands all calls on to the Keras 2 optimizer it wraps; subclasses override `preprocess_gradients`.

    Args:
        opt: a Keras 2 optimizer.
        name: of the operations.
        **kwargs: of Keras's base class.

    Raises:
        TypeError: `opt` is no Keras 2 optimizer.

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
