"""`tensorflow.python.ipu.optimizers.map_gradient_optimizer`: transforms gradients before they are applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim.frontend.optimizers.ipu_optimizer import IpuOptimizer


class MapGradientOptimizer(IpuOptimizer):
    """Applies a function to each gradient that it computes, such as weight decay.

    Args:
        wrapped_optimizer: a `tf.compat.v1.train.Optimizer`.
        gradient_mapping_function: accepts a gradient and its variable, returns a gradient.
        name: the name of the operations.

    Raises:
        ValueError: `wrapped_optimizer` is a Keras optimizer.
        TypeError: the function cannot be called.

    Source: `tensorflow.python.ipu.optimizers.map_gradient_optimizer.MapGradientOptimizer`.

    Example:
        >>> sgd = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        >>> decayed = MapGradientOptimizer(sgd, lambda gradient, variable: gradient + 0.01 * variable)
    """

    def __init__(
        self,
        wrapped_optimizer: Any,
        gradient_mapping_function: Callable[[Any, Any], Any],
        name: str = "MapGradientOptimizer",
    ) -> None:
        super().__init__(wrapped_optimizer, name=name)
        if not callable(gradient_mapping_function):
            raise TypeError(
                "gradient_mapping_function of MapGradientOptimizer must be a function of a gradient and its variable, "
                f"not {gradient_mapping_function!r}. Pass a function."
            )
        self._gradient_mapping_function = gradient_mapping_function

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Gradients of the wrapped optimizer, each mapped by the function."""
        pairs = self._opt.compute_gradients(*args, **kwargs)
        return [
            (gradient if gradient is None else self._gradient_mapping_function(gradient, variable), variable)
            for gradient, variable in pairs
        ]
