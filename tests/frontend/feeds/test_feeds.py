"""Infeeds and outfeeds: elements, modes, their ends and lives, against NumPy."""

import copy
import gc
import pickle
import threading

import numpy as np
import pytest
import tensorflow as tf
from compiling import IPU
from feeding import compiled, numbers
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedMode, IPUOutfeedQueue, ScopedIPUOutfeedQueue
from tf_ipu_shim.poplar.ops import gen_pop_datastream_ops

from tf_ipu_shim import ipu

v1 = tf.compat.v1


@pytest.mark.parametrize("structure", ["tuple", "dict", "dict in a tuple", "dict of numbers"])
def test_elements_keep_their_structure(graph, structure):
    pairs = tf.data.Dataset.zip((numbers(4), numbers(4, (2,)))).repeat()
    if structure == "dict of numbers":  # which cannot be keywords
        infeed = IPUInfeedQueue(pairs.map(lambda a, b: {0: a, 1: b}))
    elif "dict" in structure:
        named = pairs.map(lambda a, b: {"scale": a, "vector": b})
        infeed = IPUInfeedQueue(named if structure == "dict" else tf.data.Dataset.zip((named,)))
    else:
        infeed = IPUInfeedQueue(pairs)

    def body(total, scale, vector):
        return total + scale * vector

    def of_numbers(total, element):
        return body(total, element[0], element[1])

    run = of_numbers if structure == "dict of numbers" else body
    total = compiled(lambda: ipu.loops.repeat(4, run, [tf.zeros([2])], infeed))
    with v1.Session() as session:
        session.run(infeed.initializer)
        expected = sum(a * np.array([2 * a, 2 * a + 1]) for a in range(4))
        np.testing.assert_allclose(session.run(total)[0], expected)


def test_the_outfeed_stacks_iterations(graph):
    infeed, outfeed = IPUInfeedQueue(numbers(10)), IPUOutfeedQueue()

    def body(total, x):
        return total + x, outfeed.enqueue({"x": x, "pair": (x * 2, tf.stack([x, total]))})

    total = compiled(lambda: ipu.loops.repeat(3, body, [0.0], infeed))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        assert session.run(total) == [3.0]
        got = session.run(dequeued)
        np.testing.assert_array_equal(got["x"], [0, 1, 2])
        np.testing.assert_array_equal(got["pair"][0], [0, 2, 4])
        np.testing.assert_array_equal(got["pair"][1], [[0, 0], [1, 0], [2, 1]])
        assert session.run(dequeued)["x"].shape == (0,), "taken once"
        session.run(total)
        session.run(total)
        np.testing.assert_array_equal(session.run(dequeued)["x"], range(3, 9))
        session.run(outfeed.deleter)


@pytest.mark.parametrize(
    "kind, name, instead",
    [(np.int64, "int64", "int32"), (np.uint64, "uint64", "uint32"), (np.float64, "double", "float32")],
)
def test_numbers_of_64_bits_are_not_fed(graph, kind, name, instead):
    dataset = tf.data.Dataset.from_tensor_slices((np.zeros(3, np.float32), np.zeros(3, kind)))
    infeed = IPUInfeedQueue(dataset)
    compiled(lambda: ipu.loops.repeat(3, lambda total, x, _: total + x, [0.0], infeed))
    refused = rf"^Unsupported datatype {name} on index 1 of feed operation infeed.*tf\.cast\(\.\.\., tf\.{instead}\)"
    with pytest.raises(tf.errors.FailedPreconditionError, match=refused):
        _ = infeed.initializer


def test_an_infeed_that_is_deleted_starts_anew(graph):
    infeed = IPUInfeedQueue(numbers(3))
    total = compiled(lambda: ipu.loops.repeat(3, lambda total, x: total + x, [0.0], infeed))
    initializer, deleter = infeed.initializer, infeed.deleter
    with v1.Session() as session:
        for _ in range(2):
            session.run(initializer)
            assert session.run(total) == [3.0]
            session.run(deleter)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(total)


def test_a_queue_of_a_graph_is_started_and_freed_outside_it():
    """`with tf.Graph().as_default()` has ended, and what is asked for would be an op that runs at once."""
    with tf.Graph().as_default():
        infeed = IPUInfeedQueue(numbers(3))
        total = compiled(lambda: ipu.loops.repeat(3, lambda total, x: total + x, [0.0], infeed))
    with v1.Session(graph=total[0].graph) as session:
        initializer, deleter = infeed.initializer, infeed.deleter
        for _ in range(2):
            session.run(initializer)
            assert session.run(total) == [3.0]
            session.run(deleter)
    with pytest.raises(ValueError, match="can only be accessed once"):
        _ = infeed.initializer


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_queues_are_not_copied(graph, copied):
    """Two queues of one name would share elements, each with its own notion of what it is."""
    for queue in (IPUInfeedQueue(numbers(3)), IPUOutfeedQueue()):
        with pytest.raises(TypeError, match=rf"An {type(queue).__name__} cannot be copied or pickled: .*make another"):
            copied(queue)


def test_an_outfeed_for_the_last_element(graph):
    outfeed = IPUOutfeedQueue(outfeed_mode=IPUOutfeedMode.LAST)
    last = compiled(lambda: ipu.loops.repeat(4, lambda x: (x + 1, outfeed.enqueue([x])), [10.0]))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="is empty"):
            session.run(dequeued)
        assert session.run(last) == [14.0]
        assert session.run(dequeued) == [13.0]


def test_the_end_of_the_data_and_errors_in_it(graph):
    short = IPUInfeedQueue(numbers(3, repeat=False))
    total = compiled(lambda: ipu.loops.repeat(4, lambda total, x: total + x, [0.0], short))
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="iterator has not been initialized") as caught:
            session.run(total)
        assert "run infeed_queue.initializer before the first program" in str(caught.value)
        start = short.initializer
        session.run(start)
        end = r"End of sequence: the dataset of infeed 'infeed_\d+' has no more elements. End it with .repeat\(\)"
        with pytest.raises(tf.errors.OutOfRangeError, match=end):
            session.run(total)
        session.run(start)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(total)

    def fail(x):
        raise ValueError("broken element")

    broken = numbers(3).map(lambda x: tf.ensure_shape(tf.numpy_function(fail, [x], tf.float32), []))
    infeed = IPUInfeedQueue(broken)
    total = compiled(lambda: ipu.loops.repeat(2, lambda total, x: total + x, [0.0], infeed))
    with v1.Session() as session:
        session.run(infeed.initializer)
        with pytest.raises(tf.errors.InvalidArgumentError, match="broken element") as caught:
            session.run(total)
    assert f"\nThis happened in the dataset of infeed '{infeed._id}'." in str(caught.value)


def test_dequeue_while_the_program_runs(graph):
    release = threading.Event()

    def hold(i):
        if i == 3:
            release.wait(60)
        return i

    slow = tf.data.Dataset.range(6).map(
        lambda i: tf.ensure_shape(tf.numpy_function(hold, [tf.cast(i, tf.int32)], tf.int32), []), num_parallel_calls=1
    )
    infeed, outfeed = IPUInfeedQueue(slow), IPUOutfeedQueue()
    program = compiled(lambda: ipu.loops.repeat(6, lambda x: outfeed.enqueue(x), [], infeed))
    dequeued, finished = outfeed.dequeue(), outfeed.dequeue(wait_for_completion=True)
    with v1.Session() as session:
        session.run(infeed.initializer)
        thread = threading.Thread(target=session.run, args=(program,))
        thread.start()
        got: list[int] = []
        while len(got) < 3:
            got.extend(session.run(dequeued).tolist())
        assert got == [0, 1, 2] and thread.is_alive()
        threading.Timer(0.2, release.set).start()
        assert session.run(finished).tolist() == [3, 4, 5], "waits for the program to end"
        thread.join(60)


def test_a_program_does_not_wait_for_itself(graph):
    outfeed = IPUOutfeedQueue()

    def model(x):
        with tf.control_dependencies([outfeed.enqueue(x)]), ipu.scopes.outside_compilation_scope():
            return x + tf.reduce_sum(outfeed.dequeue(wait_for_completion=True))

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        result = ipu.ipu_compiler.compile(model, [tf.constant(1.0)])
    with v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="can only be called outside"):
        session.run(result)


def test_elements_may_have_parts_that_are_none():
    infeed = IPUInfeedQueue(tf.data.Dataset.from_tensors((2.0, None)).repeat())
    with tf.device(IPU):
        program = tf.function(lambda: ipu.loops.repeat(3, lambda y, x, _: y + x, [0.0], infeed), jit_compile=True)
        assert float(program()) == 6.0


def test_eager_queues():
    infeed, outfeed = IPUInfeedQueue(numbers(4)), IPUOutfeedQueue()
    assert list(outfeed) == [], "a thread may begin to read before the program is built"

    @tf.function(jit_compile=True)
    def program(start):
        return ipu.loops.repeat(3, lambda total, x: (total + x, outfeed.enqueue((x, total))), [start], infeed)

    with tf.device(IPU):
        assert float(program(tf.constant(10.0))) == 13.0
        assert float(program(tf.constant(10.0))) == 10 + 3 + 0 + 1
    xs, totals = outfeed.dequeue()
    np.testing.assert_array_equal(xs, [0, 1, 2, 3, 0, 1])
    np.testing.assert_array_equal(totals, [10, 10, 11, 10, 13, 13])
    _ = infeed.initializer  # starts the data anew
    with tf.device(IPU):
        assert float(program(tf.constant(0.0))) == 3.0
    assert [float(total) for _, total in outfeed] == [0.0, 0.0, 1.0]
    assert list(outfeed) == []


def test_a_scoped_outfeed_goes_with_its_object():
    scoped, same = ScopedIPUOutfeedQueue(), IPUOutfeedQueue()
    same._id = scoped._id  # a second look at the same feed

    def run(outfeed):
        @tf.function(jit_compile=True)
        def program(x):
            outfeed.enqueue(x)
            return x

        with tf.device(IPU):
            program(tf.constant(1.0))

    run(same)
    assert same.dequeue().shape == (1,)
    run(scoped)
    del scoped
    gc.collect()
    assert same.dequeue().shape == (0,)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: IPUInfeedQueue(numbers(9).batch(2)), ValueError, r"not fully defined.*drop_remainder=True"),
        (lambda: IPUInfeedQueue(numbers(2), prefetch_depth=-1), ValueError, "must be greater than zero"),
        (lambda: IPUInfeedQueue(numbers(2), prefetch_depth=256), ValueError, "must be less than 256"),
        (
            lambda: IPUInfeedQueue(numbers(2), prefetch_depth="3"),
            TypeError,
            "prefetch_depth must be an integer, not '3'",
        ),
        (lambda: IPUInfeedQueue([1.0, 2.0]), TypeError, "takes a tf.data.Dataset, not a list"),
        (
            lambda: IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.ragged.constant([[1.0], [2.0, 3.0]]))),
            ValueError,
            "tensors of fixed shapes, but this dataset's have a RaggedTensor",
        ),
        (lambda: IPUOutfeedQueue(buffer_depth=1.5), TypeError, "buffer_depth must be an integer, not 1.5"),
        (lambda: IPUInfeedQueue(numbers(2), device_ordinal=1.5), ValueError, "Device ordinal must be an integer"),
        (lambda: IPUInfeedQueue(numbers(2), device_ordinal=-1), ValueError, "Device ordinal must be >= 0"),
        (lambda: IPUInfeedQueue(numbers(2), colour="red"), TypeError, "no argument 'colour'"),
        (lambda: IPUInfeedQueue(numbers(2)).get_next(), ValueError, "`get_next\\(\\)` is now obsolete"),
        (lambda: IPUOutfeedQueue(outfeed_mode="all", device_ordinal=3), ValueError, "Expected `outfeed_mode` value"),
        (lambda: IPUOutfeedQueue(outfeed_mode=1), ValueError, "Expected `outfeed_mode` value"),
        (lambda: IPUOutfeedQueue(device_ordinal=-1), ValueError, "Device ordinal must be >= 0"),
        (lambda: IPUOutfeedQueue(buffer_depth=0), ValueError, "buffer depth cannot be less than"),
        (lambda: IPUOutfeedQueue().dequeue(), ValueError, "has not been enqueued"),
        (lambda: iter(IPUOutfeedQueue()), RuntimeError, "iterated over in eager mode"),
        (lambda: ScopedIPUOutfeedQueue(), RuntimeError, "eager mode"),
    ],
)
def test_wrong_queues(graph, make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_queue_is_enqueued_in_a_graph():
    outfeed = IPUOutfeedQueue()
    for _ in range(2):
        with tf.Graph().as_default():
            assert not outfeed.enqueued
            compiled(lambda: ipu.loops.repeat(2, lambda: outfeed.enqueue(tf.constant(1.0))))
            assert outfeed.enqueued
    assert outfeed.enqueued, "eager code sees what any graph has built"


def test_a_thread_takes_elements_before_the_program_is_built():
    """There are none yet. For the thread that made the queue it is a mistake, and where a graph is built."""
    outfeed, taken = IPUOutfeedQueue(), []

    def in_a_thread(function):
        thread = threading.Thread(target=function, daemon=True)
        thread.start()
        thread.join(60)

    def in_a_graph():
        with tf.Graph().as_default(), pytest.raises(ValueError, match="has not been enqueued"):
            outfeed.dequeue()
        taken.append("refused")

    @tf.function(jit_compile=True)
    def program():
        ipu.loops.repeat(3, lambda: outfeed.enqueue(tf.constant(2.0)), [])

    in_a_thread(in_a_graph)
    in_a_thread(lambda: taken.append(outfeed.dequeue()))
    with pytest.raises(ValueError, match="has not been enqueued"):
        outfeed.dequeue()
    with tf.device(IPU):
        program()
    in_a_thread(lambda: taken.append(outfeed.dequeue().numpy().tolist()))
    assert taken == ["refused", [], [2.0, 2.0, 2.0]]


def test_a_queue_is_enqueued_once_all_of_it_is_known():
    """Another thread that dequeues while the program is traced used to end the process."""
    outfeed, seen = IPUOutfeedQueue(), []

    class Looks:
        def __array__(self, dtype=None):
            thread = threading.Thread(target=lambda: seen.append((outfeed.enqueued, list(outfeed))))
            thread.start()
            thread.join()
            return np.ones([2], np.float32)

    with tf.Graph().as_default():
        compiled(lambda: ipu.loops.repeat(2, lambda: outfeed.enqueue((tf.constant(1.0), Looks()))))
    assert seen == [(False, [])] and outfeed.enqueued


@pytest.mark.parametrize(
    ("types", "shapes", "text"),
    [
        ([tf.float32], [], "1 outputs and 0 shapes"),
        ([tf.float32, tf.float32], [[], []], "is dequeued as .*, and programs have sent float"),
        ([tf.int32], [[]], "is dequeued as .*, and programs have sent float"),
    ],
)
@pytest.mark.parametrize("mode", ["all", "get_last"])
def test_a_dequeue_that_is_not_what_was_sent(types, shapes, text, mode):
    outfeed = IPUOutfeedQueue(outfeed_mode=IPUOutfeedMode(mode))

    @tf.function(jit_compile=True)
    def program():
        ipu.loops.repeat(2, lambda: outfeed.enqueue(tf.constant(1.0)))

    with tf.device(IPU):
        program()
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        gen_pop_datastream_ops.pop_datastream_outfeed_dequeue(types, shapes, outfeed._id, outfeed_mode=mode)


def test_elements_without_a_number_in_them(graph):
    infeed, outfeed = IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros([1, 0]))), IPUOutfeedQueue()
    with pytest.raises(tf.errors.InvalidArgumentError, match="to an infeed queue with a dimension of size 0"):
        _ = infeed.initializer
    program = compiled(lambda: outfeed.enqueue(tf.zeros([2, 0]) + 1.0))
    with v1.Session() as session:
        text = r"made at .*test_feeds.py:\d+, in .*: Detected an input tensor to an outfeed queue with a dimension of"
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            session.run(program)


def test_an_initializer_is_of_the_queues_own_graph(graph):
    other = tf.Graph()
    with other.as_default():
        infeed = IPUInfeedQueue(numbers(3))
        total = compiled(lambda: ipu.loops.repeat(3, lambda total, x: total + x, [0.0], infeed))
    other.finalize()
    with v1.Session(graph=other) as session:
        session.run(infeed.initializer)
        assert session.run(total) == [3.0]


def test_queues_are_used_once(graph):
    infeed, outfeed = IPUInfeedQueue(numbers(2)), IPUOutfeedQueue()
    assert infeed.initializer is not None
    with pytest.raises(ValueError, match="can only be accessed once"):
        _ = infeed.initializer
    with pytest.raises(ValueError, match="can only be enqueued once"):
        compiled(lambda: [outfeed.enqueue(tf.constant(1.0)), outfeed.enqueue(tf.constant(2.0))])


@pytest.mark.parametrize(
    "make",
    [
        lambda value: IPUInfeedQueue(numbers(1), optimise_latency=value),
        lambda value: IPUOutfeedQueue(optimise_latency=value),
    ],
)
def test_optimise_latency_is_a_switch(graph, make):
    make(True)
    with pytest.raises(TypeError, match="optimise_latency must be True or False, not 'False'"):
        make("False")


def test_arguments_of_older_sdks(graph, ipus, monkeypatch):
    """The name came before the device then, the mode after the name, and replicas were counted by hand."""
    ipus([1, 2])
    infeed = IPUInfeedQueue(numbers(5), "images", 1, replication_factor=2, data_to_prefetch=2)
    outfeed = IPUOutfeedQueue("results", IPUOutfeedMode.LAST, 1, replication_factor=2)
    with ipu.scopes.ipu_scope("/device:IPU:1"):
        program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(2, lambda x: outfeed.enqueue(x), [], infeed))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(program)
        assert session.run(dequeued).tolist() == [2.0, 3.0], "of each replica the last"
    with pytest.raises(ValueError, match="prefetch_depth must be less than 256, but 256"):
        IPUInfeedQueue(numbers(5), "images", 1, data_to_prefetch=256)
    IPUInfeedQueue(numbers(5), "images", prefetch_depth=2, device_ordinal=1)
    with pytest.raises(ValueError, match="prefetch_depth must be less than 256, but 300"):
        IPUInfeedQueue(numbers(5), "images", 0, 2, 300)
    with pytest.raises(ValueError, match="Device ordinal must be >= 0, not -1"):
        IPUOutfeedQueue("losses", outfeed_mode=IPUOutfeedMode.LAST, device_ordinal=-1)
    with pytest.raises(TypeError, match="'outfeed_mode' was given twice. With SDK 2.3 and older they are feed_"):
        IPUOutfeedQueue("losses", IPUOutfeedMode.LAST, outfeed_mode=IPUOutfeedMode.ALL)
    with pytest.raises(ValueError, match="Expcted value True or False for outfeed_all, not 3"):
        IPUOutfeedQueue("losses", outfeed_all=3)
    with pytest.raises(ValueError, match="Replication factor must be >= 1, but 0"):
        IPUOutfeedQueue("losses", replication_factor=0)
    with pytest.raises(ValueError, match="Device ordinal must be an integer, not True"):
        IPUOutfeedQueue("losses", None, True)
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "1.4")  # until SDK 2.0, `outfeed_all` is the third
    assert IPUOutfeedQueue("losses", None, True, 1, 2, 1)._device_ordinal == 1


def test_an_infeed_that_was_not_started_cannot_be_deleted(graph):
    infeed = IPUInfeedQueue(numbers(3))
    deleter = infeed.deleter
    with v1.Session() as session:
        with pytest.raises(tf.errors.NotFoundError, match="Infeed with id=.* Run its `initializer`"):
            session.run(deleter)
        session.run(infeed.initializer)
        session.run(deleter)


def test_two_programs_of_replicas_on_one_infeed(graph, ipus):
    """Each is at its first run: what the first has left of the dataset, or its end, is nothing to the second."""
    ipus([2])
    infeed, outfeed = IPUInfeedQueue(numbers(6, repeat=False)), IPUOutfeedQueue()

    def body(total, x):
        return total + ipu.ops.cross_replica_ops.cross_replica_sum(x), outfeed.enqueue(x)

    long, short = (compiled(lambda count=count: ipu.loops.repeat(count, body, [0.0], infeed)) for count in (5, 2))
    start, sent = infeed.initializer, outfeed.dequeue()
    with v1.Session() as session:
        session.run(start)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(long)
        np.testing.assert_array_equal(session.run(sent), [[0, 1], [2, 3], [4, 5]])
        session.run(start)
        assert session.run(short) == [6.0]
        np.testing.assert_array_equal(session.run(sent), [[0, 1], [2, 3]])


@pytest.mark.parametrize("restart", [True, False], ids=["started anew", "shared"])
def test_an_infeed_has_one_number_of_replicas(graph, ipus, restart):
    """Rows of four elements and single ones cannot both go on with one dataset."""
    ipus([4])
    infeed, sent = IPUInfeedQueue(numbers(4)), {}

    def program(shards):
        outfeed = IPUOutfeedQueue()

        def body(x):
            for shard in range(shards):
                with ipu.scopes.ipu_shard(shard):
                    x = x + 1.0
            return outfeed.enqueue(x)

        compiled_loop = compiled(lambda: ipu.loops.repeat(1, body, [], infeed))
        sent[shards] = outfeed.dequeue()
        return compiled_loop

    wide, narrow, start = program(1), program(4), infeed.initializer
    with v1.Session() as session:
        session.run(start)
        session.run(wide)
        assert session.run(sent[1]).tolist() == [[1.0, 2.0, 3.0, 4.0]]
        if not restart:
            with pytest.raises(tf.errors.FailedPreconditionError, match="a replication factor of 4 .* program has 1"):
                session.run(narrow)
            session.run(wide)
        else:
            session.run(start)
            session.run(narrow)
            assert session.run(sent[4]).tolist() == [4.0]
