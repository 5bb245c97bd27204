"""`keras.ipu.extensions.extensions_base`: the base class of Keras models created in an `IPUStrategy` scope."""

from tf_ipu_shim.frontend.keras.models.extensions_base import (
    KerasExtensionBase,
    ReplicatedMetricReductionMethod,
    logged_steps_per_execution_warning,
)

__all__ = [
    "KerasExtensionBase",
    "ReplicatedMetricReductionMethod",
    "logged_steps_per_execution_warning",
]
