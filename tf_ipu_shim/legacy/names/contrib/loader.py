"""Loads `tensorflow.contrib` of TensorFlow 1.15, as far as published IPU scripts use it.

Most of what they take from it is in TensorFlow proper today: `TABLE` says where. `slim` is its own package,
`tf_slim`, which has the layers too; it is used where it is installed. Served in a process that uses `ipu`, or under the
runner. Checked on 2.15.1 and 2.21.0, which has no Estimator, and tf_slim 1.1.0.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import types
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.imports import import_callers
from tf_ipu_shim.legacy.names.contrib import contrib_ipu

NAME = "tensorflow.contrib"
_V1 = "tensorflow.compat.v1"
_XLA = "tensorflow.python.compiler.xla.xla"
_CHECKPOINTS = "tensorflow.python.training.checkpoint_utils"
_INITIALIZERS = "tf_ipu_shim.legacy.names.contrib.contrib_layers"
_SIGNATURES = "tf_ipu_shim.legacy.names.contrib.contrib_learn"
_SUMMARIES = "tensorflow.python.ops.summary_ops_v2"
_OPTIMIZERS = "tf_ipu_shim.legacy.contrib.contrib_lars"
_DECAYING = "tf_ipu_shim.legacy.contrib.contrib_weight_decay"
_DECAYING_NAMES = "AdamWOptimizer DecoupledWeightDecayExtension MomentumWOptimizer extend_with_decoupled_weight_decay"
_ADAMS = "tf_ipu_shim.legacy.contrib.contrib_adam"
_CELLS = "tf_ipu_shim.legacy.contrib.contrib_cells"
_TABLES = "tf_ipu_shim.legacy.contrib.contrib_tables"
_LOOKUP = {
    "tensorflow.python.ops.lookup_ops": "FastHashSpec HasherSpec IdTableWithHashBuckets InitializableLookupTableBase "
    "KeyValueTensorInitializer LookupInterface MutableHashTable StrongHashSpec TableInitializerBase "
    "TextFileIdTableInitializer TextFileIndex TextFileInitializer TextFileStringTableInitializer index_table_from_file "
    "index_to_string_table_from_file",
    _TABLES: "HashTable MutableDenseHashTable index_table_from_tensor index_to_string "
    "index_to_string_table_from_tensor string_to_index string_to_index_table_from_file "
    "string_to_index_table_from_tensor",
}
_VARIABLES = "tf_ipu_shim.legacy.names.contrib.contrib_variables"
_VARIABLES_NAMES = (
    "get_local_variables get_model_variables get_trainable_variables get_variables get_variables_by_name "
    "get_variables_by_suffix"
)
_SEQ2SEQ = "tf_ipu_shim.legacy.contrib.seq2seq"
_ATTENTION = {
    f"{_SEQ2SEQ}.attention": "AttentionMechanism BahdanauAttention LuongAttention hardmax",
    f"{_SEQ2SEQ}.attention_wrapper": "AttentionWrapper AttentionWrapperState",
}
_DECODER = {f"{_SEQ2SEQ}.decoders": "Decoder dynamic_decode"}
_BASIC_DECODER = {f"{_SEQ2SEQ}.decoders": "BasicDecoder BasicDecoderOutput"}
_HELPERS = {
    f"{_SEQ2SEQ}.helpers": "CustomHelper GreedyEmbeddingHelper Helper InferenceHelper SampleEmbeddingHelper "
    "ScheduledEmbeddingTrainingHelper TrainingHelper"
}
_SEQUENCE_LOSS = {f"{_SEQ2SEQ}.losses": "sequence_loss"}
_HPARAMS = {"tf_ipu_shim.legacy.names.contrib.contrib_training": "HParams"}
_METRICS = {
    "tf_ipu_shim.legacy.contrib.contrib_metrics": "accuracy streaming_accuracy streaming_false_negatives "
    "streaming_false_positives streaming_mean streaming_mean_absolute_error streaming_mean_squared_error "
    "streaming_precision streaming_recall streaming_root_mean_squared_error streaming_true_positives",
    f"{_V1}.math": "confusion_matrix",
}
_RNN_CELLS = {
    f"{_V1}.nn.rnn_cell": "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple "
    "MultiRNNCell RNNCell ResidualWrapper",
}
_PROJECTOR = {"tensorboard.plugins.projector": "EmbeddingInfo ProjectorConfig SpriteMetadata visualize_embeddings"}
# Replacements of modules that are not supported.
_INSTEAD = {
    "bayesflow": "Use the package tensorflow_probability.",
    "crf": "Use the package tensorflow_addons, or ipu.nn_ops.ctc_loss for sequences without alignment.",
    "cudnn_rnn": "cuDNN runs on GPUs only. Use ipu.rnn_ops.PopnnLSTM or PopnnGRU, or tf.compat.v1.nn.dynamic_rnn.",
    "distribute": "Use tf.distribute, or ipu.ipu_strategy.IPUStrategy.",
    "distributions": "Use tf.compat.v1.distributions, or the package tensorflow_probability.",
    "eager": "Use tf.compat.v1.enable_eager_execution() and tf.GradientTape.",
    "estimator": "Use tf.estimator, or ipu.ipu_estimator.IPUEstimator.",
    "image": "Use tf.image, or the package tensorflow_addons.",
    "losses": "Use tf.compat.v1.losses.",
    "mixed_precision": "Use ipu.optimizers.AutomaticLossScalingOptimizer, or scale the loss by a constant.",
    "nccl": "Use ipu.cross_replica_ops.",
    "predictor": "Use tf.compat.v1.saved_model.load.",
    "quantize": "Use ipu.f8_ops, or ipu.ops.experimental.popfloat_cast_to_gfloat.",
    "saved_model": "Use tf.compat.v1.saved_model.",
    "tensorrt": "TensorRT runs on GPUs only. Use ipu.serving to export a model.",
}
_TPU = "tensorflow_estimator.python.estimator.tpu"
# Packages that continue parts of it outside TensorFlow, by module below `tensorflow.contrib`.
SLIM = {"slim": "tf_slim", "layers": "tf_slim.layers", "framework": "tf_slim"}

# Module below `tensorflow.contrib` -> the names it has here, by the module that they are in today.
TABLE = {
    "cluster_resolver": {
        f"{_V1}.distribute.cluster_resolver": "ClusterResolver GCEClusterResolver KubernetesClusterResolver "
        "SimpleClusterResolver SlurmClusterResolver TFConfigClusterResolver TPUClusterResolver",
    },
    "compiler": {},
    "compiler.xla": {_XLA: "compile", "tensorflow.python.compiler.xla": "xla"},
    "data": {
        "tensorflow.data": "AUTOTUNE",
        f"{_V1}.data.experimental": "Counter CsvDataset Optional RandomDataset Reducer SqlDataset TFRecordWriter "
        "bucket_by_sequence_length choose_from_datasets copy_to_device dense_to_sparse_batch enumerate_dataset "
        "get_next_as_optional get_single_element group_by_reducer group_by_window ignore_errors "
        "make_batched_features_dataset make_csv_dataset make_saveable_from_iterator map_and_batch parallel_interleave "
        "parse_example_dataset "
        "prefetch_to_device rejection_resample sample_from_datasets scan shuffle_and_repeat unbatch unique",
    },
    "framework": {
        _V1: "is_tensor",
        f"{_V1}.train": "assert_global_step create_global_step get_global_step get_or_create_global_step",
        "tensorflow.python.ops.sort_ops": "argsort sort",
        _CHECKPOINTS: "init_from_checkpoint list_variables load_checkpoint load_variable",
        "tensorflow": "nest",
        _VARIABLES: _VARIABLES_NAMES,
    },
    "framework.python": {},
    "framework.python.ops": {_VARIABLES: _VARIABLES_NAMES},
    "framework.python.ops.variables": {_VARIABLES: _VARIABLES_NAMES},
    "framework.python.framework": {},
    "framework.python.framework.checkpoint_utils": {
        _CHECKPOINTS: "init_from_checkpoint list_variables load_checkpoint load_variable"
    },
    "layers": {
        _INITIALIZERS: "apply_regularization embed_sequence flatten l1_l2_regularizer l1_regularizer l2_regularizer "
        "one_hot_encoding sum_regularizer variance_scaling_initializer xavier_initializer xavier_initializer_conv2d",
    },
    "layers.python": {},
    "layers.python.layers": {
        _INITIALIZERS: "apply_regularization embed_sequence flatten l1_l2_regularizer l1_regularizer l2_regularizer "
        "one_hot_encoding sum_regularizer variance_scaling_initializer xavier_initializer xavier_initializer_conv2d",
    },
    "learn": {},
    "learn.python": {},
    "learn.python.learn": {},
    "learn.python.learn.estimators": {},
    "learn.python.learn.estimators.constants": {_SIGNATURES: "ProblemType"},
    "learn.python.learn.utils": {},
    "learn.python.learn.utils.saved_model_export_utils": {_SIGNATURES: "build_standardized_signature_def"},
    "lookup": _LOOKUP,
    "lookup.lookup_ops": _LOOKUP,
    "metrics": _METRICS,
    "opt": {
        _OPTIMIZERS: "LARSOptimizer",
        _DECAYING: _DECAYING_NAMES,
        _ADAMS: "LazyAdamOptimizer NadamOptimizer",
    },
    "opt.python": {},
    "opt.python.training": {},
    "opt.python.training.lars_optimizer": {_OPTIMIZERS: "LARSOptimizer"},
    "opt.python.training.lazy_adam_optimizer": {_ADAMS: "LazyAdamOptimizer"},
    "opt.python.training.nadam_optimizer": {_ADAMS: "NadamOptimizer"},
    "opt.python.training.weight_decay_optimizers": {_DECAYING: _DECAYING_NAMES},
    "rnn": {
        **_RNN_CELLS,
        f"{_V1}.nn": "static_bidirectional_rnn static_rnn static_state_saving_rnn",
        _CELLS: "LayerNormBasicLSTMCell",
    },
    "rnn.python": {},
    "rnn.python.ops": {},
    "rnn.python.ops.core_rnn_cell": _RNN_CELLS,
    "rnn.python.ops.rnn_cell": {_CELLS: "LayerNormBasicLSTMCell"},
    "seq2seq": {
        **_ATTENTION,
        f"{_SEQ2SEQ}.decoders": "BasicDecoder BasicDecoderOutput Decoder dynamic_decode",
        **_HELPERS,
        **_SEQUENCE_LOSS,
    },
    "seq2seq.python": {},
    "seq2seq.python.ops": {},
    "seq2seq.python.ops.attention_wrapper": _ATTENTION,
    "seq2seq.python.ops.basic_decoder": _BASIC_DECODER,
    "seq2seq.python.ops.decoder": _DECODER,
    "seq2seq.python.ops.helper": _HELPERS,
    "seq2seq.python.ops.loss": _SEQUENCE_LOSS,
    "summary": {
        "tf_ipu_shim.legacy.names.contrib.contrib_summary": "all_summary_ops",
        _SUMMARIES: "always_record_summaries audio create_file_writer create_summary_file_writer eval_dir flush "
        "generic graph histogram image import_event initialize never_record_summaries "
        "record_summaries_every_n_global_steps scalar should_record_summaries summary_writer_initializer_op",
    },
    "tensorboard": {},
    "tensorboard.plugins": {},
    "tensorboard.plugins.projector": _PROJECTOR,
    "training": _HPARAMS,
    "training.python": {},
    "training.python.training": {},
    "training.python.training.hparam": _HPARAMS,
    "tpu": {
        f"{_V1}.tpu": "CrossShardOptimizer cross_replica_sum",
        f"{_TPU}.tpu_config": "InputPipelineConfig RunConfig TPUConfig",
        f"{_TPU}.tpu_estimator": "TPUEstimator TPUEstimatorSpec",
    },
    "tpu.python": {},
    "tpu.python.tpu": {},
    "tpu.python.tpu.tpu_config": {f"{_TPU}.tpu_config": "InputPipelineConfig RunConfig TPUConfig"},
    "tpu.python.tpu.tpu_estimator": {f"{_TPU}.tpu_estimator": "TPUEstimator TPUEstimatorSpec"},
    "tpu.python.tpu.tpu_optimizer": {f"{_V1}.tpu": "CrossShardOptimizer"},
    "util": {_V1: "make_ndarray make_tensor_proto", "tensorflow.python.framework.tensor_util": "constant_value"},
}


class ContribModule(types.ModuleType):
    """A module of `tensorflow.contrib`.

    Args:
        fullname: the full name of the module.
        path: below `tensorflow.contrib`; `""` for the package itself.
    """

    def __init__(self, fullname: str, path: str):
        super().__init__(fullname, f"{fullname} as far as scripts for IPUs use it.")
        self.__path__: list[str] = []
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        below = f"{self._path}.{name}".strip(".")
        if below == "ipu":
            return importlib.import_module(contrib_ipu.NAME)
        place = places(self._path).get(name)
        if place is not None and _is_installed(place):
            return getattr(importlib.import_module(place), name)
        if below in TABLE or (below in SLIM and _is_installed(SLIM[below])):
            return importlib.import_module(f"{NAME}.{below}")
        if self._path in SLIM and _is_installed(SLIM[self._path]):
            module = importlib.import_module(SLIM[self._path])
            if hasattr(module, name):
                return getattr(module, name)
        message = absence(below)
        if import_callers.is_import_from(sys._getframe(1)):
            raise errors.MissingModuleError(message, name=self.__name__)
        raise errors.MissingAttributeError(message)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *places(self._path)})


def absence(path: str) -> str:
    """Returns the error for a missing part of `tensorflow.contrib`, with a replacement.

    Args:
        path: the path of the name, below `tensorflow.contrib`.

    Example:
        >>> "pip install tf_slim" in absence("slim")
        True
    """
    module, _, name = path.rpartition(".")
    start = f"{NAME}.{path}: tensorflow.contrib is gone from TensorFlow, and "
    if (path in SLIM or module in SLIM) and not _is_installed("tf_slim"):
        return f"{start}its layers and slim are a separate package: pip install tf_slim"
    place = places(module).get(name, "").partition(".")[0]
    if place == "tensorboard" and not _is_installed(place):
        return f"{start}this part of it is in a separate package: pip install tensorboard"
    instead = _INSTEAD.get(path.partition(".")[0])
    if instead:
        return f"{start}this part of it is not supported. {instead}"
    if places(module).get(name, "").startswith(_TPU):
        return f"{start}Estimator with it from 2.16 on: install TensorFlow 2.15 (Python 3.10 or 3.11)."
    have = sorted({*places(module), *(module_name for module_name in TABLE if "." not in module_name and not module)})
    advice = f"{f'{NAME}.{module}'.strip('.')} has {', '.join(have)}." if have else "Use tf.compat.v1."
    return f"{start}of it only what published scripts for IPUs use is here (tf_ipu_shim/legacy/names/contrib). {advice}"


def _is_installed(module: str) -> bool:
    """Returns whether a module's package is installed: Estimator and `tf_slim` may not be."""
    return importlib.util.find_spec(module.partition(".")[0]) is not None


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return ContribModule(spec.name, spec.name[len(NAME) + 1 :])

    def exec_module(self, module: types.ModuleType) -> None:
        return None


@functools.cache
def places(path: str) -> dict[str, str]:
    """Returns each name of a module, and the module that has it today.

    Args:
        path: the path of the module, below `tensorflow.contrib`.

    Example:
        >>> places("compiler.xla")
        {'compile': 'tensorflow.python.compiler.xla.xla', 'xla': 'tensorflow.python.compiler.xla'}
    """
    return {name: place for place, names in TABLE.get(path, {}).items() for name in names.split()}


def moved(fullname: str) -> str | None:
    """Returns the module that one of `tensorflow.contrib` is today as a whole, if it is installed.

    Args:
        fullname: the full name of the module.
    """
    slim = f"{NAME}.slim"
    if (fullname == slim or fullname.startswith(f"{slim}.")) and _is_installed(SLIM["slim"]):
        return SLIM["slim"] + fullname[len(slim) :]
    return None


def spec(fullname: str) -> ModuleSpec | None:
    """Returns how a module of `tensorflow.contrib` is loaded; None for one that is not in the table.

    Args:
        fullname: the full name of the module.
    """
    if fullname != NAME and fullname[len(NAME) + 1 :] not in TABLE:
        return None
    return ModuleSpec(fullname, _Loader(), is_package=True)
