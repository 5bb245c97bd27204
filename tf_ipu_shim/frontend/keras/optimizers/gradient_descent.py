"""`keras.ipu.optimizers.gradient_descent`: gradient descent with automatic loss scaling."""

from __future__ import annotations

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.keras.optimizers.als_optimizer import OPTIONS, ALSDefaults
from tf_ipu_shim.frontend.keras.optimizers.parameter_unscaling_optimizer import _ParameterUnscalingALSOptimizer


class ALSOptimizerSGD(_ParameterUnscalingALSOptimizer):
    """Gradient descent with automatic loss scaling; an `ALSOptimizer` that makes its optimizer itself.

    Args:
        learning_rate: see Keras.
        momentum: share of the last step that is kept.
        initial_loss_scaling_factor: see `ALSOptimizer`, also for the arguments below.
        update_frequency: as above.
        increase_factor: as above.
        max_loss_scaling_factor: as above.
        accumulate_statistics_over_update_period: as above.
        ratio_threshold: as above.
        captured_grads_only: as above.
        lpf_alpha: as above.
        histogram_bin_edge: as above.
        name: the name of the operations.

    Raises:
        ValueError: a number is out of range, or two arguments conflict.

    Source: `keras.ipu.optimizers.gradient_descent.ALSOptimizerSGD`.

    Example:
        >>> with strategy.scope():
        ...     model = tf.keras.Sequential([tf.keras.layers.Dense(4)])
        ...     model.compile(ALSOptimizerSGD(0.01, initial_loss_scaling_factor=128), "mse")
    """

    def __init__(
        self,
        learning_rate: float = 0.01,
        momentum: float = 0.0,
        initial_loss_scaling_factor: float = ALSDefaults.initial_loss_scaling_factor,
        update_frequency: int = ALSDefaults.update_frequency,
        increase_factor: float = ALSDefaults.increase_factor,
        max_loss_scaling_factor: float = ALSDefaults.max_loss_scaling_factor,
        accumulate_statistics_over_update_period: bool = ALSDefaults.accumulate_statistics_over_update_period,
        ratio_threshold: float = ALSDefaults.ratio_threshold,
        captured_grads_only: bool = ALSDefaults.captured_grads_only,
        lpf_alpha: float = ALSDefaults.lpf_alpha,
        histogram_bin_edge: float = ALSDefaults.histogram_bin_edge,
        name: str = "ALSOptimizerSGD",
    ) -> None:
        arguments = locals()
        optimizer = keras2.public_module().optimizers.legacy.SGD(learning_rate, momentum)
        super().__init__(optimizer, name=name, **{option: arguments[option] for option in OPTIONS})
