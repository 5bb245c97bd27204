"""Configuring, releasing and configuring again, as whole processes see it."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

CONFIGURE_TWICE = """
import threading
import tensorflow as tf
from tf_ipu_shim.ipu import config as ipu_config, utils
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.machine import systems
from tf_ipu_shim.runtime import devices

system = systems.current()
tf.constant(1.0) + 1.0                                   # the eager context lives already

config = ipu_config.IPUConfig()
config.auto_select_ipus = [4, 1]
config.configure_ipu_system()
assert [device.name for device in tf.config.list_physical_devices("IPU")] == [
    "/physical_device:IPU:0", "/physical_device:IPU:1"]
assert [utils.get_num_of_ipus_in_device(f"/device:IPU:{i}") for i in range(2)] == [4, 1]
assert sorted(attach.in_use(system)) == [0, 4, 5, 6, 7]
with tf.device("/device:IPU:1"):
    assert (tf.ones([2]) + 1.0).device.endswith("IPU:1")

config.auto_select_ipus = 3                              # a failure leaves nothing behind
try:
    config.configure_ipu_system()
except tf.errors.FailedPreconditionError as error:
    assert "Unsupported number of IPUs requested" in str(error)
assert attach.in_use(system) == {}

options = utils.select_ipus(utils.create_ipu_config(), [16])  # then the older functions
utils.configure_ipu_system(options)
assert devices.get(0).physical_ipus == (5, 7)
assert utils.get_ipu_config()[0].device_config[0].cfg_index == 16

ipu_config.reset_ipu_configuration()
assert attach.in_use(system) == {}
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    with tf.device("/device:IPU:0"):
        two = tf.constant(1.0) + 1.0
    assert session.run(two) == 2.0

found = []
threads = [threading.Thread(target=lambda: found.append(devices.get(0).poplar_id)) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert found == [0, 0, 0, 0]
config.auto_select_ipus = 16
config.configure_ipu_system()
print("held", flush=True)
input()                                                  # the test asks the other process now
"""

LISTED = """
import os
import tensorflow as tf
from tf_ipu_shim.ipu import config as ipu_config

listed = tf.config
def counts():
    return len(listed.list_physical_devices("IPU")), len(listed.list_logical_devices("IPU"))

os.environ["TF_IPU_SHIM_SYSTEM"] = "pod4"
cpu = listed.list_physical_devices("CPU")[0]
listed.set_logical_device_configuration(cpu, [listed.LogicalDeviceConfiguration()] * 2)
ipus = listed.list_physical_devices("IPU")
assert [device.name for device in ipus] == [f"/physical_device:IPU:{i}" for i in range(4)]
assert listed.experimental.get_device_details(ipus[3]) == {}
listed.set_visible_devices(ipus[:2], "IPU")
assert counts() == (4, 2)
with tf.device("/device:IPU:0"):                         # the default device is no configuration
    assert (tf.ones([2]) + 1.0).device.endswith("IPU:0")
assert counts() == (4, 2)

config = ipu_config.IPUConfig()
config.auto_select_ipus = [2, 1, 1]
config.configure_ipu_system()
assert counts() == (3, 3)
assert [device.name for device in listed.list_logical_devices("IPU")] == [f"/device:IPU:{i}" for i in range(3)]
with tf.device("/device:IPU:2"):
    assert (tf.ones([2]) + 1.0).device.endswith("IPU:2")
assert len(listed.list_logical_devices("CPU")) == 2      # other devices are as the script said
ipu_config.reset_ipu_configuration()
assert counts() == (4, 4)
"""

OTHER_PROCESS = """
import tensorflow as tf
from tf_ipu_shim.ipu import config as ipu_config
config = ipu_config.IPUConfig()
config.auto_select_ipus = 4
try:
    config.configure_ipu_system()
    print("attached")
except tf.errors.InternalError as error:
    print(error)
"""


@pytest.fixture
def environment(tmp_path):
    without = dict.fromkeys(("TF_IPU_SHIM_SYSTEM", "TF_POPLAR_FLAGS", "TF_IPU_SHIM_SDK"))
    return {**without, "TF_IPU_SHIM_LOCK_DIR": str(tmp_path / "locks")}


@pytest.mark.slow
def test_configuring_twice_and_two_processes(python, environment):
    script = python.script(CONFIGURE_TWICE)
    variables = {**os.environ, "PYTHONPATH": os.getcwd(), **environment}
    holder = subprocess.Popen(
        [sys.executable, str(script)],
        env={name: value for name, value in variables.items() if value is not None},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        refused = python.succeeds("-c", OTHER_PROCESS, environment=environment)
        assert "Could not find an available device for TensorFlow virtual device /device:IPU:0" in refused
        assert f"process {holder.pid}" in refused
    finally:
        holder.communicate("\n", timeout=60)
    assert holder.returncode == 0
    assert python.succeeds("-c", OTHER_PROCESS, environment=environment) == "attached\n"


def test_log_lines_are_on_stderr(python, environment):
    environment["TF_CPP_MIN_LOG_LEVEL"] = "0"
    process = python("-c", OTHER_PROCESS, environment=environment)
    assert process.stdout == "attached\n"
    assert "] TensorFlow device /device:IPU:0 attached to 4 IPUs with Poplar device ID: 24\n" in process.stderr
    assert process.stderr.count("Poplar version: ") == 1


def test_each_ipu_is_listed_until_devices_are_configured(forked, environment):
    forked.succeeds("-c", LISTED, environment=environment)
