"""What happens when an op first runs on a device: attaching, the default device, devices that only compile."""

import re
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import internal_ops, ipu_compiler, loops, scopes
from tf_ipu_shim.ipu.config import DeviceConnectionType, IPUConfig

from tf_ipu_shim import plugin
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.messages import driver_pb2
from tf_ipu_shim.runtime import devices, op_requests

v1 = tf.compat.v1
IPU = "/device:IPU:0"


@pytest.fixture
def asked(monkeypatch):
    """How often the plugin asked for each device."""
    calls = []

    def attached(request):
        calls.append(driver_pb2.UseQuestion.FromString(request).ordinal)
        return op_requests.HANDLERS["attach"](request)

    plugin.load().set_handlers({**op_requests.HANDLERS, "attach": attached})
    yield calls
    op_requests.install(plugin.load())


def configured(**values):
    config = IPUConfig()
    config.auto_select_ipus = values.pop("ipus", 1)
    for name, value in values.items():
        setattr(config.device_connection, name, value)
    config.configure_ipu_system()


def plain_op():
    with tf.device(IPU):
        return tf.raw_ops.Neg(x=tf.constant([1.0, 2.0])).numpy().tolist()


def test_a_plain_op_makes_the_default_device(monkeypatch, capsys):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    assert plain_op() == [-1, -2]
    logged = capsys.readouterr().err
    assert logged.count("No IPU device was configured for /device:IPU:0, creating a device with a single IPU.") == 1
    assert logged.count("TensorFlow device /device:IPU:0 attached to 1 IPU with Poplar device ID: 0") == 1
    assert sorted(attach.in_use(systems.current())) == [0]
    plain_op()
    assert capsys.readouterr().err == ""


def test_a_plain_op_attaches_on_demand():
    configured(ipus=4, type=DeviceConnectionType.ON_DEMAND)
    assert attach.in_use(systems.current()) == {}
    plain_op()
    assert devices.get(0, attach=False).poplar_id == 24


def test_each_device_is_asked_for_once_in_an_epoch(asked):
    configured(ipus=2)
    plain_op()
    plain_op()
    assert asked == [0]
    devices.reset()
    configured(ipus=4)
    plain_op()
    assert asked == [0, 0]


def test_many_threads_attach_once(asked, monkeypatch, capsys):
    """TensorFlow makes constants on a device while it holds Python's lock: whoever waited for another would hang."""
    configured(ipus=1, type=DeviceConnectionType.ON_DEMAND)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    barrier, results = threading.Barrier(8), []

    def run():
        barrier.wait()
        results.append(plain_op())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[-1, -2]] * 8 and 1 <= len(asked) <= 16
    assert capsys.readouterr().err.count("attached to 1 IPU") == 1
    plain_op()
    assert len(asked) <= 16


def test_what_fails_is_tried_again(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--on_demand_device_timeout=1 --on_demand_device_poll_time=100")
    configured(ipus=16, type=DeviceConnectionType.ON_DEMAND)
    system = systems.current()
    with attach.attach(system, system.device(3)):
        with pytest.raises(tf.errors.InternalError, match=f"Timed out trying to find an available device.*{IPU}"):
            plain_op()
    assert plain_op() == [-1, -2]


@pytest.mark.parametrize("flags, fails", [("", True), ("--use_ipu_model", False)])
def test_a_simulated_error_ends_the_first_load(monkeypatch, flags, fails):
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
    monkeypatch.setenv("GCDA_OPTIONS", '{"simulateSOCError.errorList": "IPUSOFTERR"}')
    configured()
    if fails:
        message = (
            r"\[Poplar\]\[Load engine\] recoverable_runtime_error: .*IPU_RESET.*IPUSOFTERR error on IPU 0 of " + IPU
        )
        with pytest.raises(tf.errors.InternalError, match=message):
            plain_op()
    assert plain_op() == [-1, -2]
    assert plain_op() == [-1, -2]


def test_an_unusable_lock_directory_shows_no_traceback(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no directory")
    with monkeypatch.context() as changed:
        changed.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "file"))
        with pytest.raises(tf.errors.FailedPreconditionError, match="Set TF_IPU_SHIM_LOCK_DIR") as caught:
            plain_op()
    assert "Traceback" not in str(caught.value)
    assert plain_op() == [-1, -2]


def test_a_session_asks_too(asked):
    configured(ipus=2, type=DeviceConnectionType.ON_DEMAND)
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device(IPU):
            fed = v1.placeholder(tf.float32, [1])
            negated = -fed
        assert session.run(negated, {fed: [1.0]}) == [-1]
        session.run(negated, {fed: [1.0]})
    assert asked == [0, 0], "for what is fed, and to attach"


def test_data_need_no_ipus(asked):
    """A device on demand is attached to by what computes on it."""
    configured(type=DeviceConnectionType.ON_DEMAND)
    with tf.device(IPU):
        variable = tf.Variable([1.0, 2.0])
        assert tf.identity(variable).numpy().tolist() == [1, 2]
        assert asked == [0] and attach.in_use(systems.current()) == {}
        assert (variable * 2).numpy().tolist() == [2, 4]
        assert asked == [0, 0] and sorted(attach.in_use(systems.current())) == [0]


def compiled(function, *shapes):
    fed = [v1.placeholder(tf.float32, shape) for shape in shapes]
    with scopes.ipu_scope(IPU):
        return ipu_compiler.compile(function, fed), fed


COMPILE_ONLY = re.escape("Trying to run an executable on a device that was configured for compilation only.")


def test_never_refuses_plain_ops():
    configured(type=DeviceConnectionType.NEVER, version="ipu2")
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{COMPILE_ONLY} Op .*Neg"):
        plain_op()


def test_never_makes_and_moves_data():
    configured(type=DeviceConnectionType.NEVER, version="ipu2")
    with tf.device(IPU):
        variable = tf.Variable([1.0, 2.0])
        assert tf.identity(variable).numpy().tolist() == [1, 2]


def test_never_compiles_programs_and_runs_none():
    configured(type=DeviceConnectionType.NEVER, version="ipu2")
    library = plugin.load()
    library.reset_counters(0)
    with tf.Graph().as_default(), v1.Session() as session:
        (product,), (fed,) = compiled(lambda x: tf.matmul(x, x), [2, 2])
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=COMPILE_ONLY):
                session.run(product, {fed: np.ones([2, 2])})
    assert (library.programs_compiled(0), library.programs_run(0)) == (1, 0)


COMPILED = re.compile(r"Compiled program \S+ for /device:IPU:0 in (\d+\.\d\d) s$", re.MULTILINE)


@pytest.mark.parametrize("execution", ["kernels", "xla"])
@pytest.mark.parametrize(
    ("connection", "lines"),
    [("ALWAYS", ["attached", "Compiled"]), ("ON_DEMAND", ["Compiled", "attached"]), ("NEVER", ["Compiled"])],
)
def test_the_log_says_when_a_program_was_compiled(connection, lines, execution, monkeypatch, capfd):
    """By kernels when it is lowered, which needs no IPUs; by XLA when it first runs, and so after an attachment."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution)
    configured(type=DeviceConnectionType[connection], version="ipu2" if connection == "NEVER" else "")
    with tf.Graph().as_default(), v1.Session() as session:
        (product,), (fed,) = compiled(lambda x: tf.matmul(x, x), [2, 2])
        start = time.monotonic()
        for _ in range(2):
            try:
                session.run(product, {fed: np.ones([2, 2])})
            except tf.errors.InvalidArgumentError:
                assert connection == "NEVER"
        taken = time.monotonic() - start
    logged = capfd.readouterr().err
    found = re.findall(r"attached|Compiled(?= )", logged)
    assert found == (sorted(lines, reverse=True) if execution == "xla" else lines)
    (seconds,) = COMPILED.findall(logged)
    assert 0 <= float(seconds) <= taken + 0.01


def test_the_line_comes_before_the_steps_of_a_loop(monkeypatch, capfd):
    """A step that runs again shows that all is compiled: the time is that of the compilation, without the steps."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")
    configured()

    def step(x):
        with tf.control_dependencies([internal_ops.print_tensor(x, "step")]):
            return tf.matmul(x, x)

    with tf.Graph().as_default(), v1.Session() as session:
        (product,), (fed,) = compiled(lambda x: loops.repeat(6, step, [x]), [1, 1])
        session.run(product, {fed: np.ones([1, 1])})
    logged = capfd.readouterr().err
    (line,) = COMPILED.finditer(logged)
    assert logged.count("step") >= 6 and line.start() < logged.rindex("step")


def test_a_quiet_log_says_nothing_of_programs(monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")
    configured()
    with tf.Graph().as_default(), v1.Session() as session:
        (product,), (fed,) = compiled(lambda x: tf.matmul(x, x), [2, 2])
        session.run(product, {fed: np.ones([2, 2])})
    assert "Compiled" not in capfd.readouterr().err


def test_never_runs_what_needs_no_engine():
    configured(type=DeviceConnectionType.NEVER, version="ipu2")
    with tf.Graph().as_default(), v1.Session() as session:
        (six,), _ = compiled(lambda: tf.constant(2.0) * 3)
        assert session.run(six) == 6


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={tmp_path}")


def test_pre_compile_gives_zeros(cache):
    configured(type=DeviceConnectionType.PRE_COMPILE, version="ipu2")
    assert plain_op() == [0, 0]
    library = plugin.load()
    library.reset_counters(0)
    with tf.Graph().as_default(), v1.Session() as session:
        (product,), (fed,) = compiled(lambda x: tf.matmul(x, x) + 1, [2, 2])
        assert session.run(product, {fed: np.ones([2, 2])}).tolist() == [[0, 0], [0, 0]]
        (six,), _ = compiled(lambda: tf.constant(2.0) * 3)
        assert session.run(six) == 6
    assert (library.programs_compiled(0), library.programs_run(0)) == (1, 1)
    assert attach.in_use(systems.current()) == {}


def test_pre_compile_leaves_inputs_as_they_are(cache):
    configured(type=DeviceConnectionType.PRE_COMPILE, version="ipu2")
    with tf.device(IPU):
        value = tf.constant([1.0, 2.0])
        assert tf.raw_ops.Add(x=value, y=value).numpy().tolist() == [0, 0]
        assert value.numpy().tolist() == [1, 2]


def test_pre_compile_takes_shapes_from_what_is_fed(cache):
    configured(type=DeviceConnectionType.PRE_COMPILE, version="ipu2")
    with tf.Graph().as_default(), v1.Session() as session:
        (product,), (fed,) = compiled(lambda x: tf.matmul(x, x), [None, None])
        assert session.run(product, {fed: np.ones([2, 2])}).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("in_environment", [False, True])
def test_an_engine_option_that_poplar_lacks_fails_at_first_op(monkeypatch, in_environment):
    config = IPUConfig()
    config.auto_select_ipus = 1
    if in_environment:
        monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"some_option": "some_value"}')
    else:
        config.compilation_poplar_options = {"some_option": "some_value", "opt.of_another_release": "taken"}
    config.configure_ipu_system()

    def program():
        with scopes.ipu_scope(IPU):
            return ipu_compiler.compile(lambda: tf.random.uniform([2]) + 1.0, [])

    for run in (plain_op, program):
        with pytest.raises(tf.errors.InternalError, match="Unrecognised option 'some_option'"):
            run()
    monkeypatch.delenv("POPLAR_ENGINE_OPTIONS", raising=False)
    config.compilation_poplar_options = {"opt.of_another_release": "taken"}
    config.configure_ipu_system()
    assert plain_op() == [-1, -2]


def test_an_unusable_device_is_an_error_of_a_called_function(monkeypatch):
    """Eager calls run asynchronous kernels where others run."""
    config = IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    with tf.device(IPU):
        value = tf.identity(tf.constant(2.0))
        config.auto_select_ipus = 2
        config.configure_ipu_system()  # the next op asks what the device may do

        def fail(*_, **__):
            raise tf.errors.InternalError(None, None, "no such device")

        monkeypatch.setattr(op_requests.devices, "get", fail)
        with pytest.raises(tf.errors.InternalError, match="no such device"):
            tf.function(lambda x: x + 1.0, jit_compile=True)(value)
