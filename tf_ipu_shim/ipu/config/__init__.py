"""`tensorflow.python.ipu.config`: how the IPU system is configured.

`enums`, `types`, `metadata`, `base` and `declared` are the machinery, `table` the options as data, `tree` the
configuration built from it, `translate` its protobuf and the checks across options, `system` what takes effect, and
`effects` what each option changes on a simulated system. The options need no TensorFlow; only `system` imports it.
"""

from __future__ import annotations

from tf_ipu_shim.ipu.config.base import _ConfigBase as _ConfigBase
from tf_ipu_shim.ipu.config.deprecation import deprecate_config_attribute, deprecate_config_attributes
from tf_ipu_shim.ipu.config.effects import effects
from tf_ipu_shim.ipu.config.enums import (
    DeviceConnectionType,
    ExecutionProfileType,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from tf_ipu_shim.ipu.config.metadata import AttributeMetadata
from tf_ipu_shim.ipu.config.system import (
    configure_ipu_system,
    get_ipu_config,
    reset_ipu_configuration,
    running_on_ipu_model,
)
from tf_ipu_shim.ipu.config.tree import IPUConfig
from tf_ipu_shim.ipu.config.verification import KeyId, VerificationOptions

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
