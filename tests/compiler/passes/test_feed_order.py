"""Feeds are used in the script's order, and nothing happens for want of an element. Expected values are by hand."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, scopes

from tf_ipu_shim import plugin

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"


def numbers(count):
    return ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(count).map(lambda x: tf.cast(x, tf.float32)))


def compiled(model):
    with scopes.ipu_scope(IPU):
        return ipu_compiler.compile(model)


def add(total, x):
    return total + x


@pytest.mark.parametrize("shards", [1, 2])
def test_loops_on_one_infeed_follow_each_other(graph, ipus, execution_mode, shards):
    """The first takes 0 to 19, the second 20 to 39, the third the rest, whatever the second needs of the first."""
    ipus(shards)
    infeed, n = numbers(60), 20

    def body(total, x):
        with scopes.ipu_shard(shards - 1):
            return total + x

    def model():
        loop = lambda: loops.repeat(n, body, [0.0], infeed)  # noqa: E731
        first, second, third = loop(), loop(), loop()
        return third, second, first  # the order of results says nothing

    results, start = compiled(model), infeed.initializer
    with v1.Session() as session:
        for _ in range(3):
            session.run(start)
            assert session.run(results) == [sum(range(40, 60)), sum(range(20, 40)), sum(range(20))]


@pytest.mark.parametrize("elements", [0, 1, 7])
@pytest.mark.parametrize("shards", [1, 2])
def test_an_iteration_without_an_element_changes_nothing(graph, ipus, execution_mode, shards, elements):
    ipus(shards)
    infeed, outfeed = numbers(elements), ipu_outfeed_queue.IPUOutfeedQueue()
    counters = [v1.get_variable(f"counter_{shard}", initializer=0, use_resource=True) for shard in range(shards)]

    def body(total, x):
        operations = [outfeed.enqueue(total)]
        for shard, counter in enumerate(counters):
            with scopes.ipu_shard(shard):
                operations.append(counter.assign_add(1).op)
        return total + x, *operations

    result = compiled(lambda: loops.repeat(20, body, [0.0], infeed))
    rows = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(result)
        assert session.run(counters) == [elements] * shards
        np.testing.assert_array_equal(session.run(rows), [sum(range(n)) for n in range(elements)])


def test_an_iteration_whose_elements_a_loop_within_takes(graph, ipus, execution_mode):
    """Seven elements, three for each iteration: two iterations are whole, and the third one changes nothing."""
    ipus(1)
    infeed = numbers(7)
    steps = v1.get_variable("steps", initializer=0, use_resource=True)

    def body(total):
        counted = steps.assign_add(1).op
        return loops.repeat(3, add, [total], infeed), counted

    result = compiled(lambda: loops.repeat(5, body, [0.0]))
    start = [v1.global_variables_initializer(), infeed.initializer]
    with v1.Session() as session:
        for _ in range(3):
            session.run(start)
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(result)
            assert session.run(steps) == 2


def test_all_replicas_end_after_the_same_iteration(graph, ipus, execution_mode):
    """22 elements for 4 replicas: five iterations of each, and no replica's last one is lost."""
    replicas, whole = 4, 5
    ipus(replicas)
    infeed, outfeed = numbers(replicas * whole + 2), ipu_outfeed_queue.IPUOutfeedQueue()
    steps = v1.get_variable("steps", initializer=0, use_resource=True)

    def body(total, x):
        return total + x, outfeed.enqueue(x), steps.assign_add(1).op

    result = compiled(lambda: loops.repeat(20, body, [0.0], infeed))
    rows, start = outfeed.dequeue(), [v1.global_variables_initializer(), infeed.initializer]
    with v1.Session() as session:
        for _ in range(5):
            session.run(start)
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(result)
            assert session.run(steps) == whole
            np.testing.assert_array_equal(session.run(rows), np.arange(replicas * whole).reshape(whole, replicas))


@pytest.mark.parametrize("shards", [1, 2])
def test_threads_that_run_one_program_share_its_infeed(graph, ipus, shards):
    """Each element is taken once, and by one run whole: each run's elements are neighbours."""
    ipus(shards)
    threads, runs, n = 4, 5, 12
    infeed = numbers(threads * runs * n)

    def body(total, x):
        with scopes.ipu_shard(shards - 1):
            return total + x

    result = compiled(lambda: loops.repeat(n, body, [0.0], infeed))
    sums = []
    with v1.Session() as session:
        session.run(infeed.initializer)

        def work():
            for _ in range(runs):
                sums.extend(session.run(result))

        started = [threading.Thread(target=work) for _ in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
    assert sorted(sums) == [sum(range(run * n, (run + 1) * n)) for run in range(threads * runs)]


def test_a_run_that_waits_for_another_can_be_cancelled(graph):
    """The first run waits for an element; the second, which waits for the first, gives up in time."""
    go_on, fed = threading.Event(), threading.Event()

    def elements():
        fed.set()
        go_on.wait()
        yield np.float32(1.0)

    dataset = tf.data.Dataset.from_generator(elements, tf.float32, []).repeat()
    infeed = ipu_infeed_queue.IPUInfeedQueue(dataset)
    result = compiled(lambda: loops.repeat(2, add, [0.0], infeed))
    first = []
    with v1.Session() as session:
        session.run(infeed.initializer)
        thread = threading.Thread(target=lambda: first.extend(session.run(result)))
        thread.start()
        fed.wait()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(result, options=v1.RunOptions(timeout_in_ms=300))
        go_on.set()
        thread.join()
        assert first == [2.0]
        assert session.run(result) == [2.0]


def test_elements_that_two_ops_of_an_iteration_take(graph, ipus):
    """Within an iteration too the first op takes the first element."""
    infeed = numbers(40)

    def body(total):
        first = infeed._dequeue()
        second = infeed._dequeue()
        return total + second - first

    result = compiled(lambda: loops.repeat(20, body, [0.0]))
    with v1.Session() as session:
        session.run(infeed.initializer)
        assert session.run(result) == [20.0]


def test_another_ipu_s_variable_is_exchanged_before_the_write(graph, ipus, execution_mode):
    """IPU 0 counts when it has its element; IPU 1 takes the number before, which IPU 0 has read for itself, too."""
    ipus(2)
    infeed, outfeed, n = numbers(100), ipu_outfeed_queue.IPUOutfeedQueue(), 20
    counter = v1.get_variable("counter", initializer=0.0, use_resource=True)

    def body(x):
        with scopes.ipu_shard(0):
            number = counter.value()
            fed = number + x
            with tf.control_dependencies([x]):
                counted = counter.assign(number + 1.0, read_value=False)
        with scopes.ipu_shard(1):
            tenfold = number * 10.0
        with tf.control_dependencies([counted]):
            return outfeed.enqueue([tenfold, fed])

    program, sent = compiled(lambda: loops.repeat(n, body, [], infeed)), outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        before = plugin.load().exchange(0, 0, 1).bytes
        session.run(program)
        tenfold, fed = session.run(sent)
    assert tenfold.tolist() == [10.0 * number for number in range(n)]
    assert fed.tolist() == [2.0 * number for number in range(n)]
    assert plugin.load().exchange(0, 0, 1).bytes - before == 4 * n
