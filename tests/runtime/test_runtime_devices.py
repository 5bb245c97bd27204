"""Which TensorFlow devices a process has, and which IPUs they hold. A stand-in takes the plugin's place."""

import concurrent.futures
import os
import re
import threading
import time

import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import config as ipu_config
from tf_ipu_shim.ipu.config import DeviceConnectionType, IPUConfig

from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.runtime import device, devices

pytestmark = pytest.mark.one_version


class StandIn:
    def __init__(self):
        self.chips = None
        self.epochs = 0

    def set_rounding(self, ordinal, rounding):
        pass

    def keep_infinities(self, ordinal, keep):
        pass

    def set_devices(self, chips, float_checks=()):
        self.chips = list(chips)

    def list_devices(self, count):
        pass

    def new_epoch(self):
        self.epochs += 1


@pytest.fixture(autouse=True)
def library(monkeypatch, tmp_path):
    """Each test begins and ends with nothing configured."""
    for name in ("TF_IPU_SHIM_SYSTEM", "TF_POPLAR_FLAGS", "TF_IPU_SHIM_SDK", "POPLAR_ENGINE_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))
    stand_in = StandIn()
    monkeypatch.setattr(devices, "load_library", lambda: stand_in)
    devices.reset()
    yield stand_in
    devices.reset()


@pytest.fixture
def logged(monkeypatch, capsys):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    return lambda: capsys.readouterr().err


def configured(**values):
    config = IPUConfig()
    for path, value in values.items():
        owner = config
        *categories, name = path.split("__")
        for category in categories:
            owner = getattr(owner, category)
        setattr(owner, name, value)
    config.configure_ipu_system()
    return config


def test_four_ipus_are_device_24(library):
    configured(auto_select_ipus=4)
    device = devices.get(0)
    assert (device.ordinal, device.num_ipus, device.poplar_id) == (0, 4, 24)
    assert device.physical_ipus == (5, 7, 4, 6)
    assert device.chip.name == "gc200"
    assert library.chips == [4] and library.epochs == 1


def test_several_devices_take_different_ipus(library):
    configured(auto_select_ipus=[4, 4, 1])
    assert library.chips == [4, 4, 1]
    assert [devices.get(ordinal).poplar_id for ordinal in range(3)] == [24, 25, 8]
    with pytest.raises(tf.errors.InvalidArgumentError, match="no TensorFlow device /device:IPU:3"):
        devices.get(3)


def test_selection_by_id():
    configured(select_ipus=[30])
    assert devices.get(0).num_ipus == 16
    configured(select_ipus=[1, 16])
    assert [devices.get(ordinal).physical_ipus for ordinal in range(2)] == [(1,), (5, 7)]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (0, "Ask for 1 or more."),
        (3, "Ask for 4: a program may leave"),
        (32, "TF_IPU_SHIM_SYSTEM=pod32 has 32 IPUs."),
        (600, "No simulated system has more."),
    ],
)
def test_numbers_that_no_device_has(number, advice):
    with pytest.raises(
        tf.errors.FailedPreconditionError, match=f"^Unsupported number of IPUs requested.* {number} IPUs.*{advice}"
    ):
        configured(auto_select_ipus=number)
    assert devices.configured() is None
    configured(auto_select_ipus=2)


def test_ids_that_do_not_exist():
    with pytest.raises(tf.errors.InvalidArgumentError, match="configuration index 31, but 31 configurations"):
        configured(select_ipus=31)


def test_busy_ipus_are_refused_and_nothing_is_kept(library):
    system = systems.current()
    with attach.attach(system, system.device(24)):
        with pytest.raises(
            tf.errors.InternalError,
            match=r"^Could not find an available device for TensorFlow virtual device /device:IPU:2\. "
            r"This device was expected to have 8 IPU\(s\)\. Suitable Poplar devices: \d+ to \d+\. "
            rf"In use: IPU [0-9, to]+ by this process {os.getpid()} \(.*\)\. The other TensorFlow devices",
        ):
            configured(auto_select_ipus=[4, 8, 8])
        assert devices.configured() is None
        assert sorted(attach.in_use(system)) == [4, 5, 6, 7]
        assert library.chips is None
    configured(auto_select_ipus=[8, 8])


def test_the_process_that_holds_ipus_is_known_by_its_script(monkeypatch):
    """Its command is told without directories, which may be longer than what is shown of it."""
    command = f"/{'long/' * 20}bin/python /opt/bin/tf-ipu run /home/me/train.py --epochs 3"
    holder = attach.Holder(pid=7, command=command, since=0.0, device_id=0)
    monkeypatch.setattr(attach, "attach_first", lambda *arguments: None)
    monkeypatch.setattr(attach, "in_use", lambda system: {0: holder, 1: holder})
    said = r"In use: IPU 0 to 1 by process 7 \(python tf-ipu run train\.py --epochs 3\)\. Let the process that holds"
    with pytest.raises(tf.errors.InternalError, match=said):
        configured(auto_select_ipus=1)


def test_a_second_device_skips_busy_ones():
    system = systems.current()
    with attach.attach(system, system.device(24)):
        configured(auto_select_ipus=4)
        assert devices.get(0).poplar_id == 25


def test_reset_releases(library):
    configured(auto_select_ipus=16)
    ipu_config.reset_ipu_configuration()
    assert attach.in_use(systems.current()) == {}
    assert devices.configured() is None
    assert library.epochs == 2
    ipu_config.reset_ipu_configuration()
    assert library.epochs == 2
    configured(auto_select_ipus=16)


def test_an_equal_configuration_stays(library, caplog):
    configured(auto_select_ipus=2)
    first = devices.get(0)
    configured(auto_select_ipus=2)
    assert devices.get(0) is first and library.epochs == 1
    assert "Resetting" not in caplog.text


def test_another_configuration_resets_first(library, monkeypatch):
    messages = []
    monkeypatch.setattr("tf_ipu_shim.configuration.warnings.warn", messages.append)
    configured(auto_select_ipus=2)
    configured(auto_select_ipus=4)
    assert messages == ["Resetting existing IPU configuration before applying new configuration"]
    assert devices.get(0).num_ipus == 4 and library.epochs == 3


def test_other_flags_are_another_configuration(library, monkeypatch):
    """Those that devices and programs are made with; others are read when they are needed."""
    config = configured(auto_select_ipus=2)
    first = devices.get(0)
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--executable_cache_path=/nowhere")
    config.configure_ipu_system()
    assert devices.get(0) is first and library.epochs == 1
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    with pytest.raises(tf.errors.FailedPreconditionError, match="other TF_POPLAR_FLAGS"):
        ipu_config.configure_ipu_system(config, reset_configuration=False)
    assert not devices.get(0).on_model
    config.configure_ipu_system()
    assert devices.get(0).on_model and library.epochs == 3
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model --ipu_model_tiles=8")
    config.configure_ipu_system()
    assert library.epochs == 5


def test_an_equal_configuration_stays_on_demand(library, monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_on_demand")
    config = configured(auto_select_ipus=2)
    config.configure_ipu_system()
    assert library.epochs == 1


def test_without_reset_a_second_configuration_fails():
    config = configured(auto_select_ipus=2)
    config.auto_select_ipus = 4
    with pytest.raises(tf.errors.FailedPreconditionError, match="can only be set once"):
        ipu_config.configure_ipu_system(config, reset_configuration=False)
    assert devices.get(0).num_ipus == 2


def test_what_is_configured_can_be_read():
    with pytest.raises(RuntimeError, match="^No IPU devices configured"):
        ipu_config.get_ipu_config()
    configured(auto_select_ipus=[1, 2])
    one, two = ipu_config.get_ipu_config()
    assert one == two and [device.auto_count for device in one.device_config] == [1, 2]
    one.ClearField("device_config")
    assert len(devices.configured().device_config) == 2
    with pytest.raises(AssertionError, match="session"):
        ipu_config.get_ipu_config(session=object())
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert len(ipu_config.get_ipu_config(session)) == 2


@pytest.mark.parametrize("wrong", [None, {}, "cpu", 4])
def test_only_configurations_configure(wrong):
    with pytest.raises(TypeError, match="^`config` must be an IpuOptions instance"):
        ipu_config.configure_ipu_system(wrong)


def test_nothing_configured_gives_one_ipu(library, logged):
    assert devices.get(0).num_ipus == 1
    assert devices.get(0).poplar_id == 0
    assert library.chips == [1]
    assert devices.configured() is None
    assert "No IPU device was configured for /device:IPU:0, creating a device with a single IPU." in logged()
    configured(auto_select_ipus=2)
    assert devices.get(0).num_ipus == 2


def test_devices_that_nobody_configured_come_as_they_are_named(library, logged):
    first = devices.get(0)
    assert [devices.named(2).poplar_id, devices.named(1).poplar_id] == [2, 1] and devices.get(0) is first
    assert library.chips == [1, 1, 1] and devices.count() == 3
    assert logged().count("creating a device with a single IPU") == 3
    configured(auto_select_ipus=[4, 1])
    assert library.chips == [4, 1] and devices.named(2).num_ipus == 1 and library.chips == [4, 1, 1]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="no TensorFlow device /device:IPU:64; expected one of .*ipu_shard"
    ):
        devices.named(64)
    devices.reset()
    assert devices.named(1).poplar_id == 1 and library.chips == [1, 1]


def test_a_device_that_has_no_ipu_leaves_the_others(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "c600")
    only = devices.get(0)
    with pytest.raises(tf.errors.InternalError, match="available device"):
        devices.named(1)
    assert devices.active() == (only,)


def test_a_configuration_without_devices_gives_one_ipu(logged):
    configured(allow_recompute=True)
    assert devices.get(0).num_ipus == 1 and devices.get(0).options.speed_size_config.allow_recompute
    assert "creating a device with a single IPU" in logged()


PREFIX = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: I tensorflow/compiler/plugin/poplar/driver/"


@pytest.mark.parametrize(
    ("sdk", "number", "line"),
    [
        ("2.4", 1, r"executor\.cc:660\] Device /device:IPU:0 attached to IPU: 0$"),
        ("1.4", 4, r"executor\.cc:660\] Device /device:IPU:0 attached to IPUs: 24$"),
        (
            "2.5",
            1,
            r"poplar_executor\.cc:\d+\] TensorFlow device /device:IPU:0 attached to 1 IPU with Poplar device ID: 0$",
        ),
        (
            "3.4",
            4,
            r"poplar_executor\.cc:\d+\] TensorFlow device /device:IPU:0 attached to 4 IPUs with Poplar device ID: 24$",
        ),
    ],
)
def test_attach_lines(monkeypatch, logged, sdk, number, line):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", sdk)
    configured(auto_select_ipus=number)
    assert re.search(PREFIX + line, logged(), re.MULTILINE)


def test_log_lines_can_be_silenced(monkeypatch, capsys):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")
    configured(auto_select_ipus=1)
    assert capsys.readouterr().err == ""


def test_on_demand_attaches_at_first_use(logged):
    configured(auto_select_ipus=4, device_connection__type=DeviceConnectionType.ON_DEMAND)
    assert attach.in_use(systems.current()) == {}
    assert devices.get(0, attach=False).poplar_id is None
    assert "attached" not in logged()
    assert devices.get(0).poplar_id == 24


def test_the_flag_forces_on_demand(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_on_demand")
    configured(auto_select_ipus=4)
    assert not devices.get(0, attach=False).attached
    assert devices.configured().device_connection_type == DeviceConnectionType.ON_DEMAND.value
    configured(auto_select_ipus=4)  # the same configuration again


def after_the_first_try(monkeypatch, call):
    """Calls once something has asked for an IPU and got none."""
    first = attach.attach_first

    def attach_first(*arguments):
        monkeypatch.setattr(attach, "attach_first", first)
        assert first(*arguments) is None
        call()

    monkeypatch.setattr(attach, "attach_first", attach_first)


def test_on_demand_waits(monkeypatch, logged):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--on_demand_device_poll_time=100")
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "c600")  # with one IPU: several are released one after another
    system = systems.current()
    attachment = attach.attach(system, system.device(0))
    configured(auto_select_ipus=1, device_connection__type=DeviceConnectionType.ON_DEMAND)
    after_the_first_try(monkeypatch, attachment.release)
    assert devices.get(0).poplar_id == 0
    assert "Currently there is no available device for" in logged()


def test_on_demand_times_out(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--on_demand_device_poll_time=100 --on_demand_device_timeout=150")
    system = systems.current()
    with attach.attach(system, system.device(30)):
        configured(auto_select_ipus=1, device_connection__type=DeviceConnectionType.ON_DEMAND)
        with pytest.raises(
            tf.errors.InternalError, match=f"^Timed out trying to find an available device.*{os.getpid()}"
        ):
            devices.get(0)
    assert devices.get(0).poplar_id == 0


def test_reset_ends_a_wait(monkeypatch):
    system = systems.current()
    caught, asked = [], threading.Event()

    def use():
        try:
            devices.get(0)
        except tf.errors.CancelledError as error:
            caught.append(error)

    with attach.attach(system, system.device(30)):
        configured(auto_select_ipus=1, device_connection__type=DeviceConnectionType.ON_DEMAND)
        after_the_first_try(monkeypatch, asked.set)
        thread = threading.Thread(target=use)
        thread.start()
        assert asked.wait(120)
        devices.reset()
        thread.join(120)
    assert not thread.is_alive()
    assert len(caught) == 1 and "was reset while" in str(caught[0])


@pytest.mark.parametrize("kind", [DeviceConnectionType.NEVER, DeviceConnectionType.PRE_COMPILE])
def test_devices_that_never_attach(kind):
    configured(auto_select_ipus=4, device_connection__type=kind, device_connection__version="ipu1")
    device = devices.get(0)
    assert not device.attached and device.compiles_only and device.poplar_id is None
    assert device.chip.name == "gc2"
    assert attach.in_use(systems.current()) == {}


def test_unknown_versions_are_refused():
    with pytest.raises(ValueError, match="ipu9"):
        configured(device_connection__type=DeviceConnectionType.NEVER, device_connection__version="ipu9")
    assert devices.configured() is None


def test_the_ipu_model_needs_no_ipu(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    system = systems.current()
    with attach.attach(system, system.device(30)):
        configured(auto_select_ipus=4, ipu_model__tiles_per_ipu=8, ipu_model__version="ipu1")
        device = devices.get(0)
        assert device.on_model and device.attached and device.poplar_id == 0
        assert (device.chip.target, device.chip.tiles) == ("ipu1", 8)
        assert device.physical_ipus == (0, 1, 2, 3)


@pytest.mark.parametrize("tiles, io_tiles", [(8, 8), (8, 32), (None, 1472)])
def test_io_tiles_leave_tiles_that_compute(monkeypatch, tiles, io_tiles):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    asked = {} if tiles is None else {"ipu_model__tiles_per_ipu": tiles}
    with pytest.raises(
        ValueError, match=rf"num_io_tiles is {io_tiles}, .* has {tiles or 1472} tiles; at least one must be left"
    ):
        configured(auto_select_ipus=1, io_tiles__num_io_tiles=io_tiles, **asked)
    configured(auto_select_ipus=1, io_tiles__num_io_tiles=(tiles or 1472) - 1, **asked)


def test_engine_options(monkeypatch):
    configured(compilation_poplar_options={"debug.allowOutOfMemory": "true", "opt.enableInlining": "false"})
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"opt.enableInlining": "true"}')
    assert devices.get(0).engine_options == {"debug.allowOutOfMemory": "true", "opt.enableInlining": "true"}


def test_threads_share_one_device(monkeypatch, library):
    """All eight ask before the first has its answer: what making and attaching take is made long."""
    asked, started, attached = threading.Barrier(8), [], []

    def slowly(function, calls):
        def call(*arguments):
            calls.append(arguments)
            time.sleep(0.1)
            return function(*arguments)

        return call

    monkeypatch.setattr(library, "set_devices", slowly(library.set_devices, started))
    monkeypatch.setattr(device.attach, "attach_first", slowly(device.attach.attach_first, attached))

    def ask():
        asked.wait(120)
        return devices.get(0)

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        found = [future.result(120) for future in [threads.submit(ask) for _ in range(8)]]
    assert set(map(id, found)) == {id(devices.get(0))} and found[0].attached
    assert (len(started), len(attached)) == (1, 1)


def test_a_plugin_that_does_not_load_leaves_nothing(monkeypatch, library):
    def fail():
        raise RuntimeError("no compiler")

    monkeypatch.setattr(devices, "load_library", fail)
    with pytest.raises(RuntimeError, match="no compiler"):
        configured(auto_select_ipus=1)
    assert devices.configured() is None and attach.in_use(systems.current()) == {}
    monkeypatch.setattr(devices, "load_library", lambda: library)
    configured(auto_select_ipus=1)


def test_too_many_devices_leave_nothing(monkeypatch, library):
    def refuse(chips, float_checks):
        raise ValueError("too many")

    monkeypatch.setattr(library, "set_devices", refuse)
    with pytest.raises(ValueError, match="too many"):
        configured(auto_select_ipus=[1, 1])
    assert devices.configured() is None and attach.in_use(systems.current()) == {}
