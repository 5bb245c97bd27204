"""`tensorflow.python.ipu.keras.optimizers.gradient_accumulation_optimizer`: accumulates gradients before an update."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.frontend.keras.optimizers import gradient_accumulation_optimizer as keras_optimizers

_REFUSED = ((2, 3), (3, 0))


class GradientAccumulationOptimizer(keras_optimizers.GradientAccumulationOptimizer):
    """The one of `keras.ipu.optimizers` under an older name, which SDK 2.3 to 3.0 have and refuse to make.

    Args:
        *args: see `keras.ipu.optimizers.GradientAccumulationOptimizer`.
        **kwargs: as above.

    Raises:
        NotImplementedError: an SDK from 2.3 to 3.0 is emulated.

    Source: `tensorflow.python.ipu.keras.optimizers.gradient_accumulation_optimizer.GradientAccumulationOptimizer`.

    Example:
        >>> optimizer = GradientAccumulationOptimizer(tf.keras.optimizers.SGD(0.1), 8)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        first, last = _REFUSED
        if first <= sdk.current() <= last:
            raise NotImplementedError(
                "Cannot use v2 optimizer. Have to use the model's set_gradient_accumulation_options() instead: SDK "
                f"{sdk.current()} accumulates gradients of Keras models in no other way. Pass a Keras optimizer to "
                "`compile`, and call set_gradient_accumulation_options() on the model."
            )
        super().__init__(*args, **kwargs)
