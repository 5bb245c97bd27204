"""Every argument of a call is read, noted as one that changes nothing, or listed here with the reason.

An argument is read if its value goes somewhere: not only into the text of an error, a condition that refuses it, or a
check. An attribute that a constructor keeps is read if something besides `get_config` looks at it.
"""

import ast
import functools

import pytest
from checkout import ROOT
from syntax_trees import trees

from tf_ipu_shim.configuration.arguments import CALLS
from tf_ipu_shim.machine.environment.effects import RECORDED

pytestmark = pytest.mark.without_tensorflow

PACKAGE = ROOT / "tf_ipu_shim"
ROOMS = ("api", "configuration", "frontend", "legacy")  # `legacy.names` has signatures of others
NOTE = "note_arguments"
CHECKS = ("check", "refuse")

_PHASE = "Keras says in which phase it is; the layer does the same in both"
_KERAS = "Keras hands it to every layer"
_HOOK = "TensorFlow hands it to every session hook"
_STRATEGY = "TensorFlow's strategies have methods of this signature; there is one device"
_REFUSED = "whatever would change something is refused"
_SLOTS = "for optimizers of the script's own that are derived from this one"
_HELPER = "other forms of this method need it"
_DECODER = "a decoder hands it to every helper"
NOT_READ = {
    (
        "frontend.ops.float8.f8_ops",
        "QuarterTensor.__tf_unflatten__",
        "metadata",
    ): "TensorFlow's, which hands over what it got",
    ("api.addons.saved_model_tool", "ConverterPipeline.__init__", "signatrue_key"): "errors name it",
    ("api.addons.saved_model_tool", "PipelineConfLoader.configuration_file", "graph_def"): _HELPER,
    ("api.addons.saved_model_tool", "PipelineConfLoader.configuration_file", "signature_def"): _HELPER,
    ("api.addons.saved_model_tool", "validate_pipeline_cfg", "kwargs"): "it checks, and does nothing else",
    **{
        ("api.addons.keras.layers", f"{layer}.call", "kwargs"): _KERAS
        for layer in (
            "AssumeEqualAcrossReplicas",
            "CTCLoss",
            "CTCInferenceLayer",
            "CTCPredictionsLayer",
            "SerialDense",
            "ConvertToF8",
            "ConvertFromF8",
            "RecomputationCheckpoint",
        )
    },
    **{
        ("api.addons.keras.layers", f"{layer}.call", "training"): _PHASE
        for layer in ("Embedding", "GroupNormalization", "LayerNormalization")
    },
    ("api.addons.keras.layers", "Embedding.compute_mask", "mask"): _KERAS,
    **{
        ("api.addons.keras.optimizers", f"{kind}IpuOptimizer._resource_apply_dense", "apply_state"): "Keras' own cache"
        for kind in ("Adam", "LAMB", "SGD")
    },
    ("api.addons.keras.optimizers", "IpuOptimizerBase.get_slot_dtype", "slot_name"): _HELPER,
    ("api.addons.keras.optimizers", "SGDIpuOptimizer.get_slot_dtype", "slot_name"): "there is one kind of slot",
    ("api.gcipuinfo", "gcipuinfo.__init__", "discoveryMode"): "a simulated system has one partition",
    ("api.pva", "openReport", "debug_path"): "a profile has the user's lines in itself",
    ("api.horovod", "BroadcastGlobalVariablesHook.after_create_session", "coord"): _HOOK,
    ("api.horovod.tensorflow.functions", "allgather_object", "session"): "it is done at once, on the host",
    **{
        ("api.horovod.tensorflow.keras", call, argument): "Keras hands it to every callback"
        for call, argument in (
            ("BroadcastGlobalVariablesCallback.on_batch_end", "batch"),
            ("BroadcastGlobalVariablesCallback.on_batch_end", "logs"),
            ("MetricAverageCallback.on_epoch_end", "epoch"),
        )
    },
    ("api.ipu.dataset_extractor", "export_variables", "metadata"): _REFUSED,
    (
        "api.ipu.test_utils.report_helper",
        "ReportJSON.assert_pipeline_stages_on_expected_ipu",
        "tile_per_ipu",
    ): "the event tells IPUs, not tiles",
    ("api.ipu.dataset_extractor", "import_variables", "strict"): "it says what is refused",
    ("api.ipu.distributed", "HorovodBasics.init", "comm"): _REFUSED,
    ("api.ipu.ipu_session_run_hooks", "IPULoggingTensorHook.after_run", "run_values"): _HOOK,
    ("legacy.old_keras", "PipelineSequentialMethods._make_staged_model", "infeed"): _HELPER,
    (
        "frontend.keras.optimizers",
        "_ParameterUnscalingALSOptimizer.from_config",
        "custom_objects",
    ): "Keras hands it over",
    (
        "api.poplar.ops.gen_poprand_ops",
        "ipu_dropout_with_seed_and_reference",
        "reference",
    ): "a mask follows from its seed alone",
    ("api.op_modules", "wrappers", "module"): "for the text of an error",
    **{
        ("legacy.utilities", transform, name): _HELPER
        for transform, names in (
            ("_strip_unused", ["options"]),
            ("_fold_constants", ["options"]),
            ("_sort_by_execution_order", ["fed", "fetched", "options"]),
        )
        for name in names
    },
    ("legacy.contrib.seq2seq", "LuongAttention.__init__", "name"): "TensorFlow 1.15 does nothing with it either",
    **{
        ("legacy.contrib.seq2seq", f"{attention}Attention.__call__", "state"): _HELPER
        for attention in ("Luong", "Bahdanau")
    },
    **{
        ("legacy.contrib.seq2seq", method, argument): _DECODER
        for method, arguments in (
            ("BasicDecoder.initialize", "name"),
            ("TrainingHelper.sample", "time state"),
            ("TrainingHelper.next_inputs", "outputs sample_ids"),
            ("ScheduledEmbeddingTrainingHelper.sample", "time state"),
            *((f"{helper}.initialize", "name") for helper in ("GreedyEmbeddingHelper", "InferenceHelper")),
            *(
                (f"{helper}.sample", "time state name")
                for helper in ("GreedyEmbeddingHelper", "SampleEmbeddingHelper", "InferenceHelper")
            ),
            *(
                (f"{helper}.next_inputs", "time outputs name")
                for helper in ("GreedyEmbeddingHelper", "InferenceHelper")
            ),
        )
        for argument in arguments.split()
    },
    ("frontend.ops.embeddings.embedding_ids", "lookup_trainable", "optimizer"): _REFUSED,
    ("frontend.ops.embeddings.embedding_ids", "_add_rows", "slots"): _HELPER,
    ("legacy.estimators", "IPUEstimatorBase._call_model_fn", "config"): "the estimator has it itself",
    ("legacy.estimators", "Feeds.after_create_session", "coord"): _HOOK,
    ("legacy.estimators", "StopAtStep.after_create_session", "coord"): _HOOK,
    ("legacy.estimators", "StopAtStep.before_run", "run_context"): _HOOK,
    ("legacy.estimators", "StepRestorer.after_create_session", "coord"): _HOOK,
    **{
        ("legacy.estimators", "IPUPipelineEstimator.__init__.accepted", name): "TensorFlow asks for its name"
        for name in ("features", "labels", "params", "config")
    },
    **{
        ("frontend.gradients", "GradientCaptureContext.__exit__", name): "exceptions go on as they are"
        for name in ("typ", "value", "traceback")
    },
    ("frontend.keras", "KerasExtensionBase._deserialize_from_config_supported", "config"): "all are read back",
    ("frontend.keras", "KerasExtensionBase.evaluate", "kwargs"): _REFUSED,
    (
        "frontend.strategies.delegation",
        "delete_extension",
        "base",
    ): "it only has to be the extension's, or that is refused",
    (
        "frontend.strategies.delegation",
        "register_extension",
        "base",
    ): "it only has to be the extension's, or that is refused",
    **{
        ("legacy.keras_2_6.methods", method, "inputs"): "Keras 2.6 took it and did nothing with it"
        for method in ("_with_inputs.add_update", "_get_updates_for", "_get_losses_for")
    },
    ("legacy.keras_2_6.mixed_precision", "_policy.init", "loss_scale"): _REFUSED,
    ("frontend.keras", "KerasExtensionBase._accumulates_outfeed", "mode"): _HELPER,
    ("frontend.keras", "KerasExtensionBase._stages_need_trace", "mode"): _HELPER,
    ("frontend.keras", "KerasExtensionBase._result_unpacker", "mode"): _HELPER,
    ("frontend.keras", "NetworkExtension._make_staged_model", "infeed"): _HELPER,
    ("frontend.keras", "SequentialExtension._make_staged_model", "infeed"): _HELPER,
    ("frontend.keras", "PollingThreadPredict.postprocess", "num_samples_processed"): _HELPER,
    ("frontend.layers", "Dense._converted", "dtype"): "Keras asks initializers so; the bits have one type",
    ("frontend.layers", "Dense._converted", "kwargs"): "Keras asks initializers so; the bits have one type",
    ("frontend.validation", "three_state", "name"): "for the text of an error",
    ("legacy.old_keras", "chosen_count", "name"): "for the text of an error",
    **{("legacy.old_keras", f"OldModel.{call}", "kwargs"): _REFUSED for call in ("fit", "evaluate", "predict")},
    ("legacy.old_keras", "OldModel.compute_loss", "x"): "Keras hands it over; the loss is one of outputs",
    ("legacy.old_keras", "with_targets", "owner"): "for the text of an error",
    ("legacy.old_keras", "inputs_only", "owner"): "for the text of an error",
    ("legacy.old_keras", "inputs_only", "inputs"): _HELPER,
    (
        "legacy.old_keras",
        "TensorFlow1Optimizer.apply_gradients",
        "args",
    ): "Keras' own, of which TensorFlow 1 has none",
    ("legacy.old_keras", "TensorFlow1Optimizer.apply_gradients", "kwargs"): "as above",
    ("frontend.ops", "round_to_format", "sr_density"): _REFUSED,
    ("frontend.ops", "HostEmbeddingOptimizerSpec.create_slot_variables", "embedding_tensor"): _SLOTS,
    ("frontend.ops", "HostEmbeddingOptimizerSpec.create_slot_variables", "name"): _SLOTS,
    ("frontend.ops", "HostEmbeddingOptimizerSpec.create_register_instruction", "slot_vars"): _SLOTS,
    ("frontend.ops", "HostEmbeddingOptimizerSpec.create_register_instruction", "name"): _SLOTS,
    ("frontend.ops", "HostEmbeddingOptimizerSpec.create_deregister_instruction", "embedding_tensor"): _SLOTS,
    ("frontend.ops", "HostEmbeddingOptimizerSpec.create_deregister_instruction", "slot_vars"): _SLOTS,
    ("frontend.ops", "HostEmbeddingOptimizerSpec.create_deregister_instruction", "name"): _SLOTS,
    (
        "frontend.ops",
        "HostEmbeddingOptimizerSpec.create_lookup_instruction",
        "partition_strategy",
    ): "the table notes it",
    ("frontend.ops", "HostEmbeddingOptimizerSpec._update", "slots"): _SLOTS,
    ("frontend.ops", "HostEmbeddingOptimizerSpec._update", "replicas"): _SLOTS,
    ("frontend.ops", "HostEmbedding.register", "session"): "a session that is missing is an error",
    ("frontend.serving", "pass_tensors", "source"): "for the text of an error",
    **{
        ("frontend.strategies", f"DeviceExtended.{method}", name): _STRATEGY
        for method, names in {
            "_update_non_slot": ("colocate_with",),
            "_reduce_to": ("destinations", "options"),
            "_gather_to_implementation": ("destinations", "axis", "options"),
            "_broadcast_to": ("destinations",),
            "_make_input_fn_iterator": ("replication_mode",),
        }.items()
        for name in names
    },
    ("frontend.strategies", "ClusterExtended._initialize_local_devices", "cluster_resolver"): _STRATEGY,
    ("frontend.strategies", "ClusterExtended._input_workers_with_options", "options"): _STRATEGY,
    ("frontend.strategies", "SingleDevice.non_slot_devices", "var_list"): _STRATEGY,
    ("frontend.strategies", "ClusterExtended._broadcast_to", "destinations"): _STRATEGY,
    ("frontend.strategies", "ProcessExtended._reduce_to", "destinations"): _STRATEGY,
    ("frontend.strategies", "ProcessExtended._reduce_to", "options"): _STRATEGY,
    ("frontend.strategies", "ProcessExtended._batch_reduce_to", "options"): _STRATEGY,
    ("configuration.base", "_ConfigBase.__new__", "args"): "the constructor has them",
    ("configuration.base", "_ConfigBase.__new__", "kwargs"): "the constructor has them",
    ("legacy.config_functions", "create_ipu_config", "retain_control_dependencies"): _REFUSED,
    ("configuration.system", "get_ipu_config", "session"): "one that is given while ops run at once is an error",
    ("configuration.translate", "set_number", "path"): "for the text of an error",
    ("configuration.translate", "set_flags", "path"): "for the text of an error",
}


@functools.cache
def modules():
    """The trees of the rooms' modules by name; read by the first test that needs them, not when tests are collected."""
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): trees()[path]
        for room in ROOMS
        for path in sorted((PACKAGE / room).rglob("*.py"))
        if not path.is_relative_to(PACKAGE / "legacy" / "names")
    }


def functions(node, owners=()):
    """All functions of a module by their dotted names."""
    for child in ast.iter_child_nodes(node):
        inside = owners
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside = (*owners, child.name)
            if not isinstance(child, ast.ClassDef):
                yield ".".join(inside), child
        yield from functions(child, inside)


def called(node):
    """The last name of what an expression calls; empty where it is no call."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def only_refuses(node):
    return isinstance(node, ast.If) and not node.orelse and all(isinstance(step, ast.Raise) for step in node.body)


def names_read(node, is_private):
    """The names whose values go somewhere from a function; of a private one those that come up at all."""
    if not is_private:
        if isinstance(node, ast.Raise) or only_refuses(node):
            return
        if isinstance(node, ast.Expr) and called(node.value).lstrip("_").startswith(CHECKS):
            return
    if isinstance(node, ast.Expr) and called(node.value) == NOTE:
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from names_read(child, is_private)


def notes(function):
    """The arguments a function notes: the call's name in the table, the row's, and names in the value."""
    for node in ast.walk(function):
        if called(node) == NOTE and node.args and isinstance(node.args[0], ast.Constant):
            for keyword in node.keywords:
                names = [name.id for name in ast.walk(keyword.value) if isinstance(name, ast.Name)]
                yield node.args[0].value, keyword.arg, names


def parameters(function):
    """Parameters by name, with the nodes of their defaults."""
    listed = function.args.posonlyargs + function.args.args
    defaults = [None] * (len(listed) - len(function.args.defaults)) + function.args.defaults
    given = {one.arg: default for one, default in zip(listed, defaults)}
    given.update((one.arg, default) for one, default in zip(function.args.kwonlyargs, function.args.kw_defaults))
    further = [one.arg for one in (function.args.vararg, function.args.kwarg) if one]
    own = {**given, **dict.fromkeys(further)}
    return {name: default for name, default in own.items() if name not in ("self", "cls") and name[0] != "_"}


def computes(function):
    """Whether a function does something, other than to declare what others do, or to refuse."""
    decorators = " ".join(map(ast.unparse, function.decorator_list))
    steps = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if not steps or isinstance(steps[-1], (ast.Raise, ast.Pass)):
        return any(isinstance(node, ast.Return) for node in ast.walk(function))
    return not any(word in decorators for word in ("overload", "abstract", "not_supported"))


def unread_in(trees):
    """Arguments that nobody reads and nobody notes: (module, function, argument)."""
    for module, tree in trees.items():
        for name, function in functions(tree):
            last = name.rpartition(".")[2]
            if not computes(function) or last.lstrip("_").startswith(CHECKS):
                continue
            is_private = last.startswith("_") and not last.startswith("__")
            read = {found for step in function.body for found in names_read(step, is_private)}
            read.update(found for _, _, names in notes(function) for found in names)
            if "locals" not in read:  # which are all of them
                yield from ((module, name, one) for one in parameters(function) if one not in read)


@functools.cache
def unread():
    return list(unread_in(modules()))


def test_every_argument_is_read_or_noted():
    listed = {(name, argument): where for where, name, argument in NOT_READ}
    silent = [entry for entry in unread() if not entry[0].startswith(listed.get(entry[1:], "nowhere"))]
    assert silent == [], "note them with note_arguments and a row of configuration/arguments.csv, or say here why not"


@pytest.mark.parametrize("entry", NOT_READ, ids="-".join)
def test_what_is_listed_here_is_still_unread(entry):
    where, *what = entry
    assert any(module.startswith(where) and found == what for module, *found in unread())


def noted():
    """What functions note: (function, call's name in the table, row, default in the function)."""
    for module, tree in modules().items():
        for name, function in functions(tree):
            for call, row, names in notes(function):
                if row is not None:
                    yield f"{module}.{name}", call, row, parameters(function).get(names[-1]) if names else None


def test_what_is_noted_has_a_row_with_the_default_of_the_call():
    found = 0
    for function, call, row, default in noted():
        argument = CALLS[call].arguments[row]
        assert argument.effect == RECORDED, (function, row)
        if isinstance(default, ast.Constant) and default.value is not None:
            assert argument.default == default.value, (function, row)
        found += 1
    assert found > 100


def kept_and_never_read():
    """Attributes that a constructor sets to an argument and that only `get_config` looks at."""
    looked_at = {name for tree in trees().values() for name in _looked_at(tree)}
    for module, tree in modules().items():
        for name, function in functions(tree):
            if name.endswith(".__init__"):
                noted = {found for _, _, names in notes(function) for found in names}
                for node in ast.walk(function):
                    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                        (target, *_) = node.targets
                        argument = node.value.id
                        if (
                            isinstance(target, ast.Attribute)
                            and argument in parameters(function)
                            and argument not in noted
                            and target.attr not in looked_at
                        ):
                            yield module, name, argument


def _looked_at(node):
    if isinstance(node, ast.FunctionDef) and node.name in ("get_config", "__repr__"):
        return
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield node.attr
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value  # of getattr
    says = isinstance(node, ast.Call) and called(node).lstrip("_").startswith(CHECKS)  # the name of what it checks
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.Name, ast.expr_context)) and not (says and isinstance(child, ast.Constant)):
            yield from _looked_at(child)


OF_OTHERS = {
    ("AdamIpuOptimizer.__init__", "m_dtype"): "read by name of the slot",
    ("AdamIpuOptimizer.__init__", "v_dtype"): "read by name of the slot",
    ("AdamIpuOptimizer.__init__", "vhat_dtype"): "read by name of the slot",
    ("LAMBIpuOptimizer.__init__", "m_dtype"): "read by name of the slot",
    ("LAMBIpuOptimizer.__init__", "v_dtype"): "read by name of the slot",
    ("BufferDataset.__init__", "input_dataset"): "handed to the dataset, too",
    ("BufferDataset.__init__", "buffer_size"): "handed to the dataset, too",
    ("MapGradientOptimizerInvertedChaining.__init__", "gradient_mapping_function"): "a property",
    ("OptimizerFunctionOutput.__init__", "tape"): "a property",
    ("DeviceExtended.__init__", "ipu_device"): "TensorFlow's strategies read it",
    ("RuntimeContext.__init__", "executable_file"): "printed",
    ("RunConfig.__init__", "master"): "TensorFlow's estimators read it",
    ("EffectiveTransformer.__init__", "max_batch_size"): "checked, see its class",
}


def test_what_a_constructor_keeps_is_read():
    assert {(name, argument) for _, name, argument in kept_and_never_read()} == set(OF_OTHERS)
