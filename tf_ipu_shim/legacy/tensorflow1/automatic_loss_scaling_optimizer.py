"""`tensorflow.python.ipu.optimizers.automatic_loss_scaling_optimizer`: scales the loss in SDK 2.2 to 2.6."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.frontend.gradients import loss_scaling
from tf_ipu_shim.frontend.optimizers.ipu_optimizer import IpuOptimizer
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import math_ops


def check_factors(
    initial: float,
    update_frequency: int,
    increase: float,
    decrease: float,
    maximum: float,
    ratio_threshold: float,
    blamed: str = "increase_factor",
) -> None:
    """Checks the numbers of automatic loss scaling.

    Args:
        initial: the initial factor.
        update_frequency: updates between two changes of the factor.
        increase: the factor is multiplied by it if gradients are small.
        decrease: the factor is multiplied by it if too many gradients are large.
        maximum: the factor stays below.
        ratio_threshold: the largest allowed share of large gradients.
        blamed: the factor that an error names first if `increase` is not above `decrease`.

    Raises:
        ValueError: a number is out of range, or two of them conflict.
    """
    for name, value in (
        ("decrease_factor", decrease),
        ("increase_factor", increase),
        ("initial_loss_scaling_factor", initial),
        ("update_frequency", update_frequency),
    ):
        if value <= 0:
            raise ValueError(f"{name} must be nonzero and positive. It is {value}. Pass a value above 0.")
    if decrease >= increase:
        relation = "increase_factor must be greater than decrease_factor"
        if blamed == "decrease_factor":
            relation = "decrease_factor must be less than increase_factor"
        raise ValueError(
            f"{relation}: increase_factor is {increase} and decrease_factor {decrease}. Change one of them."
        )
    if maximum <= 1:
        raise ValueError(
            f"max_loss_scaling_factor must be greater than one. It is {maximum}. Pass a larger max_loss_scaling_factor."
        )
    loss_scaling.check_room(initial, increase, maximum)
    loss_scaling.check_ratio(ratio_threshold)


class AutomaticLossScalingOptimizer(loss_scaling.LossScaling, IpuOptimizer):
    """Scales the loss so that small gradients do not vanish in float16, and finds the factor automatically.

    Args:
        wrapped_optimizer: a `tf.compat.v1.train.Optimizer`; it gets unscaled gradients.
        initial_loss_scaling_factor: the initial factor.
        update_frequency: updates between two changes of the factor.
        increase_factor: the factor is multiplied by it if gradients are small.
        decrease_factor: the factor is multiplied by it if too many gradients are large.
        max_loss_scaling_factor: the factor stays below.
        accumulate_statistics_over_update_period: whether all gradients since the last change count, or the last ones.
        ratio_threshold: the largest allowed share of large gradients.
        name: the name of the operations.

    Raises:
        ValueError: a number is out of range, or a Keras optimizer is given.

    Source: `tensorflow.python.ipu.optimizers.automatic_loss_scaling_optimizer.AutomaticLossScalingOptimizer`.

    Example:
        >>> with tf.Graph().as_default():
        ...     weight = tf.compat.v1.get_variable("w", initializer=2.0)
        ...     optimizer = AutomaticLossScalingOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1))
        ...     train_op = optimizer.minimize(tf.square(weight))
    """

    def __init__(
        self,
        wrapped_optimizer: Any,
        initial_loss_scaling_factor: float = 1.0,
        update_frequency: int = 8,
        increase_factor: float = 2.0,
        decrease_factor: float = 0.5,
        max_loss_scaling_factor: float = 32768,
        accumulate_statistics_over_update_period: bool = True,
        ratio_threshold: float = 10e-6,
        name: str = "AutomaticLossScalingOptimizer",
    ) -> None:
        super().__init__(wrapped_optimizer, name=name)
        check_factors(
            initial_loss_scaling_factor,
            update_frequency,
            increase_factor,
            decrease_factor,
            max_loss_scaling_factor,
            ratio_threshold,
        )
        self.initial_loss_scaling_factor = initial_loss_scaling_factor
        self.update_frequency = update_frequency
        self.increase_factor = increase_factor
        self.decrease_factor = decrease_factor
        self.max_loss_scaling_factor = max_loss_scaling_factor
        self.accumulate_statistics_over_update_period = accumulate_statistics_over_update_period
        self.ratio_threshold = ratio_threshold
        self._state = loss_scaling.LossScaleState(initial_loss_scaling_factor)

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        """Gradients of the scaled loss; see `IpuOptimizer.compute_gradients`."""
        factor = math_ops.cast(self._state.factor.read_value(), loss.dtype)
        return self._opt.compute_gradients(loss * factor, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """Applies gradients of the scaled loss; see `IpuOptimizer.apply_gradients`."""
        pairs = list(grads_and_vars)
        factor = self._state.factor.read_value()
        applied = self._opt.apply_gradients(
            [(loss_scaling.unscale_gradient(g, factor), v) for g, v in pairs], global_step, name
        )
        with ops.control_dependencies([] if applied is None else [applied]):
            return control_flow_ops.group(*self._state.advance(self._rules(), [gradient for gradient, _ in pairs]))
