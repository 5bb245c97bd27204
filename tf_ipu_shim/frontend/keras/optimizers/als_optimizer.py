"""`keras.ipu.optimizers.als_optimizer`: automatic loss scaling."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.gradients import loss_scaling
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.keras.optimizers.gradient_accumulation_optimizer import GradientAccumulationOptimizer
from tf_ipu_shim.frontend.keras.optimizers.optimizer_v2_wrapper import _OptimizerV2Wrapper
from tf_ipu_shim.frontend.validation import booleans
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.eager import gradients_impl
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import math_ops


class ALSDefaults:
    """Default arguments of `ALSOptimizer`.

    Source: `keras.ipu.optimizers.als_optimizer.ALSDefaults`.
    """

    initial_loss_scaling_factor = 1
    update_frequency = 8
    increase_factor = 2
    max_loss_scaling_factor = 32768
    accumulate_statistics_over_update_period = True
    ratio_threshold = 10e-6
    captured_grads_only = False
    lpf_alpha = 0.0
    histogram_bin_edge = 2**13


OPTIONS = tuple(name for name in vars(ALSDefaults) if not name.startswith("_"))


def _further(aggregate: bool) -> dict[str, Any]:
    """Arguments of the wrapped optimizer in addition to the name; only Keras optimizers have any."""
    return {} if aggregate else {"experimental_aggregate_gradients": False}


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, not {value!r}. Pass a number.")


def _check_power_of_two(name: str, value: Any) -> None:
    _check_number(name, value)
    if value <= 0 or math.frexp(value)[0] != 0.5:
        raise ValueError(f"{name} must be a power of two. It is {value}. Pass a power of two.")


class ALSOptimizer(loss_scaling.LossScaling, _OptimizerV2Wrapper):
    """Scales the loss so that small gradients do not vanish in float16, and finds the factor automatically.

    Args:
        opt: a Keras 2 optimizer; it gets unscaled gradients.
        initial_loss_scaling_factor: the initial factor; a power of two.
        update_frequency: updates between two changes of the factor; if it is more than one, the first change is an
            update later, as in Graphcore's.
        increase_factor: the factor is multiplied or divided by it; a power of two.
        max_loss_scaling_factor: the factor stays below; a power of two.
        accumulate_statistics_over_update_period: whether all float16 gradients since the last change count, or only
            those of the update that changes the factor.
        ratio_threshold: the largest allowed share of large gradients.
        captured_grads_only: whether only gradients given as `captured_grads` count.
        lpf_alpha: the share of older counts that is kept.
        histogram_bin_edge: the magnitude from which a gradient is large.
        name: the name of the operations.

    Raises:
        TypeError: `opt` is not a Keras 2 optimizer, or an argument has an invalid value.
        ValueError: a number is out of range, or two arguments conflict.

    Source: `keras.ipu.optimizers.als_optimizer.ALSOptimizer`.

    Example:
        >>> with strategy.scope():
        ...     model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
        ...     model.compile(ALSOptimizer(tf.keras.optimizers.SGD(0.1), initial_loss_scaling_factor=128), "mse")
    """

    brings_its_optimizer = False  # whether it makes the optimizer that it wraps
    takes_scaled_gradients = True  # as Graphcore's; Keras' LossScaleOptimizer takes unscaled ones

    def __init__(
        self,
        opt: Any,
        initial_loss_scaling_factor: float = ALSDefaults.initial_loss_scaling_factor,
        update_frequency: int = ALSDefaults.update_frequency,
        increase_factor: float = ALSDefaults.increase_factor,
        max_loss_scaling_factor: float = ALSDefaults.max_loss_scaling_factor,
        accumulate_statistics_over_update_period: bool = ALSDefaults.accumulate_statistics_over_update_period,
        ratio_threshold: float = ALSDefaults.ratio_threshold,
        captured_grads_only: bool = ALSDefaults.captured_grads_only,
        lpf_alpha: float = ALSDefaults.lpf_alpha,
        histogram_bin_edge: float = ALSDefaults.histogram_bin_edge,
        name: str = "ALSOptimizer",
    ) -> None:
        super().__init__(opt, name=name)
        if isinstance(opt, ALSOptimizer) and opt.brings_its_optimizer:
            raise ValueError(
                "ALSOptimizer has been used to wrap an optimizer that scales the loss by itself, "
                f"{type(opt).__name__}; expected one that does not. Use it without {type(self).__name__}."
            )
        booleans.check_boolean("accumulate_statistics_over_update_period", accumulate_statistics_over_update_period)
        booleans.check_boolean("captured_grads_only", captured_grads_only)
        _check_number("lpf_alpha", lpf_alpha)
        _check_number("histogram_bin_edge", histogram_bin_edge)
        self._maximum: float | None = None
        self.increase_factor = increase_factor
        self.initial_loss_scaling_factor = initial_loss_scaling_factor
        self.max_loss_scaling_factor = max_loss_scaling_factor
        self.update_frequency = update_frequency
        self.accumulate_statistics_over_update_period = accumulate_statistics_over_update_period
        self.ratio_threshold = ratio_threshold
        self.captured_grads_only = captured_grads_only
        self.lpf_alpha = lpf_alpha
        self.histogram_bin_edge = histogram_bin_edge
        self._state = loss_scaling.LossScaleState(initial_loss_scaling_factor)

    def get_scaled_loss(self, loss: Any) -> Any:
        """Returns a loss, times the factor.

        Args:
            loss: the loss.
        """
        return loss * math_ops.cast(self._state.factor.read_value(), loss.dtype)

    def _transform_loss(self, loss: Any) -> Any:
        return self.get_scaled_loss(super()._transform_loss(loss))

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """Gradients of the scaled loss, in a graph.

        Args:
            loss: the loss.
            params: variables.
        """
        return gradients_impl.gradients(self.get_scaled_loss(loss), params)

    def get_unscaled_gradients(self, grads: Any) -> list[Any]:
        """Gradients of the scaled loss, divided by the factor.

        Args:
            grads: the gradients.
        """
        factor = self._state.factor.read_value()
        return [loss_scaling.unscale_gradient(gradient, factor) for gradient in grads]

    def apply_gradients(
        self,
        grads_and_vars: Iterable[Any],
        captured_grads: Any = None,
        global_step: Any = None,
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
    ) -> Any:
        """Applies gradients of the scaled loss, and changes the factor at the end of its period.

        Args:
            grads_and_vars: pairs of gradient and variable.
            captured_grads: further gradients of the scaled loss that count; any structure of tensors.
            global_step: recorded; Keras counts `iterations`.
            name: the name of the operation.
            experimental_aggregate_gradients: passed to the wrapped optimizer.
        """
        pairs = [(g, v) if g is None else self.preprocess_gradients(g, v) for g, v in grads_and_vars]
        captured = [] if captured_grads is None else nest.flatten(captured_grads)
        counted = captured + ([] if self.captured_grads_only else [gradient for gradient, _ in pairs])
        unscaled = self.get_unscaled_gradients([gradient for gradient, _ in pairs])
        note_arguments("ALSOptimizer.apply_gradients", global_step=global_step)
        applied = self._apply(
            list(zip(unscaled, [variable for _, variable in pairs])),
            name=name,
            **_further(experimental_aggregate_gradients),
        )
        with ops.control_dependencies([applied] if isinstance(applied, ops.Operation) else []):
            return control_flow_ops.group(*self._state.advance(self._rules(), counted))

    def count_captured_gradients(self, captured_grads: Any) -> Any:
        """Counts captured gradients of one mini-batch, if several precede an update.

        Args:
            captured_grads: any structure of tensors.

        Returns:
            The operation that does it.
        """
        return self._state.count(self._rules(), nest.flatten(captured_grads))

    def _form(self) -> dict[str, Any]:
        return {"lpf_alpha": self.lpf_alpha, "edge": self.histogram_bin_edge}

    def reset(self) -> None:
        """Starts again with the initial factor."""
        self._state.initial = self.initial_loss_scaling_factor
        self._state.reset()

    def get_name(self) -> str:
        """Returns the name of this optimizer."""
        return self._name

    @property
    def previous_loss_scaling_factor(self) -> Any:
        """The factor before the last update."""
        return self._state.previous_factor

    @property
    def supports_captured_grads(self) -> bool:
        """Returns whether `apply_gradients` accepts `captured_grads`."""
        return True

    @property
    def decrease_factor(self) -> float:
        """One over `increase_factor`."""
        return 1 / self.increase_factor

    @property
    def update_frequency(self) -> int:
        """Updates between two changes of the factor."""
        return self._update_frequency

    @update_frequency.setter
    def update_frequency(self, value: int) -> None:
        value = check_integer("update_frequency", value)
        if value <= 0:
            raise ValueError(
                f"update_frequency must be nonzero and positive. It is {value}. Pass an update_frequency above 0."
            )
        self._update_frequency = value

    @property
    def increase_factor(self) -> float:
        """The factor by which the loss scale is multiplied or divided."""
        return self._increase_factor

    @increase_factor.setter
    def increase_factor(self, value: float) -> None:
        _check_power_of_two("increase_factor", value)
        self._increase_factor = value

    @property
    def initial_loss_scaling_factor(self) -> float:
        """The initial factor."""
        return self._initial

    @initial_loss_scaling_factor.setter
    def initial_loss_scaling_factor(self, value: float) -> None:
        _check_power_of_two("initial_loss_scaling_factor", value)
        self._check_room(value, self._maximum)
        self._initial = value

    @property
    def max_loss_scaling_factor(self) -> Any:
        """The upper limit of the factor."""
        return self._maximum

    @max_loss_scaling_factor.setter
    def max_loss_scaling_factor(self, value: float) -> None:
        _check_power_of_two("max_loss_scaling_factor", value)
        self._check_room(self.initial_loss_scaling_factor, value)
        self._maximum = value

    def _check_room(self, initial: float, maximum: float | None) -> None:
        if maximum is not None:
            loss_scaling.check_room(initial, self.increase_factor, maximum)

    @property
    def ratio_threshold(self) -> float:
        """The largest allowed share of large gradients."""
        return self._ratio_threshold

    @ratio_threshold.setter
    def ratio_threshold(self, value: float) -> None:
        _check_number("ratio_threshold", value)
        loss_scaling.check_ratio(value)
        self._ratio_threshold = value

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return {**super().get_config(), **{name: getattr(self, name) for name in OPTIONS}}


def _refuse_assignment(name: str) -> None:
    def refuse(self: ALSOptimizer, _: Any) -> None:
        raise ValueError(f"{name} is a read only property. The optimizer computes it: remove the assignment.")

    setattr(ALSOptimizer, name, getattr(ALSOptimizer, name).setter(refuse))


_READ_ONLY = (
    "histogram normalized_histogram loss_scaling_factor previous_loss_scaling_factor update_counter decrease_factor"
).split()
for _name in _READ_ONLY:
    _refuse_assignment(_name)


class ALSGradientAccumulationOptimizer(GradientAccumulationOptimizer):
    """Accumulates scaled gradients, and lets an `ALSOptimizer` apply them.

    Args:
        als_optimizer: an `ALSOptimizer`.
        num_mini_batches: see `GradientAccumulationOptimizer`, also for the arguments below.
        offload_weight_update_variables: as above.
        replicated_optimizer_state_sharding: as above.
        dtype: as above.
        reduction_method: as above.
        name: the name of the operations.

    Raises:
        ValueError: `als_optimizer` is not an `ALSOptimizer`; else as for `GradientAccumulationOptimizer`.

    Source: `keras.ipu.optimizers.als_optimizer.ALSGradientAccumulationOptimizer`.

    Example:
        >>> sgd = tf.keras.optimizers.SGD(0.1)
        >>> optimizer = ALSGradientAccumulationOptimizer(ALSOptimizer(sgd), num_mini_batches=4)
    """

    def __init__(
        self,
        als_optimizer: Any,
        num_mini_batches: int,
        offload_weight_update_variables: bool | str | None = None,
        replicated_optimizer_state_sharding: bool | str | None = False,
        dtype: Any = None,
        reduction_method: Any = GradientAccumulationReductionMethod.SUM,
        name: str = "ALSGradientAccumulationOptimizer",
    ) -> None:
        if not isinstance(als_optimizer, ALSOptimizer):
            raise ValueError(
                "ALSGradientAccumulationOptimizer can only be used with instances of ALSOptimizer, not "
                f"{type(als_optimizer).__name__}. For others there is GradientAccumulationOptimizer. Use "
                "GradientAccumulationOptimizer instead, or wrap an ALSOptimizer."
            )
        super().__init__(
            als_optimizer,
            num_mini_batches,
            offload_weight_update_variables,
            replicated_optimizer_state_sharding,
            dtype,
            reduction_method,
            name,
        )

    @property
    def als_optimizer(self) -> ALSOptimizer:
        """The wrapped optimizer."""
        return self._opt

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """Gradients of the scaled loss; see `ALSOptimizer.get_gradients`."""
        return self._opt.get_gradients(loss, params)

    def apply_gradients(
        self,
        grads_and_vars: Iterable[Any],
        captured_grads: Any = None,
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
    ) -> Any:
        """Accumulates gradients of the scaled loss; with the last mini-batch's, applies them.

        Args:
            grads_and_vars: pairs of gradient and variable.
            captured_grads: as for `ALSOptimizer.apply_gradients`; gradients of all mini-batches count.
            name: the name of the operation.
            experimental_aggregate_gradients: passed to the wrapped optimizer.
        """
        counted = [] if captured_grads is None else [self._opt.count_captured_gradients(captured_grads)]
        with ops.control_dependencies([operation for operation in counted if isinstance(operation, ops.Operation)]):
            return super().apply_gradients(grads_and_vars, name=name, **_further(experimental_aggregate_gradients))

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes an optimizer like the one whose `get_config` gave `config`.

        Args:
            config: a configuration from `get_config`.
            custom_objects: classes of optimizers that are not Keras's, by name.

        Raises:
            ValueError: the configuration's inner optimizer is not an `ALSOptimizer`.
        """
        kind = config.get("inner_optimizer_type")
        if kind not in {ALSOptimizer.__name__, *(subclass.__name__ for subclass in ALSOptimizer.__subclasses__())}:
            raise ValueError(
                "ALSGradientAccumulationOptimizer.from_config can only be used with configurations of an "
                f"ALSOptimizer inside; this one has {kind!r}. Pass a configuration that get_config() of this class "
                "returned."
            )
        config = dict(config)
        return cls(cls._inner_from_config(config, custom_objects), **config)


def _forwarded(name: str) -> Any:
    return property(lambda self: getattr(self._opt, name), doc=f"The wrapped optimizer's `{name}`.")


for _name in (*OPTIONS, *_READ_ONLY, "supports_captured_grads"):
    setattr(ALSGradientAccumulationOptimizer, _name, _forwarded(_name))

# The name of SDK 3.0.
ALSOptimizerGradientAccumulationWrapper = ALSGradientAccumulationOptimizer
