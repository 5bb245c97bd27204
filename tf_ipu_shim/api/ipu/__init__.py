"""The drop-in `tensorflow.python.ipu`. Importing it loads the plugin, so that TensorFlow has its IPU device.

Its modules are loaded when first asked for: a script that shards a model does not pay for Keras layers.
"""

from __future__ import annotations

import importlib
from typing import Any

import tf_ipu_shim.building  # noqa: F401  loads the plugin
from tf_ipu_shim import errors
from tf_ipu_shim.api.lazy_modules import refused

# What Graphcore's package gives out under `ipu`, by the package of ours that holds it.
_MODULES = {
    "": (
        "autoshard autoshard_cnn config data dataset_benchmark dataset_extractor distributed eager "
        "gradient_accumulation horovod ipu_compiler ipu_estimator ipu_infeed_queue ipu_multi_worker_strategy "
        "ipu_outfeed_queue ipu_pipeline_estimator ipu_run_config ipu_session_run_hooks ipu_strategy keras "
        "keras_extensions loops ops optimizers scopes serving sharding sharding_utils test_utils utils vertex_edsl"
    ),
    "ops": (
        "all_to_all_op all_to_all_op_grad application_compile_op control_flow_ops control_flow_ops_grad "
        "cross_replica_ops cross_replica_ops_grad custom_ops embedded_runtime embedding_ops embedding_ops_grad f8_ops "
        "functional_ops functional_ops_grad grad_util_ops grad_util_ops_grad image_ops internal_ops internal_ops_grad "
        "math_ops nn_ops nn_ops_grad normalization_ops normalization_ops_grad pipelining_ops pipelining_ops_grad "
        "rand_ops rand_ops_grad reduce_scatter_op replication_ops rnn_ops rnn_ops_grad slicing_ops slicing_ops_grad "
        "statistics_ops summary_ops within_replica_ops within_replica_ops_grad"
    ),
    "ops.experimental": "popfloat_cast_to_gfloat",
    "optimizers": (
        "automatic_loss_scaling_optimizer cross_replica_optimizer gradient_accumulation_optimizer ipu_optimizer "
        "map_gradient_optimizer sharded_optimizer"
    ),
    "keras": "layers losses",
}
_PATHS = {name: f"{package}.{name}".lstrip(".") for package, names in _MODULES.items() for name in names.split()}
_FUNCTIONS = {"function": "ops.functional_ops", "outlined_function": "ops.functional_ops"}


def __getattr__(name: str) -> Any:
    if name not in _PATHS and name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = importlib.import_module(f"{__name__}.{_PATHS.get(name, _FUNCTIONS.get(name))}")
    except errors.MissingModuleError as error:
        raise refused(error) from error
    if name in _FUNCTIONS:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PATHS})
