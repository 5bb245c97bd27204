"""What is accepted and changes nothing is in the memory report, and once a process in the log."""

import contextlib
from enum import Enum

import numpy as np
import pytest
import tensorflow as tf
from option_runs import COMPILE_ONLY, keras_recurrent, norm, pipeline, recurrent
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue, loops, nn_ops, utils
from tf_ipu_shim.ipu.config import IPUConfig
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineStageOptions

from tf_ipu_shim import memory_report
from tf_ipu_shim.configuration import all_options, arguments, table
from tf_ipu_shim.configuration.all_options import POPLAR_FLAGS
from tf_ipu_shim.configuration.effects import effects_in
from tf_ipu_shim.configuration.verification import KeyId, VerificationOptions
from tf_ipu_shim.machine import flags
from tf_ipu_shim.machine.effects import RECORDED
from tf_ipu_shim.runtime import accepted, devices, log

v1 = tf.compat.v1
SECTIONS = all_options.sections()


RECORDED_OPTIONS = [option for option in table.OPTIONS if option.effect == RECORDED]
TOGETHER = {
    "io_tiles.place_ops_on_io_tiles": {"io_tiles.num_io_tiles": 8},
    "experimental.multi_replica_distribution.process_index": {
        "experimental.multi_replica_distribution.process_count": 2
    },
    "_profiling.profile_execution": {"_profiling.profiling": True},
}


def other(option, sdk):
    """A value that is not the default."""
    _, default = option.at(sdk)
    if isinstance(default, VerificationOptions):
        default.inputs = KeyId(1, 2)
        return default
    if isinstance(default, Enum):
        return next(member for member in type(default) if member is not default)
    if isinstance(default, bool):
        return not default
    if isinstance(default, (int, float)):
        return default + 1 if isinstance(default, int) else default / 2
    return {"some.option": "1"} if isinstance(default, dict) else "elsewhere"


@pytest.fixture
def logged(monkeypatch):
    lines = []
    monkeypatch.setattr(log, "info", lambda message, source=None: lines.append(message))
    accepted.forget()
    return lines


@pytest.mark.parametrize("option", RECORDED_OPTIONS, ids=lambda option: option.path)
def test_a_recorded_option_is_in_the_report_and_once_in_the_log(option, environment, logged):
    line = min(option.until, (3, 4))
    config = {**TOGETHER.get(option.path, {}), option.path: other(option, line)}
    environment(config, ipus=1, sdk=".".join(map(str, line)))
    assert dict(memory_report().without_effect)[option.path] == config[option.path]
    environment(config, ipus=1, sdk=".".join(map(str, line)))
    named = [text for text in logged if text.startswith("accepted without effect: ") and option.path in text]
    assert len(named) == 1


FLAGS = [entry.name for entry in SECTIONS[POPLAR_FLAGS] if entry.effect == RECORDED]


@pytest.mark.parametrize("name", FLAGS)
def test_a_recorded_flag_is_in_the_report_and_once_in_the_log(name, environment, logged):
    default = getattr(flags.PoplarFlags(), name, False)
    text = {bool: f"--{name}", int: f"--{name}=7", str: f"--{name}=/somewhere"}[type(default)]
    for _ in range(2):
        environment(flags=text, ipus=1)
    assert f"--{name}" in dict(memory_report().without_effect)
    assert len([line for line in logged if line == f"accepted without effect: --{name}"]) == 1


def test_engine_options_without_effect(environment, logged):
    environment(engine={"debug.trace": "true", "some.new": "1", "debug.allowOutOfMemory": "true"}, ipus=1)
    without = dict(memory_report().without_effect)
    assert (without["debug.trace"], without["some.new"]) == ("true", "1")
    assert "debug.allowOutOfMemory" not in without
    assert "accepted without effect: debug.trace, some.new" in logged


def test_engine_options_that_are_no_json_are_an_error(monkeypatch):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "debug.trace=true")
    with pytest.raises(ValueError, match="POPLAR_ENGINE_OPTIONS is 'debug.trace=true', which is not JSON"):
        IPUConfig().configure_ipu_system()
    assert devices.configured() is None


def test_options_of_the_old_functions_are_recorded(logged):
    options = utils.create_ipu_config(always_rearrange_copies_on_the_host=True)
    options = utils.set_norm_options(options, use_stable_statistics=True)
    options = utils.set_matmul_options(options, {"availableMemoryProportion": "0.1"})
    utils.configure_ipu_system(utils.auto_select_ipus(options, 1))
    assert dict(memory_report().without_effect) == {
        "experimental.always_rearrange_copies_on_the_host": True,
        "norms.use_stable_statistics": True,
        "matmuls.poplar_options": {"availableMemoryProportion": "0.1"},
    }
    assert sum("norms.use_stable_statistics" in line for line in logged) == 1


def test_keys_of_the_old_functions_are_recorded(logged):
    keys = utils.VerificationOptions()
    keys.inputs.key = 3
    options = utils.set_verification_options(utils.create_ipu_config(), keys)
    utils.configure_ipu_system(utils.auto_select_ipus(options, 1))
    assert [name for name, _ in memory_report().without_effect] == ["_verified_transfers.key_id_pairs"]


@pytest.mark.parametrize("sdk", ["2.1", "2.2", "2.3", "2.4", "3.4"])
def test_a_plain_protobuf_sets_nothing(sdk, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", sdk)
    assert effects_in(IPUConfig()._create_protobuf()) == []


def test_what_the_old_functions_set_by_themselves_is_not_listed():
    utils.configure_ipu_system(utils.auto_select_ipus(utils.create_ipu_config(), 1))
    assert memory_report().without_effect == ()


# Calls, with the arguments that are recorded.


def stage_options():
    return PipelineStageOptions(matmul_options={"availableMemoryProportion": "0.1"})


def keras_model():
    from tf_ipu_shim.ipu import ipu_strategy

    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        layers = tf.keras.layers if tf.__version__ < "2.16" else __import__("tf_keras").layers
        models = tf.keras if tf.__version__ < "2.16" else __import__("tf_keras")
        model = models.Sequential([layers.Dense(1, input_shape=(2,))])
        model.compile("sgd", "mse", steps_per_execution=2)
        yield model


def fitted(**options):
    for model in keras_model():
        model.fit(np.ones((4, 2), "f"), np.ones((4, 1), "f"), batch_size=2, verbose=0, **options)


def accumulated(**options):
    for model in keras_model():
        model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=2, **options)


def softmax(**options):
    return nn_ops.softmax(tf.ones([2, 2]), **options)


def optimizer(**options):
    from ipu_tensorflow_addons.keras.optimizers import SGDIpuOptimizer

    return SGDIpuOptimizer(**options)


def looped(**options):
    with tf.Graph().as_default():
        loops.repeat(2, lambda x: x + 1.0, [tf.constant(1.0)], **options)


def infeed(**options):
    with tf.Graph().as_default():
        ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(3), **options)


POPLAR = {"partialsType": "half"}
RECORDED_ARGUMENTS = {
    arguments.PIPELINE: (
        lambda **options: pipeline(2, 4, **options),
        {
            "recomputation_mode": pipelining_ops.RecomputationMode.RecomputeThenBackpropagate,
            "forward_propagation_stages_poplar_options": [stage_options()] * 2,
            "backward_propagation_stages_poplar_options": [stage_options()] * 2,
            "weight_update_poplar_options": stage_options(),
        },
    ),
    arguments.NORM: (norm, {"training": False, "reduction_axes": [0]}),
    **{
        call: (
            run,
            {
                "partials_dtype": tf.float16,
                "available_memory_proportion_fwd": 0.2,
                "available_memory_proportion_bwd": 0.3,
                "options": POPLAR,
                "options_bwd": POPLAR,
            },
        )
        for call, run in ((arguments.RNN, recurrent), (arguments.KERAS_RNN, keras_recurrent))
    },
    arguments.FIT: (fitted, {"max_queue_size": 3, "workers": 2, "use_multiprocessing": True}),
    arguments.ACCUMULATION: (accumulated, {"use_v2_gradient_accumulation_optimizer": True}),
    arguments.INFEED: (infeed, {"optimise_latency": True}),
    arguments.OUTFEED: (ipu_outfeed_queue.IPUOutfeedQueue, {"optimise_latency": True}),
    arguments.REPEAT: (looped, {"use_while_v1": False}),
    arguments.SOFTMAX: (softmax, {"stable": True}),
    arguments.OPTIMIZER: (
        optimizer,
        {"outline_apply_gradients": True, "outline_apply_gradients_kwargs": {"a": 1}},
    ),
}


@pytest.mark.parametrize("call", arguments.HEADINGS)
def test_recorded_arguments_are_in_the_report_and_once_in_the_log(call, environment, logged):
    run, given = RECORDED_ARGUMENTS[call]
    assert set(given) == {entry.name for entry in arguments.effects(call) if entry.effect == RECORDED}
    environment(COMPILE_ONLY if call == arguments.PIPELINE else None, ipus=2 if call == arguments.PIPELINE else 1)
    with contextlib.suppress(StopIteration):
        run()
    assert not any(name.startswith(f"{call}(") for name, _ in memory_report().without_effect)
    for _ in range(2):
        run(**given)
    without = dict(memory_report().without_effect)
    assert {name for name in without if name.startswith(f"{call}(")} == {f"{call}({name})" for name in given}
    for name in given:
        assert sum(f"{call}({name})" in line for line in logged) == 1
        assert f"{call}({name})" in memory_report().to_text()
