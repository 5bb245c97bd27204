"""`tensorflow.python.ipu.config`: configuration of the IPU system."""

from __future__ import annotations

from tf_ipu_shim.configuration.base import _ConfigBase as _ConfigBase
from tf_ipu_shim.configuration.deprecation import deprecate_config_attribute, deprecate_config_attributes
from tf_ipu_shim.configuration.enums import (
    DeviceConnectionType,
    ExecutionProfileType,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from tf_ipu_shim.configuration.metadata import AttributeMetadata
from tf_ipu_shim.configuration.system import (
    configure_ipu_system,
    get_ipu_config,
    reset_ipu_configuration,
    running_on_ipu_model,
)
from tf_ipu_shim.configuration.tree import IPUConfig, effects
from tf_ipu_shim.configuration.verification import KeyId, VerificationOptions

__all__ = [
    "AttributeMetadata",
    "DeviceConnectionType",
    "ExecutionProfileType",
    "IPUConfig",
    "KeyId",
    "MergeRemoteBuffersBehaviour",
    "SchedulingAlgorithm",
    "SelectionOrder",
    "StochasticRoundingBehaviour",
    "VerificationOptions",
    "configure_ipu_system",
    "deprecate_config_attribute",
    "deprecate_config_attributes",
    "effects",
    "get_ipu_config",
    "reset_ipu_configuration",
    "running_on_ipu_model",
]
