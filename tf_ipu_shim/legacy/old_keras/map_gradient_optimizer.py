"""`tensorflow.python.ipu.keras.optimizers.map_gradient_optimizer`: transforms gradients before they are applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.legacy.old_keras.ipu_wrappers import IpuOptimizer

_REFUSED = ((2, 3), (3, 0))


class MapGradientOptimizerInvertedChaining(IpuOptimizer):
    """Applies a function to each gradient, such as weight decay; of nested ones, the outermost runs first.

    Args:
        opt: a Keras 2 optimizer.
        gradient_mapping_function: accepts a gradient and its variable, returns a gradient.
        name: the name of the operations.

    Raises:
        TypeError: `opt` is not a Keras 2 optimizer.
        ValueError: the function cannot be called.

    Source: `tensorflow.python.ipu.keras.optimizers.map_gradient_optimizer.MapGradientOptimizerInvertedChaining`.

    Example:
        >>> sgd = tf.keras.optimizers.SGD(0.1)
        >>> decayed = MapGradientOptimizerInvertedChaining(sgd, lambda gradient, variable: gradient + 0.01 * variable)
    """

    def __init__(
        self,
        opt: Any,
        gradient_mapping_function: Callable[[Any, Any], Any],
        name: str = "MapGradientOptimizerInvertedChaining",
    ) -> None:
        super().__init__(opt, name=name)
        self.gradient_mapping_function = gradient_mapping_function

    @property
    def gradient_mapping_function(self) -> Callable[[Any, Any], Any]:
        """The function that transforms each gradient."""
        return self._gradient_mapping_function

    @gradient_mapping_function.setter
    def gradient_mapping_function(self, function: Callable[[Any, Any], Any]) -> None:
        if not callable(function):
            raise ValueError(f"gradient_mapping_function must be a callable. It is {function!r}. Pass a callable.")
        self._gradient_mapping_function = function

    def preprocess_gradients(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """Puts a gradient through the function."""
        return self._gradient_mapping_function(grad, var), var

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return {**super().get_config(), "gradient_mapping_function": self._gradient_mapping_function}


class MapGradientOptimizer(MapGradientOptimizerInvertedChaining):
    """The same under its name in SDK 2.1; SDK 2.3 to 3.0 have it but refuse to create it.

    Args:
        opt: see `MapGradientOptimizerInvertedChaining`, also for the arguments below.
        gradient_mapping_function: as above.
        name: as above.

    Raises:
        NotImplementedError: an SDK from 2.3 to 3.0 is emulated.

    Source: `tensorflow.python.ipu.keras.optimizers.map_gradient_optimizer.MapGradientOptimizer`.

    Example:
        >>> sgd = tf.keras.optimizers.SGD(0.1)
        >>> decayed = MapGradientOptimizer(sgd, lambda gradient, variable: gradient + 0.01 * variable)
    """

    def __init__(
        self, opt: Any, gradient_mapping_function: Callable[[Any, Any], Any], name: str = "MapGradientOptimizer"
    ) -> None:
        first, last = _REFUSED
        if first <= sdk.current() <= last:
            raise NotImplementedError(
                "Use MapGradientOptimizerInvertedChaining instead, which takes the same arguments: SDK "
                f"{sdk.current()} refuses this name."
            )
        super().__init__(opt, gradient_mapping_function, name)
