"""What options change, one function for each effect or program: a value that differs with the option set."""

import pathlib
import shutil
import tempfile

import numpy as np
import pytest
import tensorflow as tf
from option_runs import COMPILE_ONLY, STAGES, WIDTH, pipeline
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, nn_ops, scopes, utils
from tf_ipu_shim.ipu.config import DeviceConnectionType
from tf_ipu_shim.ipu.ops import all_to_all_op, cross_replica_ops
from tf_ipu_shim.poplar.ops import gen_ipu_ops

from tf_ipu_shim import memory_report
from tf_ipu_shim.profiling import reader
from tf_ipu_shim.runtime import devices

v1 = tf.compat.v1
_WRITTEN = tempfile.TemporaryDirectory(prefix="tf_ipu_shim_options_", ignore_cleanup_errors=True)
CACHE, REPORTS = pathlib.Path(_WRITTEN.name) / "cache", pathlib.Path(_WRITTEN.name) / "reports"
REPORT = {"autoReport.all": "true", "autoReport.directory": str(REPORTS / "a")}


def plan():
    return memory_report().devices[0].programs[-1]


# What is looked at, for each effect. Each takes the settings of one exercise.


def memory(environment, config=None, flags="", engine=None, ipus=STAGES, tiles=None, call=pipeline, **options):
    """The modelled bytes of a training pipeline, or of another call, by IPU; or that it is out of memory."""
    config = {**COMPILE_ONLY, **(config or {})}
    if tiles:
        flags, config = "--use_ipu_model", {**config, "ipu_model.tiles_per_ipu": tiles}
        del config["device_connection.version"]
        config["device_connection.type"] = DeviceConnectionType.ALWAYS
    environment(config, flags, engine, ipus)
    try:
        call(**options, width=512 if tiles else WIDTH)  # a megabyte of weights, for a tile of 624 KiB
    except tf.errors.InternalError as error:
        assert "ut of memory" in str(error)
        return "out of memory"
    return [(dict(ipu.categories), dict(ipu.remote)) for ipu in plan().ipus]


def machine(environment, config=None, flags=""):
    """The chip that programs are compiled for."""
    environment(config, flags)
    return devices.get(0, attach=False).chip


def places(environment, config=None, flags="", waits=False, monkeypatch=None, **options):
    """Which IPUs there are, how they are attached and waited for, and between which a pipeline's exchanges are."""
    if waits:
        return waited(environment, flags, monkeypatch)
    environment(config, flags)
    device = devices.get(0, attach=False)
    seen = [device.num_ipus, device.poplar_id, device.attached, device.connection, device.on_model]
    environment({**COMPILE_ONLY, **{key: value for key, value in (config or {}).items() if key == "selection_order"}})
    pipeline(**options)
    return seen, sorted(plan().exchanges)


def waited(environment, flags, monkeypatch):
    """Seconds that a device waits before its second try, with a clock that stands still."""
    environment(flags=f"--use_on_demand {flags}")
    device = devices.get(0, attach=False)
    seconds = []
    monkeypatch.setattr("tf_ipu_shim.machine.sharing.attach.attach_first", lambda *_: None)
    monkeypatch.setattr("tf_ipu_shim.machine.sharing.attach.time.monotonic", lambda: 0.0)

    def wait(time):
        seconds.append(time)
        device._closed.set()
        return True

    monkeypatch.setattr(device._closed, "wait", wait)
    with pytest.raises(tf.errors.CancelledError):
        device.attach()
    monkeypatch.undo()
    return seconds


def results(environment, config=None, flags="", engine=None, call=pipeline, **options):
    """What a call gives."""
    environment(config, flags, engine, ipus=2)
    return call(**({"stages": 2, "count": 4} if call is pipeline else {}), **options)


def output(environment, config=None, flags="", sdk="3.4", engine=None, capfd=None):
    """Trace events, what goes to stderr, and files of programs, profiles and tensors, of configuring and compiling."""
    environment(config, flags, engine, sdk=sdk)
    with tf.Graph().as_default(), v1.Session() as session:
        with scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu_compiler.compile(lambda: tf.matmul(tf.ones([4, 4]), tf.random.uniform([4, 4])))
        for _ in range(4):
            session.run(result)
        events = session.run(gen_ipu_ops.ipu_event_trace())
    kept = [len(list(CACHE.glob(files))) for files in ("*.ipu_program", "*.tensor_map.json", "*.ipu_bin")]
    shutil.rmtree(CACHE, ignore_errors=True)
    texts = bool(capfd.readouterr().err)
    reports = [extract(events) for extract in (utils.extract_compile_reports, utils.extract_execute_reports)]
    told = [[text.startswith("{") for _, text in several] for several in reports]  # else they are paths
    return utils.extract_all_types_from_event_trace(events), texts, told, kept, profiles()


_COUNTED = ("product", "solve", "feed", "collective", "host")


def cycles(environment, config=None, call=None, **options):
    """Cycles of products, solves, collectives, copies and feeds; what the largest product needs beside the tensors."""
    run = call or products
    ipus = STAGES if run in (pipeline, collectives) else 1
    environment({**COMPILE_ONLY, **(config or {})}, engine=REPORT, ipus=ipus)
    run(**options)
    (file,) = REPORTS.glob("*/*/profile.pop")
    steps = [row.cycles for row in reader.read_profile(file).programs if row.computation in _COUNTED]
    shutil.rmtree(REPORTS, ignore_errors=True)
    return steps, [ipu.library for ipu in plan().ipus]


def on_the_host():
    """Compiles two additions on the host, of what an IPU makes and takes."""

    def body(x):
        with scopes.outside_compilation_scope():
            first, second = x + 1.0, x * 2.0 + 2.0
        return first * second

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [8, 8])
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(lambda x: body(x * 3.0), [x])
        session.run(result, {x: np.ones((8, 8))})


def solves():
    """Compiles the solution of a triangular system."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [64, 64])
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(tf.linalg.triangular_solve, [x, x])
        session.run(result, {x: np.eye(64)})


def collectives():
    """Compiles two sums over four replicas, and two gathers, of which none needs another."""

    def body(x):
        sums = [cross_replica_ops.cross_replica_sum(x * float(number)) for number in (2, 3)]
        return sums, [all_to_all_op.all_gather(x * float(number), 4) for number in (4, 5)]

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [8, 8])
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(body, [x])
        session.run(result, {x: np.ones([8, 8], "f")})


def products(options=None):
    """Runs a matrix product and a convolution of halves."""

    def both(x, image):
        convolved = nn_ops.multi_conv(
            lambda: tf.nn.conv2d(image, tf.ones([3, 3, 32, 64], tf.float16), 1, "SAME"), options
        )
        return tf.matmul(x, tf.ones([256, 128], tf.float16)), convolved()

    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(tf.float16, shape) for shape in ([128, 256], [1, 16, 16, 32])]
        with scopes.ipu_scope("/device:IPU:0"):
            built = ipu_compiler.compile(both, fed)
        session.run(built, {one: np.ones(one.shape, np.float16) for one in fed})


def profiles():
    """The directory, whether liveness is there and the number of runs of each profile; then they are removed."""
    found = []
    for file in sorted(REPORTS.glob("*/*/profile.pop")):
        runs = reader.read_runs(file)
        found.append((file.parts[-3], bool(reader.read_profile(file).liveness), runs and len(runs)))
    shutil.rmtree(REPORTS, ignore_errors=True)
    return found


def fed(synthetic=False):
    """A loop's outfeed of its infeed."""
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(5, 100).map(lambda x: tf.cast(x, tf.float32)))
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(
                lambda: loops.repeat(3, lambda x: outfeed.enqueue(tf.fill([2], x)), infeed_queue=infeed)
            )
        taken = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)
        return session.run(taken).tolist()


def streamed():
    """Runs a loop whose infeed has elements of 16 KiB."""
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones([64, 64], "f")).repeat())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(lambda: loops.repeat(2, lambda x: outfeed.enqueue(x + x), infeed_queue=infeed))
        outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)


def normalised():
    """The mean that each replica normalises its batch by: the batches are 0, 1, 2, ... throughout."""
    with tf.Graph().as_default(), v1.Session() as session:
        batches = tf.data.Dataset.range(100).map(lambda number: tf.fill([4, 2, 2, 3], tf.cast(number, tf.float32)))
        infeed = ipu_infeed_queue.IPUInfeedQueue(batches)
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def body(x):
            return outfeed.enqueue(v1.nn.fused_batch_norm(x, tf.ones([3]), tf.zeros([3]), is_training=True)[1])

        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(lambda: loops.repeat(2, body, infeed_queue=infeed))
        taken = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(run)
        return session.run(taken).tolist()


def broken(rule):
    """What a program gives that breaks a rule of arithmetic in float16; the exception where it stops."""
    left, right = {"0/0": (0.0, 0.0), "1/0": (1.0, 0.0), "max*2": (60000.0, 2.0)}[rule]
    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(tf.float16, []) for _ in range(2)]
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(tf.multiply if "*" in rule else tf.divide, fed)
        try:
            return str(session.run(result, dict(zip(fed, (left, right)))))
        except tf.errors.InternalError as error:
            assert "Tiles in excepted state" in error.message
            return "stopped"


def rounded():
    """What a program makes of numbers that are no float16, after a seed."""
    utils.reset_ipu_seed(1)
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [64])
        with scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu_compiler.compile(lambda x: tf.cast(x, tf.float16), [fed])
        return session.run(result, {fed: np.linspace(0.1, 0.7, 64)}).tolist()
