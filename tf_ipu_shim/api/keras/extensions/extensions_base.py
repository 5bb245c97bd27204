"""`keras.ipu.extensions.extensions_base`: what all Keras models made in the scope of an `IPUStrategy` gain."""

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
