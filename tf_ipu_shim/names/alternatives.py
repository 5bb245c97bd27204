"""Reasons why a Graphcore name is not supported, and its alternative, for error messages.

By the beginning of the name, the longest first. `tests/names/test_alternatives.py` checks them.
"""

from __future__ import annotations

_CONVERTERS = (
    "it is a part of how Graphcore's converters are made. Use the converters of "
    "ipu_tensorflow_addons.saved_model_tool.converter, or the command ipu_saved_model_cli."
)
_PROFILED = (
    "it times a SavedModel's ops on IPUs to cut it into pipeline stages. Give the stages yourself, with "
    "manual_sharding; `tf-ipu fit script.py` says where a model's cycles go."
)
_CUT = (
    "it is a part of how Graphcore cuts a graph. Use tensorflow.python.ipu.autoshard.automatic_sharding, or mark ops "
    "with ipu.scopes.ipu_shard; `tf-ipu fit script.py` balances pipeline stages."
)
_PLANNER = (
    "it marks ops for Poplar's planner, or is a part of gradient accumulation. Leave the mark out, results do not "
    "depend on it; to accumulate, use an optimizer of ipu.optimizers."
)
_OPS = "it is an op that Graphcore's own functions make. Call the function of tensorflow.python.ipu that makes it."
_EXPRESSIONS = (
    "it is a part of an expression that Poplar compiles. Give custom_ops.codelet_expression_op a Python function of "
    "its arguments, in operators and TensorFlow's ops."
)
_STRATEGY = (
    "variables of such a strategy are IPUMirroredVariable or IPUSyncOnReadVariable here. Ask isinstance for these, and "
    "let the strategy's scope make them."
)
_AUTO_PIPELINE = (
    "it runs a Keras model layer by layer on IPUs to cut it into stages. `tf-ipu fit script.py` "
    "estimates that without, and prints the stage assignment to paste."
)
_READERS = (
    "it reads or writes files of Poplar's. Use ipu.dataset_extractor and ipu.dataset_benchmark, whose files "
    "tf_ipu_shim.TensorFile and stock TensorFlow read."
)

_PLUGIN = "tensorflow.compiler.plugin.poplar.ops."
_TOOL = "ipu_tensorflow_addons.saved_model_tool."
_WHY = {
    "ipu_tensorflow_addons.keras.experimental": _AUTO_PIPELINE,
    "ipu_tensorflow_addons.util": "it asks whether packages are installed. Ask importlib.util.find_spec(NAME).",
    _TOOL: _CONVERTERS,
    f"{_TOOL}converter.auto_pipeline": _PROFILED,
    f"{_TOOL}converter.autograph": _PROFILED,
    f"{_TOOL}converter.pipeconf_loader": _PROFILED,
    _PLUGIN: _OPS,
    f"{_PLUGIN}gen_dataset": _READERS,
    "tensorflow.python.ipu.sharding_utils": _CUT,
    "tensorflow.python.ipu.autoshard_cnn": _CUT,
    "tensorflow.python.ipu.ops.op_util": _PLANNER,
    "tensorflow.python.ipu.ops.custom_ops": _EXPRESSIONS,
    "tensorflow.python.ipu.vertex_edsl": _EXPRESSIONS,
    "tensorflow.python.ipu.distributed": _STRATEGY,
    "tensorflow.python.ipu.horovod": _STRATEGY,
    "tensorflow.python.ipu.ipu_multi_worker_strategy": _STRATEGY,
    "tensorflow.python.ipu.register_keras_extensions": "importing ipu does what it does. Leave its import out.",
}
# Names that a module of Graphcore's has because it imports them: where they are at home.
_AT_HOME = {
    "IPUConfig": "tensorflow.python.ipu.config",
    "IPUMultiWorkerStrategy": "tensorflow.python.ipu.ipu_multi_worker_strategy",
    "IPUMultiWorkerStrategyV1": "tensorflow.python.ipu.ipu_multi_worker_strategy",
    "all_gather": "tensorflow.python.ipu.ops.all_to_all_op",
    "estilib": "tensorflow.compat.v1, as estimator",
    "ipu_estimator": "tensorflow.python.ipu",
    "ipu_strategy": "tensorflow.python.ipu",
    "logged_steps_per_execution_warning": "tensorflow.python.ipu.keras.extensions.keras_extension_base",
    "puo": "keras.ipu.optimizers, as parameter_unscaling_optimizer",
    "sequence_slice": "tensorflow.python.ipu.ops.slicing_ops",
}


def reason_and_alternative(fullname: str) -> str:
    """Returns why a Graphcore name is not emulated and what to do, as the end of a sentence; empty if unknown.

    Example:
        >>> reason_and_alternative("tensorflow.python.ipu.ipu_run_config.IPUConfig")
        'it is imported there. Import it from tensorflow.python.ipu.config.'
    """
    home = _AT_HOME.get(fullname.rpartition(".")[2])
    if home is not None:
        return f"it is imported there. Import it from {home}."
    prefixes = [beginning for beginning in _WHY if fullname.startswith(beginning)]
    return _WHY[max(prefixes, key=len)] if prefixes else ""
