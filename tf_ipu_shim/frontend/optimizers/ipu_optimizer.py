"""`tensorflow.python.ipu.optimizers.ipu_optimizer`: the base class of optimizers that wrap another optimizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.tf_private.training import optimizer as optimizer_v1


class IpuOptimizer(optimizer_v1.Optimizer):
    """Forwards all calls to the wrapped optimizer.

    Args:
        opt: a `tf.compat.v1.train.Optimizer`.
        name: the name of the operations; the class's by default.

    Raises:
        ValueError: `opt` is a Keras optimizer.
        TypeError: `opt` is not an optimizer.

    Source: `tensorflow.python.ipu.optimizers.ipu_optimizer.IpuOptimizer`.

    Example:
        >>> class Clipped(IpuOptimizer):
        ...     def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        ...         clipped = [(tf.clip_by_norm(g, 1.0), v) for g, v in grads_and_vars]
        ...         return super().apply_gradients(clipped, global_step, name)
    """

    def __init__(self, opt: Any, name: str | None = None) -> None:
        if not isinstance(opt, optimizer_v1.Optimizer) and hasattr(opt, "get_config"):
            module = "ipu.keras.optimizers"
            if sdk.current() >= (3, 0):
                module = "keras.ipu.optimizers (in the `keras` package)"
            raise ValueError(
                f"Should use optimizer in {module} to wrap a Keras optimizer; {type(self).__name__} wraps a "
                f"tf.compat.v1.train.Optimizer and was given a {type(opt).__name__}. Use the wrapper of that module, "
                "or an optimizer of tf.compat.v1.train."
            )
        if not hasattr(opt, "apply_gradients"):
            raise TypeError(
                f"{type(self).__name__} wraps a tf.compat.v1.train.Optimizer and was given {opt!r}; "
                "expected an optimizer object. Create it first, such as "
                "tf.compat.v1.train.GradientDescentOptimizer(0.1)."
            )
        super().__init__(False, name=name or type(self).__name__)
        self._opt = opt

    def compute_gradients(self, loss: Any, var_list: Any = None, **kwargs: Any) -> Any:
        """Gradients of a loss.

        Args:
            loss: the loss.
            var_list: variables to train; all trainable ones by default.
            **kwargs: keyword arguments for the wrapped optimizer.

        Returns:
            Pairs of gradient and variable.
        """
        return self._opt.compute_gradients(loss, var_list=var_list, **kwargs)

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients.

        Args:
            grads_and_vars: pairs of gradient and variable.
            global_step: a variable that is counted up.
            name: the name of the operation.

        Returns:
            The operation that does it.
        """
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the wrapped optimizer's slot."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """Returns the wrapped optimizer's variables."""
        return self._opt.variables()

    def get_name(self) -> Any:
        """Returns the wrapped optimizer's name."""
        return self._opt.get_name()
