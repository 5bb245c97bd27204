"""The executable cache within one process: what is found again, what is not, and what is not trusted."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, scopes, utils
from tf_ipu_shim.ipu.config import DeviceConnectionType, IPUConfig
from tf_ipu_shim.poplar.ops import gen_ipu_ops

from tf_ipu_shim import ipu, memory_report
from tf_ipu_shim.driver import planned_program as lowering
from tf_ipu_shim.machine.memory import plan_text
from tf_ipu_shim.runtime import devices, executable_cache

v1 = tf.compat.v1


@pytest.fixture
def cache(monkeypatch, tmp_path):
    directory = tmp_path / "not there yet" / "cache"
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path='{directory}'")
    return directory


@pytest.fixture
def lowered(monkeypatch):
    """The names of programs that were lowered, as they come."""
    names = []
    lower = lowering.lower

    def counting(library, call, request, *arguments, **options):
        names.append(request.name)
        return lower(library, call, request, *arguments, **options)

    monkeypatch.setattr(lowering, "lower", counting)
    return names


def files(directory):
    return sorted(file.name for file in directory.iterdir())


def product(value=3.0, factor=2.0, shape=(2, 2)):
    """Runs one program in a graph of its own."""
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, shape)
        with scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu_compiler.compile(lambda x: factor * tf.matmul(x, x), [fed])
        return session.run(result, {fed: np.full(shape, value, np.float32)})


def cache_of(program=-1):
    return memory_report().devices[0].programs[program].cache


def test_the_same_program_of_another_graph_is_found(cache, lowered, ipus):
    ipus()
    np.testing.assert_array_equal(product(), np.full([2, 2], 36.0))
    first = memory_report().devices[0].programs[-1]
    assert (len(lowered), len(files(cache)), first.cache) == (1, 1, "miss")
    np.testing.assert_array_equal(product(5.0), np.full([2, 2], 100.0))
    second = memory_report().devices[0].programs[-1]
    assert (len(lowered), len(files(cache)), second.cache) == (1, 1, "hit")
    assert second.ipus == first.ipus
    assert "; from the executable cache" in memory_report().to_text(verbose=True)


def test_files_are_one_a_program_and_only_the_user_s(cache, ipus):
    ipus()
    product()
    (name,) = files(cache)
    assert name.endswith(".ipu_program")
    assert (cache / name).stat().st_mode & 0o777 == 0o600
    assert cache.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "other",
    [
        lambda monkeypatch: product(factor=4.0),
        lambda monkeypatch: product(shape=(3, 3)),
        lambda monkeypatch: configured(ipus=2),
        lambda monkeypatch: configured(**{"ipu_model.tiles_per_ipu": 8}),
        lambda monkeypatch: configured(**{"optimizations.enable_gather_simplifier": False}),
        lambda monkeypatch: configured(**{"compilation_poplar_options": {"debug.allowOutOfMemory": "true"}}),
        lambda monkeypatch: monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels"),
        lambda monkeypatch: monkeypatch.setenv("TF_IPU_SHIM_SDK", "3.0"),
    ],
    ids=["constant", "shape", "ipus", "tiles", "option", "engine option", "execution", "sdk"],
)
def test_what_makes_it_another_program(monkeypatch, cache, lowered, other):
    if "tiles" in os.environ["PYTEST_CURRENT_TEST"]:
        monkeypatch.setenv("TF_POPLAR_FLAGS", os.environ["TF_POPLAR_FLAGS"] + " --use_ipu_model")
    configured()
    product()
    count = len(lowered)
    other(monkeypatch)
    devices.load_library().new_epoch()
    product()
    assert len(lowered) > count
    assert len(files(cache)) == 2


def configured(ipus=1, **options):
    devices.reset()
    config = IPUConfig()
    config.auto_select_ipus = ipus
    for path, value in options.items():
        *categories, name = path.split(".")
        target = config
        for category in categories:
            target = getattr(target, category)
        setattr(target, name, value)
    config.configure_ipu_system()


def test_which_ipus_it_gets_and_what_is_reported_does_not(cache, lowered):
    configured()
    product()
    devices.reset()
    config = IPUConfig()
    config.select_ipus = 3
    config.device_connection.type = DeviceConnectionType.ON_DEMAND
    config.configure_ipu_system()
    product()
    assert len(lowered) == 1


@pytest.mark.parametrize("remote_buffers", [False, True])
def test_programs_compiled_ahead_of_time_are_found(cache, lowered, remote_buffers):
    """The guide, "Pre-compiling executables": with remote buffers, which the script does not ask for when it runs."""
    config = IPUConfig()
    config.auto_select_ipus = 1
    config.device_connection.type = DeviceConnectionType.PRE_COMPILE
    config.device_connection.version = "ipu2"
    config.device_connection.enable_remote_buffers = remote_buffers
    config.configure_ipu_system()
    np.testing.assert_array_equal(product(), np.zeros([2, 2]))
    configured()
    np.testing.assert_array_equal(product(), np.full([2, 2], 36.0))
    assert len(lowered) == 1


def test_a_cached_program_has_no_profile_even_if_not_run(cache, tmp_path):
    reports = tmp_path / "reports"
    config = IPUConfig()
    config.auto_select_ipus = 1
    config.device_connection.type = DeviceConnectionType.PRE_COMPILE
    config.device_connection.version = "ipu2"
    config.compilation_poplar_options = {"autoReport.all": "true", "autoReport.directory": str(reports)}
    config.configure_ipu_system()
    for _ in range(2):
        np.testing.assert_array_equal(product(), np.zeros([2, 2]))
        assert len(list(reports.iterdir())) == 1
    assert cache_of() == "hit"
    product(factor=3.0)
    assert (len(list(reports.iterdir())), cache_of()) == (2, "miss")


def fed_loop(start, count=4):
    """A loop with feeds of its own, sharded, with a variable and random numbers: all that has a name."""
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = tf.data.Dataset.range(start, start + count).map(lambda n: tf.fill([2], tf.cast(n, tf.float32)))
        infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(dataset), ipu_outfeed_queue.IPUOutfeedQueue()

        def body(total, x):
            with scopes.ipu_shard(0):
                weight = v1.get_variable("w", initializer=[1.0, 1.0], use_resource=True)
                total = total + x * weight.assign_add([1.0, 1.0])
            with scopes.ipu_shard(1):
                noise = tf.random.uniform([2], 0.0, 1e-6)
                return total, outfeed.enqueue(tf.nn.relu(total + noise))

        with scopes.ipu_scope("/device:IPU:0"):
            (total,) = ipu_compiler.compile(lambda: loops.repeat(count, body, [tf.zeros([2])], infeed))
        session.run([infeed.initializer, v1.global_variables_initializer()])
        taken = outfeed.dequeue()
        result = session.run(total)
        return result, session.run(taken)


@pytest.mark.one_version
def test_programs_with_feeds_get_those_of_their_own_graph(cache, lowered, ipus):
    ipus(2)
    for start in (1, 100, 1000):
        total, sent = fed_loop(start)
        numbers = np.arange(start, start + 4) * np.arange(2, 6)
        np.testing.assert_array_equal(total, np.full(2, numbers.sum(), np.float32))
        np.testing.assert_allclose(sent[:, 0], np.cumsum(numbers), rtol=1e-5)
    assert len(lowered) == 1


def summed_over_replicas(start):
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = tf.data.Dataset.range(start, start + 8).map(lambda n: tf.cast(n, tf.float32))
        infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(dataset), ipu_outfeed_queue.IPUOutfeedQueue()

        def body(x):
            return outfeed.enqueue(ipu.cross_replica_ops.cross_replica_sum(tf.fill([2], x)))

        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(lambda: loops.repeat(4, body, [], infeed))
        taken = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)
        return session.run(taken)


@pytest.mark.one_version
def test_replicated_programs_run_from_it(cache, lowered, ipus):
    ipus(2)
    for start in (1, 100):
        sent = summed_over_replicas(start)
        expected = np.arange(start, start + 8).reshape(4, 2).sum(axis=1)
        np.testing.assert_array_equal(sent[:, 0, 0], expected)
        np.testing.assert_array_equal(sent[:, 1, 1], expected)
    assert len(lowered) == 1


def test_replicated_programs_compiled_ahead_of_time_run_from_it(cache, lowered, ipus):
    config = IPUConfig()
    config.auto_select_ipus = 2
    config.device_connection.type = DeviceConnectionType.PRE_COMPILE
    config.device_connection.version = "ipu2"
    config.configure_ipu_system()
    assert not np.any(summed_over_replicas(1))
    ipus(2)
    sent = summed_over_replicas(1)
    np.testing.assert_array_equal(sent[:, 1, 0], np.arange(1, 9).reshape(4, 2).sum(axis=1))
    assert len(lowered) == 1


def test_functions_of_a_strategy_are_found(cache, lowered, ipus):
    ipus()
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    for _ in range(2):
        with strategy.scope():
            function = tf.function(lambda x: tf.matmul(x, x) + tf.where(tf.reduce_sum(x) > 0.0, 1.0, 0.0))
            np.testing.assert_array_equal(strategy.run(function, args=[tf.ones([2, 2])]), np.full([2, 2], 3.0))
    assert len(lowered) == 1


def test_programs_by_kernels_are_found(monkeypatch, cache, lowered, ipus):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "kernels")
    ipus()
    for value in (3.0, 5.0):
        np.testing.assert_array_equal(product(value), np.full([2, 2], 4.0 * value * value))
    assert len(lowered) == 1
    assert [plan.mode for plan in memory_report().devices[0].programs] == ["kernels", "kernels"]


def test_programs_that_stop_at_exceptions_are_not_kept(cache, ipus):
    config = IPUConfig()
    config.floating_point_behaviour.div0 = True
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    product()
    assert not cache.exists()


def test_out_of_memory_is_found_out_again(cache, monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", os.environ["TF_POPLAR_FLAGS"] + " --use_ipu_model --ipu_model_tiles=1")
    for _ in range(2):
        configured()
        with pytest.raises(tf.errors.InternalError, match="[Oo]ut of memory"):
            product(shape=(1000, 1000))
    assert files(cache) == []


def test_trace_events_say_what_was_found(cache, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.3")
    found = []
    for _ in range(2):
        configured(**{"_profiling.enable_ipu_events": True})
        product()
        with tf.Graph().as_default(), v1.Session() as session:
            events = utils.extract_all_events(session.run(gen_ipu_ops.ipu_event_trace()))
        found += [event.compile_begin.cluster_info for event in events if event.HasField("compile_begin")]
    assert [json.loads(text) for text in found] == [{"executable_cache": "miss"}, {"executable_cache": "hit"}]


def test_log_lines_say_what_was_found(cache, monkeypatch, ipus, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    ipus()
    product()
    product()
    lines = [line for line in capfd.readouterr().err.splitlines() if "Executable cache" in line]
    (name,) = files(cache)
    assert ["miss" in line for line in lines] == [True, False]
    assert all(str(cache / name) in line for line in lines)


def test_log_lines_name_the_function_of_the_script(cache, monkeypatch, ipus, capfd):
    @tf.function(jit_compile=True)
    def train_step(x):
        return x @ x

    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    ipus()
    with tf.device("/device:IPU:0"):
        train_step(tf.ones([2, 2]))
    assert "miss, program train_step was compiled" in capfd.readouterr().err


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        lambda file: file.write_bytes(file.read_bytes()[:-1] + b"?"),
        lambda file: file.write_bytes(b"of a real IPU"),
        lambda file: file.chmod(0o666),
        lambda file: (file.rename(file.with_name("other")), file.symlink_to(file.with_name("other"))),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: file.write_bytes(
            executable_cache._MARK + executable_cache.hashlib.sha256(b"\xff").digest() + b"\xff"
        ),
    ],
    ids=["empty", "cut", "changed", "foreign", "writable", "link", "directory", "no message"],
)
def test_files_that_cannot_be_trusted_are_not_used(cache, lowered, ipus, damage, monkeypatch, capfd):
    ipus()
    product()
    (name,) = files(cache)
    damage(cache / name)
    np.testing.assert_array_equal(product(5.0), np.full([2, 2], 100.0))
    assert len(lowered) == 2


def test_a_file_of_another_program_is_not_used(cache, lowered, ipus):
    ipus()
    product(factor=2.0)
    (first,) = files(cache)
    product(factor=4.0)
    (second,) = {*files(cache)} - {first}
    (cache / second).write_bytes((cache / first).read_bytes())
    np.testing.assert_array_equal(product(factor=4.0), np.full([2, 2], 72.0))
    assert len(lowered) == 3


def test_directories_that_others_may_write_to_are_not_used(monkeypatch, tmp_path, lowered, ipus, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={shared}")
    ipus()
    product()
    product()
    assert files(shared) == []
    assert len(lowered) == 2
    assert "may be written to by others" in capfd.readouterr().err


def test_directories_of_others_are_not_used(monkeypatch, cache, ipus, lowered):
    cache.mkdir(parents=True)
    if os.getuid() == 0:  # whose files everybody trusts
        os.chown(cache, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: cache.stat().st_uid + 1)
    ipus()
    product()
    assert files(cache) == []
    assert len(lowered) == 1


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")])
def test_directories_that_cannot_be_written_are_read(monkeypatch, cache, ipus, lowered, error):
    ipus()
    product()

    def refuse(*_, **__):
        raise error

    monkeypatch.setattr(executable_cache.tempfile, "mkstemp", refuse)
    product(factor=4.0)
    product()
    assert (len(files(cache)), len(lowered)) == (1, 2)


def test_a_file_in_place_of_the_directory_is_survived(monkeypatch, tmp_path, ipus):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={tmp_path / 'file'}")
    ipus()
    np.testing.assert_array_equal(product(), np.full([2, 2], 36.0))


@pytest.mark.one_version
def test_plans_are_kept_whole(ipus):
    ipus(2)
    fed_loop(1)
    for plan in memory_report().devices[0].programs:
        assert plan_text.from_text(plan_text.to_text(plan)) == plan
    for text in ("{}", "[]", '{"variables": 3}'):
        with pytest.raises(ValueError, match="No memory plan"):
            plan_text.from_text(text)
