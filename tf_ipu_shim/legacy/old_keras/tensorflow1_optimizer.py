"""Accepts `tf.compat.v1.train` optimizers in the Keras models of SDK 1.2 to 2.1.

Relies on `optimizer.Optimizer.apply_gradients`, which makes its slots outside the function being traced; checked on
TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.optimizers.ipu_optimizer import IpuOptimizer
from tf_ipu_shim.tf_private import training
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.training import optimizer as optimizer_v1

OptimizerV2: Any = keras2.module("optimizers.legacy.optimizer_v2").OptimizerV2


class TensorFlow1Optimizer(OptimizerV2):
    """A Keras optimizer that passes gradients to a TensorFlow 1 optimizer.

    Args:
        optimizer: an optimizer of `tf.compat.v1.train`.

    Example:
        >>> optimizer = TensorFlow1Optimizer(tf.compat.v1.train.MomentumOptimizer(0.1, 0.9))
    """

    def __init__(self, optimizer: Any) -> None:
        super().__init__(type(optimizer).__name__)
        self.optimizer = optimizer

    def apply_gradients(self, grads_and_vars: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Updates the variables."""
        return self.optimizer.apply_gradients(list(grads_and_vars), global_step=self.iterations)

    def get_config(self) -> dict[str, Any]:
        """Refused: an optimizer of TensorFlow 1 has no configuration that could be written."""
        raise NotImplementedError("An optimizer of tf.compat.v1.train has no configuration: use one of tf.keras.")

    def _create_all_weights(self, var_list: Sequence[Any]) -> None:
        _ = self.iterations
        with ops.init_scope():
            training.create_slots(self.optimizer, var_list)


def keras_optimizer(optimizer: Any) -> Any:
    """Returns an optimizer in the form that Keras models accept.

    Example:
        >>> keras_optimizer("sgd")
        'sgd'
    """
    from tf_ipu_shim.legacy.old_keras import ipu_wrappers

    if isinstance(optimizer, (IpuOptimizer, ipu_wrappers.IpuOptimizer)):
        raise ValueError(
            f"Optimizer must be a native TensorFlow optimizer or a Keras optimizer, not a {type(optimizer).__name__}: "
            "the model itself averages gradients over replicas and accumulates them (gradient_accumulation_count)."
            " Pass such an optimizer."
        )
    return TensorFlow1Optimizer(optimizer) if isinstance(optimizer, optimizer_v1.Optimizer) else optimizer
