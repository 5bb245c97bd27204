"""`tensorflow.python.ipu.keras.optimizers.automatic_loss_scaling_optimizer`: the `ALSOptimizer` of SDK 2.2 to 2.6."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.gradients import loss_scaling
from tf_ipu_shim.frontend.keras.optimizers.als_optimizer import ALSOptimizer
from tf_ipu_shim.frontend.keras.optimizers.optimizer_v2_wrapper import _OptimizerV2Wrapper
from tf_ipu_shim.legacy.tensorflow1.automatic_loss_scaling_optimizer import check_factors

_OPTIONS = (
    "initial_loss_scaling_factor update_frequency increase_factor decrease_factor max_loss_scaling_factor "
    "accumulate_statistics_over_update_period ratio_threshold"
).split()


class AutomaticLossScalingOptimizer(ALSOptimizer):
    """Scales the loss so that small gradients do not vanish in float16; the first form of `ALSOptimizer`.

    Args:
        opt: a Keras 2 optimizer; it gets unscaled gradients.
        initial_loss_scaling_factor: the initial factor.
        update_frequency: updates between two changes of the factor.
        increase_factor: the factor is multiplied by it if gradients are small.
        decrease_factor: the factor is multiplied by it if too many gradients are large.
        max_loss_scaling_factor: the factor stays below.
        accumulate_statistics_over_update_period: whether all gradients since the last change count, or the last ones.
        ratio_threshold: the largest allowed share of large gradients.
        name: the name of the operations.

    Raises:
        TypeError: `opt` is not a Keras 2 optimizer.
        ValueError: a number is out of range, or two arguments conflict.

    Source: `tensorflow.python.ipu.keras.optimizers.automatic_loss_scaling_optimizer.AutomaticLossScalingOptimizer`.

    Example:
        >>> optimizer = AutomaticLossScalingOptimizer(tf.keras.optimizers.SGD(0.1), update_frequency=4)
    """

    def __init__(
        self,
        opt: Any,
        initial_loss_scaling_factor: float = 1.0,
        update_frequency: int = 8,
        increase_factor: float = 2.0,
        decrease_factor: float = 0.5,
        max_loss_scaling_factor: float = 32768,
        accumulate_statistics_over_update_period: bool = True,
        ratio_threshold: float = 10e-6,
        name: str = "AutomaticLossScalingOptimizer",
    ) -> None:
        arguments = locals()
        _OptimizerV2Wrapper.__init__(self, opt, name=name)
        self._numbers = {option: arguments[option] for option in _OPTIONS}
        self._check()
        self.captured_grads_only = False
        self.lpf_alpha = 0.0
        self.histogram_bin_edge = loss_scaling.FIRST_FORM["edge"]
        self._state = loss_scaling.LossScaleState(initial_loss_scaling_factor)

    def _check(self, blamed: str = "decrease_factor") -> None:
        factors: list[Any] = [
            self._numbers[name] for name in _OPTIONS if name != "accumulate_statistics_over_update_period"
        ]
        check_factors(*factors, blamed)  # type: ignore[call-arg]

    def _form(self) -> dict[str, Any]:
        return {"lpf_alpha": self.lpf_alpha, **loss_scaling.FIRST_FORM}

    @property
    def clip_levels(self) -> Any:
        """The magnitude from which a gradient counts as large."""
        return tf.constant([self.histogram_bin_edge])

    @clip_levels.setter
    def clip_levels(self, _: Any) -> None:
        raise ValueError(
            "clip_levels is a read only property. It is the edge between the histogram's two bins. Set histogram_bins "
            "instead."
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return {**_OptimizerV2Wrapper.get_config(self), **self._numbers}


def _option(name: str) -> Any:
    def change(self: Any, value: Any) -> None:
        before = dict(self._numbers)
        self._numbers[name] = value
        try:
            self._check(name)
        except ValueError:
            self._numbers.update(before)
            raise

    return property(lambda self: self._numbers[name], change, doc=f"The `{name}` that it was given.")


for _name in _OPTIONS:
    setattr(AutomaticLossScalingOptimizer, _name, _option(_name))
