"""The ops of `gen_ipu_ops`, eagerly and in graphs."""

import importlib
import inspect

import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import utils
from tf_ipu_shim.ipu.config import IPUConfig
from tf_ipu_shim.poplar.driver import config_pb2
from tf_ipu_shim.poplar.ops import gen_ipu_ops

from tf_ipu_shim import errors
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.runtime import devices, seed

# Name and default of each argument, as Graphcore's wrappers have them.
SIGNATURES = {
    "ipu_clear_all_xla_compilation_caches": "name=None",
    "ipu_configure_hardware": "config, name=None",
    "ipu_event_trace": "name=None",
    "ipu_get_configuration": "name=None",
    "ipu_get_num_devices": "device, name=None",
    "ipu_model_used": "name=None",
    "ipu_reset_devices": "name=None",
    "ipu_reset_seed": "device, seed, identical_replicas=False, name=None",
    "ipu_use_synthetic_data_for": "synthetic_data_category, name=None",
}


@pytest.fixture(params=["eager", "graph"])
def run(request):
    """Calls a wrapper on the CPU and gives its value."""

    def eager(op, *arguments):
        with tf.device("cpu"):
            result = getattr(gen_ipu_ops, op)(*arguments)
        return None if result is None else result.numpy()

    def graph(op, *arguments):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            with tf.device("cpu"):
                built = getattr(gen_ipu_ops, op)(*arguments)
            return session.run(built)

    return {"eager": eager, "graph": graph}[request.param]


def options(ipus=1):
    made = config_pb2.IpuOptions()
    made.device_config.add().auto_count = ipus
    return made


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    parameters = inspect.signature(getattr(gen_ipu_ops, name)).parameters.values()
    plain = [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in parameters]
    assert ", ".join(plain) == SIGNATURES[name]


def test_the_module_lists_its_ops():
    assert dir(gen_ipu_ops) == sorted(SIGNATURES)


def test_names_nobody_knows():
    with pytest.raises(AttributeError, match="no attribute 'ipu_nonsense'"):
        gen_ipu_ops.ipu_nonsense  # noqa: B018


def test_ops_that_are_missing_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(
        "tf_ipu_shim.names.graphcore_names.attributes",
        lambda module: {"ipu_later": "3.0-3.4"} if module.endswith("gen_ipu_ops") else {},
    )
    with pytest.raises(errors.MissingAttributeError, match="gen_ipu_ops.ipu_later exists in SDK 3.0-3.4"):
        gen_ipu_ops.ipu_later  # noqa: B018


def test_configuring_reading_and_resetting(run):
    assert run("ipu_get_configuration").tolist() == []
    run("ipu_configure_hardware", options(4).SerializeToString())
    assert devices.get(0).poplar_id == 24
    (read,) = run("ipu_get_configuration")
    assert config_pb2.IpuOptions.FromString(read) == options(4)
    run("ipu_reset_devices")
    assert devices.configured() is None and attach.in_use(systems.current()) == {}


def test_one_configuration_for_each_device(run):
    config = IPUConfig()
    config.auto_select_ipus = [1, 2]
    config.configure_ipu_system()
    assert len(run("ipu_get_configuration")) == 2
    assert run("ipu_get_num_devices", "/device:IPU:1") == 2
    assert run("ipu_get_num_devices", "/job:localhost/replica:0/task:0/device:IPU:0") == 1


def test_one_graph_reads_configurations_one_after_another():
    """TensorFlow computes what it takes for constant once; this is not."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.device("cpu"):
            number, read = gen_ipu_ops.ipu_get_num_devices("/device:IPU:0"), gen_ipu_ops.ipu_get_configuration()
        devices.configure(options(2))
        assert session.run(number) == 2 and session.run(read)[0] == options(2).SerializeToString()
        devices.reset()
        devices.configure(options(4))
        assert session.run(number) == 4 and session.run(read)[0] == options(4).SerializeToString()


def test_errors_of_the_configuration_keep_their_type(run):
    with pytest.raises(tf.errors.FailedPreconditionError, match="Unsupported number of IPUs requested"):
        run("ipu_configure_hardware", options(3).SerializeToString())
    with pytest.raises(tf.errors.InvalidArgumentError, match="config of 1 bytes is not a serialised IpuOptions"):
        run("ipu_configure_hardware", b"\xff")


@pytest.mark.parametrize("device", ["", "IPU", "/device:CPU:0", "nonsense"])
def test_devices_that_are_no_ipu(run, device):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid device name"):
        run("ipu_get_num_devices", device)


def test_devices_that_there_are_not(run):
    with pytest.raises(tf.errors.InvalidArgumentError, match="no TensorFlow device /device:IPU:7"):
        run("ipu_get_num_devices", "/device:IPU:7")


def test_the_seed(run):
    run("ipu_reset_seed", "/device:IPU:0", -5, True)
    state = seed.state_of(0)
    assert (state.seed, state.identical_replicas) == (-5, True)
    run("ipu_reset_seed", "/device:IPU:0", 7)
    assert (seed.state_of(0).seed, seed.state_of(0).identical_replicas) == (7, False)


def test_the_flags_count_as_they_are_now(run, monkeypatch):
    assert run("ipu_model_used").tolist() == [False]
    assert run("ipu_use_synthetic_data_for", 1).tolist() == [False]
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model --synthetic_data_categories=infeed,hostembedding")
    assert run("ipu_model_used").tolist() == [True]
    assert [run("ipu_use_synthetic_data_for", i).tolist() for i in range(6)] == [
        [category in (1, 3)] for category in range(6)
    ]
    made_up = [category.name for category in utils.SyntheticDataCategory if utils.use_synthetic_data_for(category)]
    assert made_up == ["Infeed", "HostEmbedding"]
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_synthetic_data")
    assert all(run("ipu_use_synthetic_data_for", i).tolist() == [True] for i in range(6))


def test_synthetic_data_categories_that_there_are_not(run):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid synthetic data category: 6"):
        run("ipu_use_synthetic_data_for", 6)


def test_unknown_flags_reach_the_user(run, monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--nonsense")
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown flag --nonsense"):
        run("ipu_model_used")


def test_they_do_not_run_on_an_ipu():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with tf.device("/device:IPU:0"):
            used = gen_ipu_ops.ipu_model_used()
        with pytest.raises(tf.errors.InvalidArgumentError, match="no supported kernel for IPU devices is available"):
            session.run(used)


def test_graphcores_name_of_the_module():
    assert importlib.import_module("tensorflow.compiler.plugin.poplar.ops.gen_ipu_ops") is gen_ipu_ops


def test_synthetic_data_without_an_op(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--synthetic_data_categories=outfeed,seed")
    assert [utils.use_synthetic_data_for(category) for category in range(6)] == [True, False, True, False, False, False]
    with pytest.raises(ValueError, match="from 0 to 5, not 6"):
        utils.use_synthetic_data_for(6)
