"""Errors that Graphcore documents of configurations, feeds, loops, scopes and strategies."""

import documented_errors
import pytest
import tensorflow as tf
from compiling import compile_, placeholder
from feeding import numbers
from tf_ipu_shim.ipu import config, ipu_compiler, loops, scopes, utils
from tf_ipu_shim.ipu.distributed import basics
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue, IPUIterator
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue, ScopedIPUOutfeedQueue

from tf_ipu_shim import ipu

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
NEVER = config.DeviceConnectionType.NEVER


def configured(**options):
    made = config.IPUConfig()
    for name, value in options.items():
        category, _, option = name.rpartition("__")
        setattr(getattr(made, category) if category else made, option, value)
    return made


def with_io_tiles():
    made = configured(auto_select_ipus=2, io_tiles__num_io_tiles=32, io_tiles__place_ops_on_io_tiles=True)
    made.norms.experimental.distributed_batch_norm_replica_group_size = 2
    made.configure_ipu_system()


CONFIGURATIONS = [
    ("option", TypeError, "Trying to set … to …, but", lambda: configured(auto_select_ipus="1")),
    ("option", ValueError, "'nonsense' is not a valid attribute of", lambda: configured().nonsense),
    ("option", Exception, "is a category and cannot be", lambda: configured(io_tiles=1)),
    (
        "option",
        ValueError,
        "Could not get attribute metadata for 'io_tiles.nonsense'",
        lambda: configured().get_attribute_metadata("io_tiles.nonsense"),
    ),
    (
        "selection",
        Exception,
        "Only one of `auto_select_ipus` and `select_ipus` can",
        lambda: configured(auto_select_ipus=1, select_ipus=[0]).configure_ipu_system(),
    ),
    (
        "selection",
        ValueError,
        "All MultiIPU indices in `select_ipus` must be",
        lambda: configured(select_ipus=[1, 1]).configure_ipu_system(),
    ),
    (
        "tiles",
        ValueError,
        "norms.experimental.distributed_batch_norm_replica_group_size is not supported with I/O tiles",
        with_io_tiles,
    ),
    ("system", TypeError, "`config` must be an IpuOptions instance", lambda: config.configure_ipu_system(1)),
    ("system", RuntimeError, "No IPU devices configured.", config.get_ipu_config),
]


@documented_errors.cases(CONFIGURATIONS)
def test_a_configuration(error, words, call):
    documented_errors.check(error, words, call)


def test_a_device_that_a_model_has_not(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    words = "When using the IPUModel, the devices to"
    documented_errors.check(Exception, words, configured(select_ipus=[0]).configure_ipu_system)


def queue(**options):
    return IPUInfeedQueue(numbers(2, (2,)), **options)


def sent_twice():
    def model(x):
        outfeed = IPUOutfeedQueue()
        outfeed.enqueue(x)
        return outfeed.enqueue(x)

    compile_(model, placeholder(2))


def started_twice():
    made = queue()
    assert made.initializer and made.initializer


def taken(**options):
    return next(IPUIterator(dataset=numbers(2, (2,)), **options))


EAGER_FEEDS = [
    (
        "infeed",
        ValueError,
        "Output shape … is not fully defined.",
        lambda: IPUInfeedQueue(tf.data.Dataset.range(5).batch(2)),
    ),
    ("infeed", ValueError, "prefetch_depth must be greater than zero, but", lambda: queue(prefetch_depth=-1)),
    ("infeed", ValueError, "prefetch_depth must be less than 256, but", lambda: queue(prefetch_depth=256)),
    ("infeed", ValueError, "Device ordinal must be an integer", lambda: queue(device_ordinal="0")),
    ("infeed", ValueError, "Device ordinal must be >= 0", lambda: queue(device_ordinal=-1)),
    (
        "infeed",
        ValueError,
        "`get_next()` is now obsolete as the IPUInfeedQueue",
        lambda: queue().get_next(),
    ),
    ("iterator", ValueError, "`dataset`", IPUIterator),
    ("iterator", ValueError, "`element_spec`", lambda: taken(element_spec=tf.TensorSpec([2]))),
    ("iterator", RuntimeError, "Accessing dataset elements can not be accessed", taken),
    (
        "iterator",
        NotImplementedError,
        "IPU Dataset iterator does not support get_next_as_optional()",
        lambda: IPUIterator(dataset=numbers(2)).get_next_as_optional(),
    ),
    (
        "outfeed",
        ValueError,
        "Expected `outfeed_mode` value to be of `ipu_outfeed_queue.IPUOutfeedMode`",
        lambda: IPUOutfeedQueue(outfeed_mode="all"),
    ),
    ("outfeed", ValueError, "Device ordinal must be an integer", lambda: IPUOutfeedQueue(device_ordinal="0")),
    ("outfeed", ValueError, "Device ordinal must be >= 0", lambda: IPUOutfeedQueue(device_ordinal=-1)),
    ("outfeed", ValueError, "Outfeed buffer depth cannot be less than", lambda: IPUOutfeedQueue(buffer_depth=0)),
    (
        "outfeed",
        RuntimeError,
        "IPUOutfeedQueue can only be iterated over if",
        lambda: iter(IPUOutfeedQueue(outfeed_mode=IPUOutfeedMode.LAST)),
    ),
    ("outfeed", ValueError, "Trying to dequeue an outfeed which has", lambda: IPUOutfeedQueue().dequeue()),
]
FEEDS_OF_GRAPHS = [
    ("infeed", ValueError, "The IPUInfeedQueue `initializer` function can only be", started_twice),
    ("outfeed", RuntimeError, "IPUOutfeedQueue can only be iterated over in", lambda: iter(IPUOutfeedQueue())),
    ("outfeed", ValueError, "Trying to dequeue an outfeed which has", lambda: IPUOutfeedQueue().dequeue()),
    ("outfeed", ValueError, "An outfeed can only be enqueued once.", sent_twice),
    ("outfeed", RuntimeError, "ScopedIPUOutfeedQueue can only be created in eager", ScopedIPUOutfeedQueue),
]


@documented_errors.cases(EAGER_FEEDS)
def test_a_feed(error, words, call):
    documented_errors.check(error, words, call)


@documented_errors.cases(FEEDS_OF_GRAPHS)
def test_a_feed_of_a_graph(graph, error, words, call):
    documented_errors.check(error, words, call)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("deleter", "IPUInfeedQueue created from spec cannot be deleted"),
        ("initializer", "IPUInfeedQueue created from spec should already be initialized"),
    ],
)
def test_an_infeed_of_a_spec(what, words):
    made = queue()
    _ = made.initializer
    copy = IPUInfeedQueue._from_type_spec(made._type_spec)
    documented_errors.check(RuntimeError, words, lambda: getattr(copy, what))


def program(function):
    return lambda: compile_(lambda x: function(x), placeholder(2))


def nested_scopes(x):
    with scopes.outside_compilation_scope(), scopes.outside_compilation_scope():
        return x + 1.0


def outside_a_program():
    with scopes.outside_compilation_scope():
        tf.constant(1.0)


def counted(condition, body, *feed):
    return program(lambda _: loops.while_loop(condition, body, [tf.constant(0)], *feed))


BODY = "Supplied loop body function cannot be called"
CONDITION = "Supplied loop condition function cannot be called"
PROGRAMS = [
    (
        "compile",
        Exception,
        "A computation has been compiled, however it",
        lambda: ipu_compiler.compile(lambda x: x + 1.0, [placeholder(2)]),
    ),
    ("repeat", TypeError, BODY, program(lambda x: loops.repeat(2, lambda a, b: a, [x]))),
    ("repeat", TypeError, BODY, program(lambda x: loops.repeat(2, lambda a: a, [x], queue()))),
    ("while", TypeError, BODY, counted(lambda i: i < 2, lambda i, j: i)),
    ("while", TypeError, CONDITION, counted(lambda i, j: i < 2, lambda i: i)),
    ("while", TypeError, CONDITION, lambda: counted(lambda i, j: i < 2, lambda i, x: i, queue())()),
    (
        "while",
        ValueError,
        "IPU loop body must return zero or",
        counted(lambda i: i < 2, lambda i: (tf.no_op(), i + 1)),
    ),
    (
        "while",
        TypeError,
        "Mismatch between input types and output types",
        counted(lambda i: i < 2, lambda i: tf.cast(i, tf.float32)),
    ),
    ("scope", ValueError, "outside_compilation_scope is only allowed in XLA context", outside_a_program),
    ("scope", ValueError, "Illegal nesting of outside_compilation_scope", program(nested_scopes)),
]


@documented_errors.cases(PROGRAMS)
def test_a_program(graph, error, words, call):
    documented_errors.check(error, words, call)


@pytest.mark.parametrize("dtype", [tf.int32, tf.float64])
def test_partials_of_another_type(dtype):
    def entered():
        with scopes.partials_type(dtype):
            pass

    documented_errors.check(ValueError, "Only support float16, float32, provided", entered)


def strategy():
    return ipu.ipu_strategy.IPUStrategyV1()


def reduced_oddly():
    made = strategy()

    def step():
        return made.extended._reduce_to("middle", tf.constant(1.0), "/device:IPU:0", None)

    with made.scope():
        made.run(tf.function(step, autograph=False))


STRATEGIES = [
    (
        "strategy",
        TypeError,
        "Unsupported data type for",
        lambda: strategy().run(tf.function(lambda x: x), [tf.constant(1.0, tf.float64)]),
    ),
    (
        "strategy",
        TypeError,
        "Unsupported data type for",
        lambda: strategy().run(tf.function(lambda: tf.constant(1.0, tf.float64))),
    ),
    (
        "strategy",
        ValueError,
        "IPUStrategyV1.run(fn, ...) does not support eager execution.",
        lambda: strategy().run(lambda: 1.0),
    ),
    ("strategy", ValueError, "Unsupported reduce op:", reduced_oddly),
    (
        "horovod",
        NotImplementedError,
        "The Adasum reduction is not implemented.",
        lambda: ipu.horovod.allreduce(tf.constant(1.0), op=ipu.horovod.Adasum),
    ),
    *(
        (
            name,
            ValueError,
            "Horovod has not been initialized; use hvd.init()",
            lambda name=name: getattr(basics.HorovodBasics(), name)(),
        )
        for name in ("local_rank", "local_size", "mpi_threads_supported", "rank", "size")
    ),
]


@documented_errors.cases(STRATEGIES)
def test_a_strategy(ipus, error, words, call):
    ipus(1)
    documented_errors.check(error, words, call)


def test_the_older_run(ipus, monkeypatch):
    ipus(1)
    step = tf.function(lambda: tf.constant(1.0))
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "3.4")
    words = "`experimental_run_v2` has been deleted. Use `run` instead"
    documented_errors.check(RuntimeError, words, lambda: strategy().experimental_run_v2(step))


def test_a_file_of_no_dataset(tmp_path):
    documented_errors.check(AssertionError, "", lambda: utils.export_dataset_to_file(1, str(tmp_path / "data"), 1))


def options():
    return utils.create_ipu_config()


def selected():
    return utils.auto_select_ipus(options(), 1)


OLD = [
    ("select", Exception, "IPU devices have already been configured.", lambda: utils.auto_select_ipus(selected(), 1)),
    ("select", Exception, "IPU devices have already been configured.", lambda: utils.select_ipus(selected(), [0])),
    (
        "select",
        Exception,
        "`num_ipus` must be an integer, list or",
        lambda: utils.auto_select_ipus(options(), "1"),
    ),
    ("select", Exception, "`indices` must be a list or tuple", lambda: utils.select_ipus(options(), 1)),
    (
        "select",
        Exception,
        "All device indices in `indices` must be",
        lambda: utils.select_ipus(options(), [1, 1]),
    ),
    (
        "profile",
        Exception,
        "`profiling` and `enable_ipu_events` are mutually exclusive",
        lambda: utils.create_ipu_config(profiling=True, enable_ipu_events=True),
    ),
    (
        "profile",
        Exception,
        "`profiling` is required when `profile_execution` is set",
        lambda: utils.create_ipu_config(profile_execution=True),
    ),
    (
        "profile",
        Exception,
        "`profile_execution` must be True, False, or an",
        lambda: utils.create_ipu_config(profiling=True, profile_execution="all"),
    ),
    (
        "scheduler",
        TypeError,
        "Could not convert 'nonsense' to a valid",
        lambda: utils.create_ipu_config(scheduler_selection="nonsense"),
    ),
    (
        "distribution",
        ValueError,
        "0 <= process_index < process_count",
        lambda: utils.set_experimental_multi_replica_distribution_options(options(), 2, 2),
    ),
    (
        "tiles",
        ValueError,
        "Cannot place ops on I/O tiles when",
        lambda: utils.set_io_tile_options(options(), 0, True),
    ),
    (
        "connection",
        Exception,
        "`ipu_version` must be specified when `connection_type` is",
        lambda: utils.set_ipu_connection_type(options(), NEVER, ""),
    ),
    (
        "verification",
        Exception,
        "`verification_options` must be of type VerificationOptions",
        lambda: utils.set_verification_options(options(), 1),
    ),
    *(
        (name, Exception, f"`{name}` must be a dictionary", lambda n=name: getattr(utils, f"set_{n}")(options(), "x"))
        for name in ("compilation_options", "convolution_options", "matmul_options", "pooling_options", "gcl_options")
    ),
    *(
        (
            name,
            Exception,
            f"`{name}` must be a dictionary",
            lambda n=name: utils.set_report_options(options(), **{n: 1}),
        )
        for name in ("graph_options", "execution_options")
    ),
]


@pytest.mark.filterwarnings("ignore")
@documented_errors.cases(OLD)
def test_functions_of_older_configurations(monkeypatch, error, words, call):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    documented_errors.check(error, words, call)
