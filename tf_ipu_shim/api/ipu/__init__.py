"""The drop-in `tensorflow.python.ipu`. Importing it loads the plugin and registers the IPU device.

Its modules are loaded when first asked for: a script that shards a model does not pay for Keras layers.
"""

from __future__ import annotations

import tf_ipu_shim.frontend  # noqa: F401  loads the plugin
from tf_ipu_shim.api.ipu import ops
from tf_ipu_shim.api.lazy_modules import lazy

# Names of Graphcore's `ipu` package, by the package here that defines them.
_MODULES = (
    "autoshard autoshard_cnn config data dataset_benchmark dataset_extractor distributed eager "
    "gradient_accumulation horovod ipu_compiler ipu_estimator ipu_infeed_queue ipu_multi_worker_strategy "
    "ipu_outfeed_queue ipu_pipeline_estimator ipu_run_config ipu_session_run_hooks ipu_strategy keras "
    "keras_extensions loops ops optimizers scopes serving sharding sharding_utils test_utils utils vertex_edsl"
).split()
_OPTIMIZERS = (
    "automatic_loss_scaling_optimizer cross_replica_optimizer gradient_accumulation_optimizer ipu_optimizer "
    "map_gradient_optimizer sharded_optimizer"
).split()
_PATHS = {
    **{name: name for name in _MODULES},
    **{name: f"ops.{name}" for name in ops.MODULES if name != "op_util"},
    "popfloat_cast_to_gfloat": "ops.experimental.popfloat_cast_to_gfloat",
    **{name: f"optimizers.{name}" for name in _OPTIMIZERS},
    "internal": "ops.internal_ops",  # before SDK 1.0, as are the next four
    "popnn_normalization": "ops.normalization_ops",
    "popnn_rnn": "ops.rnn_ops",
    "popops_cross_replica_sum": "ops.cross_replica_ops",
    "poprand": "ops.rand_ops",
    "layers": "keras.layers",
    "losses": "keras.losses",
}

__getattr__, __dir__ = lazy(__name__, _PATHS, {"ops.functional_ops": "function outlined_function"})
