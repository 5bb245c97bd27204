"""`keras.ipu.optimizers.gradient_accumulation_optimizer`: one update for several mini-batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.gradients.accumulators import GradientAccumulator
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.keras.optimizers.optimizer_v2_wrapper import _OptimizerV2Wrapper
from tf_ipu_shim.frontend.ops import op_util
from tf_ipu_shim.frontend.optimizers.gradient_accumulation_optimizer import check_options
from tf_ipu_shim.frontend.validation import booleans


class GradientAccumulationOptimizer(_OptimizerV2Wrapper):
    """Accumulates the gradients of several mini-batches before it applies them.

    Args:
        opt: a Keras 2 optimizer.
        num_mini_batches: the number of mini-batches of an update; loops around it must run a multiple of it.
        offload_weight_update_variables: whether optimizer state is in remote memory. Only the memory model uses it.
            Like the next, True, False, None or the driver's name: `"THREESTATE_ON"`, `"THREESTATE_OFF"`.
        replicated_optimizer_state_sharding: whether replicas each have a part of it, as above.
        dtype: the dtype of the accumulators: a type, or a function from the variable to one; the variable's own by
            default.
        reduction_method: a `GradientAccumulationReductionMethod`, or its name.
        name: the name of the operations.

    Raises:
        TypeError: `opt` is not a Keras 2 optimizer.
        ValueError: a number below one, an unknown method, or state that is to be sharded but not offloaded.

    Source: `keras.ipu.optimizers.gradient_accumulation_optimizer.GradientAccumulationOptimizer`.

    Example:
        >>> with strategy.scope():
        ...     model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
        ...     model.compile(GradientAccumulationOptimizer(tf.keras.optimizers.SGD(0.1), num_mini_batches=4), "mse")
    """

    @argument_order(5, "name", until=(2, 6))
    def __init__(
        self,
        opt: Any,
        num_mini_batches: int,
        offload_weight_update_variables: bool | str | None = None,
        replicated_optimizer_state_sharding: bool | str | None = False,
        dtype: Any = None,
        reduction_method: Any = GradientAccumulationReductionMethod.SUM,
        name: str = "GradientAccumulationOptimizer",
    ) -> None:
        if isinstance(num_mini_batches, int) and num_mini_batches < 1:
            raise ValueError(f"num_mini_batches must be >= 1. It is {num_mini_batches}. Pass at least 1.")
        offload = booleans.three_state("offload_weight_update_variables", offload_weight_update_variables)
        sharding = booleans.three_state("replicated_optimizer_state_sharding", replicated_optimizer_state_sharding)
        check_options(num_mini_batches, offload, sharding)
        super().__init__(opt, name=name)
        self.num_mini_batches = num_mini_batches
        self.offload_weight_update_variables = offload_weight_update_variables
        self.replicated_optimizer_state_sharding = replicated_optimizer_state_sharding
        self.dtype = dtype
        self.reduction_method = GradientAccumulationReductionMethod.parse(reduction_method)
        self._accumulation = GradientAccumulator(
            num_mini_batches,
            self.reduction_method,
            dtype,
            offload,
            sharding,
        )

    def apply_gradients(self, grads_and_vars: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Accumulates gradients; with the last mini-batch's, applies them.

        Args:
            grads_and_vars: pairs of gradient and variable.
            *args: a name; see Keras. The wrapped optimizer gets all of them.
            **kwargs: as above.
        """
        pairs = [(g, v) if g is None else self.preprocess_gradients(g, v) for g, v in grads_and_vars]
        return self._accumulation.update(pairs, lambda reduced: self._apply(reduced, *args, **kwargs))

    @staticmethod
    def bool_to_three_state(value: bool | None, default: str | None = None) -> str:
        """Returns the driver's name of an optional choice.

        Args:
            value: the option.
            default: the name that None stands for.

        Example:
            >>> GradientAccumulationOptimizer.bool_to_three_state(True)
            'THREESTATE_ON'
        """
        return op_util.bool_to_three_state(value, default)

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return {
            **super().get_config(),
            "num_mini_batches": self.num_mini_batches,
            "offload_weight_update_variables": self.offload_weight_update_variables,
            "replicated_optimizer_state_sharding": self.replicated_optimizer_state_sharding,
            "dtype": self.dtype,
            "reduction_method": self.reduction_method.name,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes an optimizer like the one whose `get_config` gave `config`.

        Args:
            config: a configuration from `get_config`.
            custom_objects: classes of optimizers that are not Keras's, by name.

        Raises:
            ValueError: it is called on a subclass.
        """
        if cls is not GradientAccumulationOptimizer:
            raise ValueError(
                "GradientAccumulationOptimizer.from_config can only be used to create "
                f"GradientAccumulationOptimizers. {cls.__name__} needs its own from_config. Override from_config in "
                "the subclass."
            )
        return super().from_config(config, custom_objects)
