"""`tensorflow.python.ipu.utils`: configuration helpers, seeds, trace events, variables.

The configuration's own names are here too, as scripts spell them both ways.
"""

from __future__ import annotations

from tf_ipu_shim.api.ipu.config import (
    DeviceConnectionType,
    ExecutionProfileType,
    IPUConfig,
    KeyId,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    VerificationOptions,
    configure_ipu_system,
    get_ipu_config,
    reset_ipu_configuration,
    running_on_ipu_model,
)
from tf_ipu_shim.frontend.utilities.devices import (
    SyntheticDataCategory,
    get_num_of_ipus_in_device,
    reset_ipu_seed,
    use_synthetic_data_for,
)
from tf_ipu_shim.frontend.utilities.events import (
    extract_all_events,
    extract_all_strings_from_event_trace,
    extract_all_types_from_event_trace,
    extract_compile_reports,
    extract_execute_reports,
    extract_poplar_serialized_graphs,
)
from tf_ipu_shim.frontend.utilities.exports import export_dataset_to_file, export_inputs_to_file
from tf_ipu_shim.frontend.utilities.variables import move_variable_initialization_to_cpu
from tf_ipu_shim.legacy.config_functions.behaviour import (
    set_experimental_multi_replica_distribution_options,
    set_floating_point_behaviour_options,
    set_io_tile_options,
    set_norm_options,
    set_optimization_options,
    set_recomputation_options,
    set_serialization_options,
    set_transfer_options,
    set_verification_options,
)
from tf_ipu_shim.legacy.config_functions.create import create_ipu_config
from tf_ipu_shim.legacy.config_functions.libraries import (
    set_compilation_options,
    set_convolution_options,
    set_gcl_options,
    set_matmul_options,
    set_pooling_options,
    set_report_options,
)
from tf_ipu_shim.legacy.config_functions.selection import (
    auto_select_ipus,
    select_ipus,
    set_ipu_connection_type,
    set_ipu_model_options,
)

__all__ = [
    "DeviceConnectionType",
    "ExecutionProfileType",
    "IPUConfig",
    "KeyId",
    "MergeRemoteBuffersBehaviour",
    "SchedulingAlgorithm",
    "SelectionOrder",
    "SyntheticDataCategory",
    "VerificationOptions",
    "auto_select_ipus",
    "configure_ipu_system",
    "create_ipu_config",
    "export_dataset_to_file",
    "export_inputs_to_file",
    "extract_all_events",
    "extract_all_strings_from_event_trace",
    "extract_all_types_from_event_trace",
    "extract_compile_reports",
    "extract_execute_reports",
    "extract_poplar_serialized_graphs",
    "get_ipu_config",
    "get_num_of_ipus_in_device",
    "move_variable_initialization_to_cpu",
    "reset_ipu_configuration",
    "reset_ipu_seed",
    "running_on_ipu_model",
    "select_ipus",
    "set_compilation_options",
    "set_convolution_options",
    "set_experimental_multi_replica_distribution_options",
    "set_floating_point_behaviour_options",
    "set_gcl_options",
    "set_io_tile_options",
    "set_ipu_connection_type",
    "set_ipu_model_options",
    "set_matmul_options",
    "set_norm_options",
    "set_optimization_options",
    "set_pooling_options",
    "set_recomputation_options",
    "set_report_options",
    "set_serialization_options",
    "set_transfer_options",
    "set_verification_options",
    "use_synthetic_data_for",
]
