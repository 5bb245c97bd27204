"""`horovod.tensorflow` in a job of one process; its collectives are those of `tests/runtime/jobs/test_jobs.py`."""

import json
import os

import gcipuinfo
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu  # noqa: F401  # Horovod's name is served where this one is used

import horovod.tensorflow as hvd  # isort: skip

from tf_ipu_shim import errors
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def joined():
    hvd.init()
    yield
    hvd.shutdown()


def test_places_and_collectives():
    assert (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size()) == (0, 1, 0, 1)
    assert hvd.is_initialized()
    x = tf.constant([1.0, 2.0])
    for result in (hvd.allreduce(x), hvd.allreduce(x, op=hvd.Sum), hvd.broadcast(x, 0), hvd.allgather(x)):
        np.testing.assert_array_equal(result, x)


def test_training_in_a_session(graph):
    w = v1.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    optimizer = hvd.DistributedOptimizer(v1.train.MomentumOptimizer(0.5, 0.9), compression=hvd.Compression.none)
    step = optimizer.minimize(tf.reduce_sum(w * w))
    with v1.train.MonitoredTrainingSession(hooks=[hvd.BroadcastGlobalVariablesHook(0)]) as session:
        session.run(step)
        np.testing.assert_allclose(session.run(w), [0.0, 0.0], atol=1e-7)
    assert optimizer.get_slot_names() == ["momentum"] and len(optimizer.variables()) == 1


def test_training_in_eager_mode():
    w = tf.Variable(3.0)
    with hvd.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
        loss = w * w
    assert float(tape.gradient(loss, w)) == 6.0 and tape.gradient(tf.constant(1.0), [w]) == [None]
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.legacy.SGD(0.5), name="mine")
    assert isinstance(optimizer, tf.keras.optimizers.legacy.SGD) and optimizer.get_config()["name"] == "mine"
    optimizer.apply_gradients([(tf.constant(2.0), w)])
    assert float(w) == 2.0
    hvd.broadcast_variables([w, *optimizer.variables()], root_rank=0)
    assert float(w) == 2.0


def test_gradients_as_halves():
    w = tf.Variable([3.0, 4.0])
    with hvd.DistributedGradientTape(tf.GradientTape(), compression=hvd.Compression.fp16) as tape:
        loss = tf.reduce_sum(w * w * 0.1)
    gradient = tape.gradient(loss, w)
    assert gradient.dtype == tf.float32
    np.testing.assert_array_equal(gradient, np.float16(np.float32([0.6, 0.8])).astype("f"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"compression": "fp16"}, errors.UnsupportedError, "with compression='fp16' is not emulated"),
        ({"backward_passes_per_step": 4}, errors.UnsupportedError, "GradientAccumulationOptimizerV2"),
        ({"speed": 1}, TypeError, "have no argument speed"),
        ({"op": hvd.Adasum}, NotImplementedError, "Adasum"),
    ],
)
def test_what_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1), **options)
    with pytest.raises(error, match=message):
        hvd.DistributedGradientTape(tf.GradientTape(), **options)


def test_what_allreduce_refuses():
    with pytest.raises(ValueError, match="supersedes average"):
        hvd.allreduce(tf.constant(1.0), average=True, op=hvd.Sum)
    with pytest.raises(errors.UnsupportedError, match="device_dense='/gpu:0'"):
        hvd.allreduce(tf.constant(1.0), device_dense="/gpu:0")


def test_other_optimizers_and_modes_are_refused():
    with pytest.raises(ValueError, match="doesn't inherit from either"):
        hvd.DistributedOptimizer(object())
    with pytest.raises(RuntimeError, match="does not support eager execution"):
        hvd.broadcast_global_variables(0)


def test_devices_of_gcipuinfo():
    inventory = gcipuinfo.gcipuinfo()
    system = systems.current()
    assert len(inventory.getDevices()) == len(system.devices)
    assert inventory.getNamedAttributeForAll("id") == [str(device.id) for device in system.devices]
    assert set(inventory.getNamedAttributeForAll("serial number")) == {"N/A"}
    assert inventory.getNamedAttributeForAll(gcipuinfo.IpuArchitecture)[0] == system.chip.target
    with pytest.raises(errors.MissingAttributeError, match="gcipuinfo.checkHealth is not emulated.*getDevices"):
        inventory.checkHealth()
    with pytest.raises(ValueError, match="expected DiscoverActivePartitionIPUs"):
        gcipuinfo.gcipuinfo(7)


def test_monitors_of_power_have_a_number_for_each_device(capfd, monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    monkeypatch.setattr(gcipuinfo, "_reported", [])
    inventory = gcipuinfo.gcipuinfo()
    devices = inventory.getDevices()
    watts = [float(power[:-1]) for power in inventory.getNamedAttributeForAll(gcipuinfo.IpuPower) if power != "N/A"]
    assert watts == [80.0 * device.num_ipus for device in systems.current().devices]
    assert len(watts) == len(devices) == len(json.loads(inventory.getDevicesAsJSON()))
    for number, device in enumerate(devices):
        assert inventory.getNamedAttributeForDevice(number, gcipuinfo.IpuPower) == device["ipu power"]
        assert float(device["average board temp"].removesuffix("C")) and float(device["average die temp"][:-1])
        assert float(device["ipu utilisation"][:-1]) == float(device["ipu utilisation (session)"][:-1]) == 0
        assert float(device["board power"][:-1]) >= float(device["ipu power"][:-1])
    for attribute in (gcipuinfo.IpuTemperature, gcipuinfo.AverageBoardTemp, gcipuinfo.AverageDieTemp):
        assert all(float(text[:-1]) > 0 for text in inventory.getNamedAttributeForAll(attribute))
    with pytest.raises(ValueError, match="31.*expected 0 to 30"):
        inventory.getNamedAttributeForDevice(31, gcipuinfo.IpuPower)
    assert capfd.readouterr().err.count("gcipuinfo: simulated IPUs have no sensors. ipu power") == 1


def test_gcipuinfo_has_what_was_read_last(monkeypatch, tmp_path):
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path))
    system = systems.current()
    once, always = gcipuinfo.gcipuinfo(), gcipuinfo.gcipuinfo(gcipuinfo.DiscoverAllPartitionIPUs)
    always.setUpdateMode(True)
    with attach.attach(system, system.devices[3]):
        assert once.getNamedAttributeForAll("in use by process")[3] == "none"
        assert always.getNamedAttributeForAll("in use by process")[3] == str(os.getpid())
        assert once.updateData()
        assert once.getDevices()[3]["in use by process"] == str(os.getpid())
    assert always.getNamedAttributeForAll("in use by process")[3] == "none"


def test_objects_between_processes_are_plain_values():
    """What comes from another process names no function to call."""
    plain = {"epoch": 3, "rest": [1.5, None, "text", b"bytes", (1, {2})]}
    assert hvd.broadcast_object(plain) == plain
    with pytest.raises(errors.UnsupportedError, match=r"object of \w+\.system between processes is not emulated"):
        hvd.allgather_object(os.system)
