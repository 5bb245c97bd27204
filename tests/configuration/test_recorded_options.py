"""Options that are accepted and change nothing are in the memory report, and once a process in the log."""

import inspect
from enum import Enum

import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tf_ipu_shim.ipu import utils
from tf_ipu_shim.ipu.config import IPUConfig

from tf_ipu_shim import memory_report
from tf_ipu_shim.configuration import all_options, old_functions, table
from tf_ipu_shim.configuration.all_options import POPLAR_FLAGS
from tf_ipu_shim.configuration.effects import effects_in
from tf_ipu_shim.configuration.verification import KeyId, VerificationOptions
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.machine.environment.effects import RECORDED
from tf_ipu_shim.runtime import devices

pytestmark = pytest.mark.one_version

SECTIONS = all_options.sections()


RECORDED_OPTIONS = [option for option in table.OPTIONS if option.effect == RECORDED]
TOGETHER = {
    "experimental.multi_replica_distribution.process_index": {
        "experimental.multi_replica_distribution.process_count": 2
    },
}


def other(option, sdk):
    """A value that is not the default."""
    _, default = option.in_release(sdk)
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


@pytest.mark.parametrize("option", RECORDED_OPTIONS, ids=lambda option: option.path)
def test_a_recorded_option_is_in_the_report_and_once_in_the_log(option, environment, logged):
    line = min(option.until, (3, 4))
    config = {**TOGETHER.get(option.path, {}), option.path: other(option, line)}
    environment(config, ipus=1, sdk=".".join(map(str, line)))
    assert dict(memory_report().without_effect)[option.path] == config[option.path]
    environment(config, ipus=1, sdk=".".join(map(str, line)))
    named = [text for text in logged if text.startswith("no effect on a simulated system: ") and option.path in text]
    assert len(named) == 1


FLAGS = [entry.name for entry in SECTIONS[POPLAR_FLAGS] if entry.effect == RECORDED]


@pytest.mark.parametrize("name", FLAGS)
def test_a_recorded_flag_is_in_the_report_and_once_in_the_log(name, environment, logged):
    default = getattr(flags.PoplarFlags(), name, False)
    text = {bool: f"--{name}", int: f"--{name}=7", str: f"--{name}=/somewhere"}[type(default)]
    for _ in range(2):
        environment(flags=text, ipus=1)
    assert f"--{name}" in dict(memory_report().without_effect)
    assert len([line for line in logged if line == f"no effect on a simulated system: --{name}"]) == 1


def test_engine_options_without_effect(environment, logged):
    environment(engine={"debug.trace": "true", "some.new": "1", "debug.allowOutOfMemory": "true"}, ipus=1)
    without = dict(memory_report().without_effect)
    assert (without["debug.trace"], without["some.new"]) == ("true", "1")
    assert "debug.allowOutOfMemory" not in without
    assert "no effect on a simulated system: debug.trace, some.new" in logged


def test_a_misspelt_engine_option_fails_programs(environment):
    environment(engine={"autoReport.al": "true", "some.new": "1", "debug.trace": "true"}, ipus=1)
    with ipu.ipu_strategy.IPUStrategy().scope():
        program = tf.function(lambda x: x + 1.0, jit_compile=True)
        with pytest.raises(tf.errors.InternalError, match="'autoReport.al' of engines. Did you mean 'autoReport.all'?"):
            program(tf.constant(1.0))


def test_engine_options_that_are_no_json_are_an_error(monkeypatch):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "debug.trace=true")
    with pytest.raises(ValueError, match="POPLAR_ENGINE_OPTIONS is 'debug.trace=true', which is not JSON"):
        IPUConfig().configure_ipu_system()
    assert devices.configured() is None


def test_options_of_the_old_functions_are_recorded(logged):
    options = utils.create_ipu_config(always_rearrange_copies_on_the_host=True)
    options = utils.set_norm_options(options, use_stable_statistics=True)
    options = utils.set_matmul_options(options, {"availableMemoryProportion": "0.1", "use128BitConvUnitLoad": "true"})
    utils.configure_ipu_system(utils.auto_select_ipus(options, 1))
    assert dict(memory_report().without_effect) == {
        "create_ipu_config(always_rearrange_copies_on_the_host)": True,
        "set_norm_options(use_stable_statistics)": True,
        "set_matmul_options(matmul_options)": {"use128BitConvUnitLoad": "true"},
    }
    assert sum("set_norm_options(use_stable_statistics)" in line for line in logged) == 1


def test_every_argument_of_the_old_functions_is_named_as_written(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.0")
    for function, rows in old_functions.ARGUMENTS.items():
        for argument, path in rows.items():
            option, inverted = old_functions.option_of(function, argument)
            value = other(option, (2, 0))
            value = list(type(value))[1] if isinstance(value, Enum) else value
            before = () if function == "create_ipu_config" else (utils.create_ipu_config(),)
            default = inspect.signature(getattr(utils, function)).parameters[argument].default
            value = not default if isinstance(default, bool) else not value if inverted else value
            options = getattr(utils, function)(*before, **{argument: value})
            found = {effect.name for effect in effects_in(options) if effect.path == path.removeprefix("!")}
            # Two functions set the same size, and two arguments the same options: the first names both.
            is_second = argument == "report_options" or (function, argument) == (
                "set_optimization_options",
                "max_inter_ipu_copies_buffer_size",
            )
            first = old_functions.argument_of(option.path)[0]
            assert found == {first} and (is_second or first == f"{function}({argument})")


def test_an_argument_of_opposite_sense_has_its_own_value():
    utils.configure_ipu_system(utils.auto_select_ipus(utils.create_ipu_config(disable_graph_outlining=True), 1))
    assert memory_report().without_effect == (("create_ipu_config(disable_graph_outlining)", True),)


def test_keys_of_the_old_functions_are_recorded(logged):
    keys = utils.VerificationOptions()
    keys.inputs.key = 3
    options = utils.set_verification_options(utils.create_ipu_config(), keys)
    utils.configure_ipu_system(utils.auto_select_ipus(options, 1))
    assert [name for name, _ in memory_report().without_effect] == ["set_verification_options(verification_options)"]


@pytest.mark.parametrize("sdk", ["2.1", "2.2", "2.3", "2.4", "3.4"])
def test_a_plain_protobuf_sets_nothing(sdk, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", sdk)
    assert effects_in(IPUConfig()._create_protobuf()) == []


def test_what_the_old_functions_set_by_themselves_is_not_listed():
    utils.configure_ipu_system(utils.auto_select_ipus(utils.create_ipu_config(), 1))
    assert memory_report().without_effect == ()


@pytest.mark.parametrize("name", [entry.name for entry in SECTIONS[all_options.SDK_ENVIRONMENT]])
def test_an_sdk_variable_is_in_the_report_and_once_in_the_log(name, environment, logged, monkeypatch):
    monkeypatch.setenv(name, "INFO")
    for _ in range(2):
        environment(ipus=1)
    assert dict(memory_report().without_effect) == {name: "INFO"}
    assert logged.count(f"no effect on a simulated system: {name}") == 1
