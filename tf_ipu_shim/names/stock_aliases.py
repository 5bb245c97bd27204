"""Names of TensorFlow 1.15 to 2.6 that stock TensorFlow has moved since, as IPU-era scripts spell them.

Modules are found only where the installed TensorFlow has none of that name; attributes are added, when `ipu` is first
imported or the runner's script imports TensorFlow, only to modules that lack them. Every entry was checked to be
missing, and its target to exist, on tensorflow-cpu 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.names import (
    after_loading,
    collective_keys,
    dataset_statistics,
    dimensions,
    era,
    half_batch_norm,
    legacy_normalization,
    removed_functions,
    removed_names,
    yaml_loader,
)

# Packages whose modules have gone to several places; nothing else was in them.
EMPTY_PACKAGES = (
    "tensorflow.compiler.xla.experimental",
    "tensorflow.compiler.xla.experimental.xla_sharding",
    "tensorflow.python.training.tracking",
)

# Old module -> where it is now. Names below an entry map to the same names below its target.
MODULES = {
    "ipu_tensorflow_addons.util._dependency_versions": "tf_ipu_shim.names.dependency_versions",
    "tensorflow.tools.graph_transforms": "tf_ipu_shim.building.conversion.graph_transforms",
    "keras.saving.utils_v1": "tensorflow.python.saved_model.model_utils",
    "keras.mixed_precision.get_layer_policy": "tf_ipu_shim.building.keras.mixed_precision_of_the_time",
    "keras.mixed_precision.experimental": "tf_ipu_shim.building.keras.mixed_precision_of_the_time",
    "tensorflow.keras.mixed_precision.experimental": "tf_ipu_shim.building.keras.mixed_precision_of_the_time",
    "tensorflow.python.keras.applications": "tensorflow.keras.applications",
    "tensorflow.python.keras.datasets": "tensorflow.keras.datasets",
    "tensorflow.python.keras.preprocessing": "tensorflow.keras.preprocessing",
    "tensorflow.python.distribute.distribution_strategy_context": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.pywrap_tensorflow": "tensorflow.python.pywrap_tensorflow",
    "tensorflow_core": "tensorflow",  # what the modules of TensorFlow 1.15 and 2.0 called themselves
    "tensorflow.python.training.device_util": "tensorflow.python.distribute.device_util",
    "tensorflow.python.training.distribute": "tensorflow.python.distribute.distribute_lib",
    "tensorflow.python.training.tracking.tracking": "tensorflow.python.trackable.autotrackable",
    "tensorflow.python.training.tracking.util": "tensorflow.python.checkpoint.checkpoint",
    "tensorflow.python.training.tracking": "tensorflow.python.trackable",
    "tensorflow.compiler.xla.experimental.xla_sharding.xla_sharding": (
        "tensorflow.python.compiler.xla.experimental.xla_sharding"
    ),
}

# What `from tensorflow.python import NAME` gave, by the package below `tensorflow.python` that holds it.
_TOP_LEVEL = {
    "client": "device_lib session timeline",
    "data.ops": "dataset_ops iterator_ops",
    "eager": "backprop context def_function",
    "framework": "constant_op dtypes errors errors_impl function graph_util importer load_library meta_graph "
    "random_seed sparse_tensor tensor_shape tensor_spec tensor_util test_util",
    "ops": "array_ops check_ops clip_ops control_flow_ops custom_gradient data_flow_ops functional_ops gradients "
    "gradients_impl image_ops init_ops io_ops linalg_ops logging_ops lookup_ops math_ops metrics nn nn_ops "
    "random_ops resource_variable_ops rnn rnn_cell standard_ops state_ops string_ops variable_scope variables",
    "ops.losses": "losses losses_impl",
    "platform": "app flags gfile googletest resource_loader test tf_logging",
    "training": "adam gradient_descent momentum saver training_util",
    "util": "nest",
}

# Attributes that left these modules below `tensorflow.python`: name -> module that has it now, and its name there.
_ATTRIBUTES = {
    "data.ops.dataset_ops": {"Options": "data.ops.options.Options"},
    # Used by `tensorflow.python.keras`, whose `fit` fails without it.
    "distribute.input_lib": {"DistributedDatasetInterface": "types.distribute.DistributedDatasetInterface"},
    "eager.tape": {"stop_recording": "eager.record.stop_recording"},
    "framework.graph_util": {
        "convert_variables_to_constants": (
            "framework.convert_to_constants.convert_variables_to_constants_from_session_graph"
        ),
    },
    "framework.ops": {
        "IndexedSlices": "framework.indexed_slices.IndexedSlices",
        "IndexedSlicesValue": "framework.indexed_slices.IndexedSlicesValue",
        "Tensor": "framework.tensor.Tensor",
        "convert_to_tensor_v2": "framework.tensor_conversion.convert_to_tensor_v2",
        "convert_to_tensor_v2_with_dispatch": "framework.tensor_conversion.convert_to_tensor_v2_with_dispatch",
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
        "cond": "ops.cond.cond",
        "cond_v2": "ops.cond.cond_for_tf_v2",
        "switch_case": "ops.control_flow_switch_case.switch_case",
        "while_loop": "ops.while_loop.while_loop",
        "while_loop_v2": "ops.while_loop.while_loop_v2",
    },
    "ops.functional_ops": {"map_fn": "ops.map_fn.map_fn", "map_fn_v2": "ops.map_fn.map_fn_v2"},
    "ops.nn": {"dynamic_rnn": "ops.rnn.dynamic_rnn", "static_rnn": "ops.rnn.static_rnn"},
    "ops.variables": {"RefVariable": "ops.ref_variable.RefVariable", "VariableV1": "ops.variable_v1.VariableV1"},
    "pywrap_tensorflow": {"NewCheckpointReader": "training.py_checkpoint_reader.NewCheckpointReader"},
    "util.nest": {"is_sequence": "util.nest.is_nested"},
}


def find(fullname: str) -> str | None:
    """Where the module that scripts call `fullname` is today, or None when it is not in the tables.

    Example:
        >>> find("tensorflow.python.dtypes")
        'tensorflow.python.framework.dtypes'
    """
    package, _, name = fullname.rpartition(".")
    if package == "tensorflow.python":
        for holder, names in _TOP_LEVEL.items():
            if name in names.split():
                return f"tensorflow.python.{holder}.{name}"
    for old, new in MODULES.items():
        if fullname == old or fullname.startswith(old + "."):
            return new + fullname[len(old) :]
    return None


def install_with_tensorflow() -> None:
    """As `install_attributes`, before the script that is to be run imports TensorFlow: it may never import `ipu`."""
    if "tensorflow" in sys.modules:
        install_attributes()
    else:
        _with_tensorflow.install("names that have moved", why="the runner's script finds them from its first line on")


def install_attributes() -> None:
    """Makes the attributes that left TensorFlow's modules reachable there again, each looked up when asked for.

    TensorFlow is imported already: `import tensorflow` loads all modules of the table.
    """
    for module_name, attributes in _ATTRIBUTES.items():
        module = sys.modules.get(f"tensorflow.python.{module_name}")
        if module is not None and "__getattr__" not in module.__dict__:
            _add_getattr(module, attributes)

    if era.wanted():
        _add_python()
        _add_contrib()
        collective_keys.install()
        dataset_statistics.install()
        dimensions.install()
        half_batch_norm.install()
        legacy_normalization.install()
        removed_names.install()
        removed_functions.install()
        yaml_loader.install()


_with_tensorflow = after_loading.Finder("tensorflow".__eq__, lambda _: install_attributes())


def _add_python() -> None:
    """`tf.python`, which TensorFlow takes off its own module when that has been loaded."""
    tensorflow = sys.modules.get("tensorflow")
    if type(tensorflow) is types.ModuleType and "python" not in vars(tensorflow):
        patches.replace(tensorflow, "python", lambda _: sys.modules["tensorflow.python"], why="`tf.python.ipu`")


def _add_contrib() -> None:
    """`tf.contrib` for scripts of TensorFlow 1.15 whose `tf` is `tensorflow.compat.v1`, loaded when they ask for it."""
    compat = getattr(sys.modules.get("tensorflow"), "compat", None)
    v1 = getattr(compat, "v1", None)
    module = getattr(v1, "_tfmw_wrapped_module", v1)  # the one around it takes no attributes
    if module is not None and "__getattr__" not in vars(module):
        why = "`tf.contrib` of scripts that import compat.v1"
        patches.replace(module, "__getattr__", lambda _: _contrib_getattr(module), why)


def _contrib_getattr(module: types.ModuleType) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if name == "contrib":
            return importlib.import_module("tensorflow.contrib")
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    return __getattr__


def _add_getattr(module: types.ModuleType, attributes: dict[str, str]) -> None:
    why = f"names that scripts expect there and that have moved: {', '.join(attributes)}"
    patches.replace(module, "__getattr__", lambda _: _moved_getattr(module, attributes), why)


def _moved_getattr(module: types.ModuleType, attributes: dict[str, str]) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        if name not in attributes:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        holder, _, attribute = attributes[name].rpartition(".")
        return getattr(importlib.import_module(f"tensorflow.python.{holder}"), attribute)

    return __getattr__
