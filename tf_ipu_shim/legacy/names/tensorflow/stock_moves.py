"""Tables of modules and attributes that stock TensorFlow has moved since 1.15 to 2.6, with their new locations.

Every entry was checked to be missing, and its target to exist, on tensorflow-cpu 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from tf_ipu_shim import data_files

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

MODULES = {row["old"]: row["new"] for row in data_files.rows(__file__, "moved_modules.csv")}
"""Old module -> where it is now. Names below an entry map to the same names below its target."""

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

ATTRIBUTES: dict[str, dict[str, str]] = {}
"""Attributes that left modules below `tensorflow.python`: name -> module that has it now, and its name there."""
for _row in data_files.rows(__file__, "moved_attributes.csv"):
    ATTRIBUTES.setdefault(_row["module"], {})[_row["name"]] = _row["new"]
