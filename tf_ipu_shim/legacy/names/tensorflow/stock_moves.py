"""Table of names that stock TensorFlow has moved since 1.15 to 2.6, with their new locations.

Every entry was checked to be missing, and its target to exist, on tensorflow-cpu 2.15.1 and 2.21.0.
"""

from __future__ import annotations

# Packages whose modules have gone to several places; nothing else was in them.
EMPTY_PACKAGES = (
    "tensorflow.python.keras.api",
    "tensorflow.python.keras.api._v1",
    "tensorflow.python.keras.api._v2",
    "tensorflow.python.keras.mixed_precision.experimental",
    "tensorflow.compiler.xla.experimental",
    "tensorflow.compiler.xla.experimental.xla_sharding",
    "tensorflow.python.training.tracking",
)

_MIXED_PRECISION = "tf_ipu_shim.legacy.keras_2_6.mixed_precision"

# Old module -> where it is now. Names below an entry map to the same names below its target.
MODULES = {
    "ipu_tensorflow_addons.util._dependency_versions": "tf_ipu_shim.names.dependency_versions",
    "tensorflow.tools.graph_transforms": "tf_ipu_shim.frontend.conversion.graph_transforms",
    "keras.saving.utils_v1": "tensorflow.python.saved_model.model_utils",
    "keras.mixed_precision.get_layer_policy": _MIXED_PRECISION,
    "keras.mixed_precision.experimental": _MIXED_PRECISION,
    "tensorflow.keras.mixed_precision.experimental": _MIXED_PRECISION,
    "tensorflow.python.keras.api._v1.keras": "tensorflow.compat.v1.keras",
    "tensorflow.python.keras.api._v2.keras": "tensorflow.keras",
    "tensorflow.python.keras.applications": "tensorflow.keras.applications",
    "tensorflow.python.keras.datasets": "tensorflow.keras.datasets",
    "tensorflow.python.keras.mixed_precision.experimental.get_layer_policy": _MIXED_PRECISION,
    "tensorflow.python.keras.mixed_precision.experimental.loss_scale_optimizer": _MIXED_PRECISION,
    "tensorflow.python.keras.mixed_precision.experimental.policy": _MIXED_PRECISION,
    "tensorflow.python.keras.preprocessing": "tensorflow.keras.preprocessing",
    "tensorflow.python.ops.losses.loss_reduction": "tensorflow.python.keras.utils.losses_utils",
    "tensorflow.python.distribute.distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.data.experimental.ops.distribute_options": "tensorflow.python.data.ops.options",
    "tensorflow.python.data.experimental.ops.optimization_options": "tensorflow.python.data.ops.options",
    "tensorflow.python.data.experimental.ops.threading_options": "tensorflow.python.data.ops.options",
    "tensorflow.pywrap_tensorflow": "tensorflow.python.pywrap_tensorflow",
    # Module names of TensorFlow 1.15 and 2.0; the API of version 1 is the compatible one.
    "tensorflow_core._api.v1": "tensorflow._api.v2.compat.v1",
    "tensorflow._api.v1": "tensorflow._api.v2.compat.v1",
    "tensorflow_core": "tensorflow",
    "tensorflow.python.training.device_util": "tensorflow.python.distribute.device_util",
    "tensorflow.python.training.distribute": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.training.distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.training.saving.checkpoint_options": "tensorflow.python.checkpoint.checkpoint_options",
    "tensorflow.python.training.saving.functional_saver": "tensorflow.python.checkpoint.functional_saver",
    "tensorflow.python.training.tracking.graph_view": "tensorflow.python.checkpoint.graph_view",
    "tensorflow.python.training.tracking.tracking": "tensorflow.python.trackable.autotrackable",
    "tensorflow.python.training.tracking.util": "tensorflow.python.checkpoint.checkpoint",
    "tensorflow.python.training.tracking": "tensorflow.python.trackable",
    "tensorflow.compiler.xla.experimental.xla_sharding.xla_sharding": (
        "tensorflow.python.compiler.xla.experimental.xla_sharding"
    ),
}

# What `tf.train.experimental` had, and that of `compat.v1` still has.
LOSS_SCALING = (
    "DynamicLossScale",
    "FixedLossScale",
    "LossScale",
    "disable_mixed_precision_graph_rewrite",
    "enable_mixed_precision_graph_rewrite",
)

# What `from tensorflow.python import NAME` gave, by the package below `tensorflow.python` that holds it.
TOP_LEVEL = {
    "client": "device_lib session timeline",
    "data.ops": "dataset_ops iterator_ops",
    "eager": "backprop context def_function",
    "framework": "constant_op dtypes errors errors_impl function graph_util importer load_library meta_graph "
    "random_seed sparse_tensor tensor_shape tensor_spec tensor_util test_util",
    "ops": "array_ops bincount_ops check_ops clip_ops cond_v2 control_flow_ops custom_gradient data_flow_ops "
    "functional_ops gradient_checker_v2 gradients gradients_impl image_ops init_ops io_ops linalg_ops logging_ops "
    "lookup_ops math_ops metrics nn nn_ops numpy_ops ragged random_ops resource_variable_ops rnn rnn_cell "
    "standard_ops state_ops stateful_random_ops string_ops variable_scope variables while_v2",
    "ops.distributions": "distributions",
    "ops.linalg": "linalg",
    "ops.losses": "losses losses_impl",
    "ops.signal": "signal",
    "platform": "app flags gfile googletest resource_loader test tf_logging",
    "training": "adam gradient_descent momentum saver training_util",
    "util": "_pywrap_utils nest tf_export",
}

# Attributes that left these modules below `tensorflow.python`: name -> module that has it now, and its name there.
ATTRIBUTES = {
    "autograph": {
        **{name: f"autograph.impl.api.{name}" for name in ("do_not_convert", "to_code", "to_graph")},
        **{name: f"autograph.lang.directives.{name}" for name in ("set_element_type", "set_loop_options")},
        **{name: f"autograph.utils.ag_logging.{name}" for name in ("set_verbosity", "trace")},
    },
    "data.ops.dataset_ops": {
        "Options": "data.ops.options.Options",
        "CacheDataset": "data.ops.cache_op.CacheDataset",
        "ConcatenateDataset": "data.ops.concatenate_op._ConcatenateDataset",
        "FilterDataset": "data.ops.filter_op._FilterDataset",
        "FlatMapDataset": "data.ops.flat_map_op._FlatMapDataset",
        "InterleaveDataset": "data.ops.interleave_op._InterleaveDataset",
        "MapDataset": "data.ops.map_op._MapDataset",
        "PaddedBatchDataset": "data.ops.padded_batch_op._PaddedBatchDataset",
        "ParallelInterleaveDataset": "data.ops.interleave_op._ParallelInterleaveDataset",
        "ParallelMapDataset": "data.ops.map_op._ParallelMapDataset",
        "RangeDataset": "data.ops.range_op._RangeDataset",
        "ShardDataset": "data.ops.shard_op._ShardDataset",
        "SkipDataset": "data.ops.skip_op._SkipDataset",
        "TakeDataset": "data.ops.take_op._TakeDataset",
        "TensorDataset": "data.ops.from_tensors_op._TensorDataset",
        "TensorSliceDataset": "data.ops.from_tensor_slices_op._TensorSliceDataset",
        "WindowDataset": "data.ops.window_op._WindowDataset",
        "ZipDataset": "data.ops.zip_op._ZipDataset",
    },
    # Used by `tensorflow.python.keras`, whose `fit` fails without it.
    "distribute.input_lib": {"DistributedDatasetInterface": "types.distribute.DistributedDatasetInterface"},
    "eager.def_function": {
        "experimental_functions_run_eagerly": (
            "eager.polymorphic_function.eager_function_run.experimental_functions_run_eagerly"
        ),
        "experimental_run_functions_eagerly": (
            "eager.polymorphic_function.eager_function_run.experimental_run_functions_eagerly"
        ),
    },
    "eager.function": {"FunctionSpec": "eager.polymorphic_function.function_type_utils.FunctionSpec"},
    "eager.tape": {
        "VariableWatcher": "eager.record.VariableWatcher",
        "could_possibly_record": "eager.record.could_possibly_record",
        "record_operation": "eager.record.record_operation",
        "should_record_backprop": "eager.record.should_record_backprop",
        "stop_recording": "eager.record.stop_recording",
    },
    "framework.config": {
        "get_virtual_device_configuration": "framework.config.get_logical_device_configuration",
        "set_virtual_device_configuration": "framework.config.set_logical_device_configuration",
    },
    "framework.graph_util": {
        "convert_variables_to_constants": (
            "framework.convert_to_constants.convert_variables_to_constants_from_session_graph"
        ),
    },
    "framework.graph_util_impl": {
        "convert_variables_to_constants": (
            "framework.convert_to_constants.convert_variables_to_constants_from_session_graph"
        ),
    },
    "framework.ops": {
        "IndexedSlices": "framework.indexed_slices.IndexedSlices",
        "IndexedSlicesValue": "framework.indexed_slices.IndexedSlicesValue",
        "Tensor": "framework.tensor.Tensor",
        "convert_n_to_tensor_or_indexed_slices": "framework.indexed_slices.convert_n_to_tensor_or_indexed_slices",
        "convert_to_tensor_or_indexed_slices": "framework.indexed_slices.convert_to_tensor_or_indexed_slices",
        "convert_to_tensor_v1": "framework.tensor_conversion.convert_to_tensor_v1",
        "convert_to_tensor_v1_with_dispatch": "framework.tensor_conversion.convert_to_tensor_v1_with_dispatch",
        "convert_to_tensor_v2": "framework.tensor_conversion.convert_to_tensor_v2",
        "convert_to_tensor_v2_with_dispatch": "framework.tensor_conversion.convert_to_tensor_v2_with_dispatch",
        "disable_tensor_equality": "framework.tensor.disable_tensor_equality",
        "enable_tensor_equality": "framework.tensor.enable_tensor_equality",
        "internal_convert_n_to_tensor_or_indexed_slices": (
            "framework.indexed_slices.internal_convert_n_to_tensor_or_indexed_slices"
        ),
        "internal_convert_to_tensor_or_indexed_slices": (
            "framework.indexed_slices.internal_convert_to_tensor_or_indexed_slices"
        ),
        "register_tensor_conversion_function": (
            "framework.tensor_conversion_registry.register_tensor_conversion_function"
        ),
    },
    # The copy of Keras in TensorFlow has no part that downloads.
    "keras.utils": {"get_file": "keras.utils.data_utils.get_file"},
    "ops.array_ops": {"stack": "ops.array_ops_stack.stack", "unstack": "ops.array_ops_stack.unstack"},
    "ops.control_flow_ops": {
        "Assert": "ops.control_flow_assert.Assert",
        "case": "ops.control_flow_case.case",
        "case_v2": "ops.control_flow_case.case_v2",
        "cond": "ops.cond.cond",
        "cond_for_tf_v2": "ops.cond.cond_for_tf_v2",
        "cond_v2": "ops.cond.cond_for_tf_v2",
        "execute_fn_for_device": "ops.control_flow_switch_case.execute_fn_for_device",
        "switch_case": "ops.control_flow_switch_case.switch_case",
        "while_loop": "ops.while_loop.while_loop",
        "while_loop_v2": "ops.while_loop.while_loop_v2",
    },
    "ops.functional_ops": {"map_fn": "ops.map_fn.map_fn", "map_fn_v2": "ops.map_fn.map_fn_v2"},
    "ops.nn": {"dynamic_rnn": "ops.rnn.dynamic_rnn", "static_rnn": "ops.rnn.static_rnn"},
    "ops.nn_impl": {
        "compute_average_loss": "ops.nn_impl_distribute.compute_average_loss",
        "scale_regularization_loss": "ops.nn_impl_distribute.scale_regularization_loss",
    },
    "ops.random_ops": {"random_crop": "ops.random_crop_ops.random_crop"},
    "ops.variable_scope": {
        "default_variable_creator": "ops.ref_variable.default_variable_creator",
        "default_variable_creator_v2": "ops.resource_variable_ops.default_variable_creator_v2",
        "variable": "ops.variable_v1.VariableV1",
    },
    "ops.variables": {"RefVariable": "ops.ref_variable.RefVariable", "VariableV1": "ops.variable_v1.VariableV1"},
    "pywrap_tensorflow": {"NewCheckpointReader": "training.py_checkpoint_reader.NewCheckpointReader"},
    "saved_model.utils_impl": {
        name: f"saved_model.path_helpers.{name}"
        for name in ("get_or_create_variables_dir", "get_variables_dir", "get_variables_path", "get_assets_dir")
    },
    "trackable.autotrackable": {
        name: f"trackable.resource.{name}"
        for name in ("CapturableResource", "ResourceTracker", "TrackableResource", "resource_tracker_scope")
    },
    "util.nest": {"is_sequence": "util.nest.is_nested"},
}
