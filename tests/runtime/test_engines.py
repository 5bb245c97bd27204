"""Embedded engines: what calls give, in one process."""

import itertools
import pathlib
import threading

import numpy as np
import pytest
import tensorflow as tf
from applications import batches, compile_op, infeed_of, loop_of
from tf_ipu_shim.ipu.config import IPUConfig
from tf_ipu_shim.poplar.ops import gen_application_runtime

from tf_ipu_shim import ipu, memory_report
from tf_ipu_shim.frontend.applications import engines
from tf_ipu_shim.runtime import devices

v1 = tf.compat.v1
runtime = ipu.embedded_runtime
_serial = itertools.count()


@pytest.fixture
def engine():
    """Gives names of engines; they end with the test, because they hold IPUs."""
    names = []

    def name():
        names.append(f"engine_{next(_serial)}")
        return names[-1]

    yield name
    for used in names:
        running = engines._engines.pop(used, None)
        if running is not None:
            running.close()


def file_of(program, **options):
    return compile_op(program, **options).numpy().decode()


def test_each_call_gets_the_result_of_its_own_batch_across_runs(ipus, engine):
    ipus()
    context = runtime.embedded_runtime_start(file_of(loop_of(lambda x: 3.0 * x + 1.0, 2, iterations=4)), [], engine())
    assert "which runs '" in repr(context)
    for batch in batches(11, 2):  # the third run is not full
        (result,) = runtime.embedded_runtime_call([batch], context)
        np.testing.assert_array_equal(result, 3.0 * batch + 1.0)


def test_the_engine_keeps_its_configuration_and_its_own_ipus(ipus, engine):
    ipus(2)
    infeed, outfeed = infeed_of(2), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(x):
        with ipu.scopes.ipu_shard(0):
            x = x + 1.0
        with ipu.scopes.ipu_shard(1):
            return outfeed.enqueue(2.0 * x)

    path = file_of(lambda: ipu.loops.repeat(4, body, [], infeed))
    name = engine()
    context = runtime.embedded_runtime_start(path, [], name)
    device = engines._engines[name].device
    assert device.num_ipus == 2 and device.attached
    assert not set(device.physical_ipus) & set(devices.get(0).physical_ipus)
    np.testing.assert_array_equal(runtime.embedded_runtime_call([np.ones(2, np.float32)], context)[0], [4.0, 4.0])
    assert device.name in [reported.name for reported in memory_report().devices]
    ipu.config.reset_ipu_configuration()
    ipus(1)
    assert device.attached
    np.testing.assert_array_equal(runtime.embedded_runtime_call([np.zeros(2, np.float32)], context)[0], [2.0, 2.0])


def test_variables_are_inputs_by_name_or_order_and_keep_writes(ipus, engine):
    ipus()
    weight, count = tf.Variable([1.0, 2.0], name="weight"), tf.Variable([0.0, 0.0], name="count")

    def body(x):
        return weight * x + count.assign_add([1.0, 1.0])

    path = file_of(loop_of(body, 2, iterations=3))
    context = runtime.embedded_runtime_start(
        path, {"XLA_Args/weight": np.array([5.0, 7.0], np.float32), "XLA_Args/count": count}, engine()
    )
    assert sorted(tensor.name for tensor in context.signature().inputs) == ["XLA_Args/count", "XLA_Args/weight"]
    for index, batch in enumerate(batches(5, 2)):
        (result,) = runtime.embedded_runtime_call([batch], context)
        np.testing.assert_array_equal(result, np.array([5.0, 7.0]) * batch + index + 1)
    np.testing.assert_array_equal(count, [0.0, 0.0])  # the script's own
    in_order = [
        {"XLA_Args/weight": [1.0, 1.0], "XLA_Args/count": [9.0, 9.0]}[t.name] for t in context.signature().inputs
    ]
    other = runtime.embedded_runtime_start(path, [np.float32(value) for value in in_order], engine())
    np.testing.assert_array_equal(runtime.embedded_runtime_call([np.zeros(2, np.float32)], other)[0], [10.0, 10.0])


def test_frozen_variables_keep_their_values_of_when_the_op_ran(graph, engine):
    variable = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    path = compile_op(loop_of(lambda x: variable * x, 2), freeze_variables=True)
    with v1.Session() as session:
        session.run(variable.initializer)
        session.run(variable.assign([10.0, 20.0]))
        written = session.run(path)
        session.run(variable.assign([0.0, 0.0]))
    context = runtime.embedded_runtime_start(written, [], engine())
    fed = v1.placeholder(tf.float32, [2])
    result = runtime.embedded_runtime_call([fed], context)
    assert result[0].shape == [2]
    with v1.Session() as session:
        np.testing.assert_array_equal(session.run(result, {fed: [1.0, 3.0]})[0], [10.0, 60.0])


def test_several_infeeds_and_outfeeds_meet_in_one_call(ipus, engine):
    ipus()
    dataset = tf.data.Dataset.from_tensors((tf.zeros([2]), tf.zeros([], tf.int32))).repeat()
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset)
    sums, products = (
        ipu.ipu_outfeed_queue.IPUOutfeedQueue(),
        ipu.ipu_outfeed_queue.IPUOutfeedQueue(ipu.ipu_outfeed_queue.IPUOutfeedMode.LAST),
    )

    def body(x, n):
        n = tf.cast(n, tf.float32)
        return sums.enqueue({"sum": x + n}), products.enqueue((x * n, n))

    context = runtime.embedded_runtime_start(file_of(lambda: ipu.loops.repeat(5, body, [], infeed)), [], engine())
    for index in range(7):
        results = runtime.embedded_runtime_call([np.float32([1.0, 2.0]), np.int32(index)], context)
        np.testing.assert_array_equal(results[0], [1.0 + index, 2.0 + index])
        np.testing.assert_array_equal(results[1], [1.0 * index, 2.0 * index])
        assert float(results[2]) == index


def test_an_outfeed_alone_is_emptied_call_by_call(ipus, engine):
    ipus()
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    path = file_of(lambda: ipu.loops.repeat(3, lambda x: (2.0 * x, outfeed.enqueue(x)), [tf.ones([2])]))
    context = runtime.embedded_runtime_start(path, [], engine())
    results = [runtime.embedded_runtime_call([], context)[0].numpy()[0] for _ in range(7)]
    assert results == [1.0, 2.0, 4.0, 1.0, 2.0, 4.0, 1.0]


def test_an_infeed_alone_is_called_for_what_it_writes(ipus, engine):
    ipus()
    infeed, total = infeed_of(2), tf.Variable([0.0, 0.0], name="total")
    path = file_of(lambda: ipu.loops.repeat(4, lambda x: total.assign_add(x).op, [], infeed))
    context = runtime.embedded_runtime_start(path, [np.zeros(2, np.float32)], engine())
    assert context.output_types() == []
    runtime.embedded_runtime_call([np.ones(2, np.float32)], context)


@pytest.mark.parametrize("threads_in_one_session", [True, False])
def test_threads_share_engines(ipus, engine, threads_in_one_session):
    ipus()
    path = file_of(loop_of(lambda x: x * x + 1.0, 3, iterations=8))
    names = [engine(), engine()]
    results = {}

    def call(index, session=None, result=None, fed=None):
        if session is None:
            with tf.Graph().as_default(), v1.Session() as own:
                fed = v1.placeholder(tf.float32, [3])
                context = runtime.embedded_runtime_start(path, [], names[index % 2])
                result = runtime.embedded_runtime_call([fed], context)
                run(own, result, fed, index)
        else:
            run(session, result, fed, index)

    def run(session, result, fed, index):
        for step in range(20):
            value = np.full(3, 100 * index + step, np.float32)
            results[index, step] = (session.run(result, {fed: value})[0], value * value + 1.0)

    if threads_in_one_session:
        with tf.Graph().as_default(), v1.Session() as session:
            fed = v1.placeholder(tf.float32, [3])
            calls = [
                runtime.embedded_runtime_call([fed], runtime.embedded_runtime_start(path, [], name)) for name in names
            ]
            run_all([threading.Thread(target=call, args=(i, session, calls[i % 2], fed)) for i in range(4)])
    else:
        run_all([threading.Thread(target=call, args=(i,)) for i in range(4)])
    assert len(results) == 80
    for given, expected in results.values():
        np.testing.assert_array_equal(given, expected)


def run_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_pipelines_answer_without_a_further_batch(ipus, engine):
    ipus(2)
    infeed, outfeed = infeed_of(2), ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    stages = [lambda x: x + 1.0, lambda x: 2.0 * x]
    path = file_of(
        lambda: ipu.pipelining_ops.pipeline(stages, 4, infeed_queue=infeed, outfeed_queue=outfeed, repeat_count=2)
    )
    context = runtime.embedded_runtime_start(path, [], engine())
    for batch in batches(9, 2):
        np.testing.assert_array_equal(runtime.embedded_runtime_call([batch], context)[0], 2.0 * (batch + 1.0))


@pytest.mark.parametrize("timeout", [0, 20_000])
def test_replicas_get_batches_in_turn_synthetic_after_a_timeout(ipus, engine, timeout):
    ipus(2)
    infeed, outfeed = infeed_of(2), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def body(x):
        total = ipu.cross_replica_ops.cross_replica_sum(x)  # replicas wait for each other
        return outfeed.enqueue((10.0 * x, total))

    path = file_of(lambda: ipu.loops.repeat(3, body, [], infeed))
    context = runtime.embedded_runtime_start(path, [], engine(), timeout=timeout)
    for batch in batches(4, 2):  # alone: the other replica has a batch of zeros
        own, total = runtime.embedded_runtime_call([batch], context)
        np.testing.assert_array_equal(own, 10.0 * batch)
        np.testing.assert_array_equal(total, batch)
    answers = {}

    def call(index):
        answers[index] = runtime.embedded_runtime_call([np.full(2, index, np.float32)], context)

    run_all([threading.Thread(target=call, args=(index,)) for index in range(6)])
    for index, (own, _) in answers.items():
        np.testing.assert_array_equal(own, np.full(2, 10.0 * index))


def test_a_failed_run_fails_what_it_had_and_those_after_it_run(engine):
    config = IPUConfig()
    config.auto_select_ipus = 1
    config.floating_point_behaviour.div0 = True
    config.configure_ipu_system()
    seen = tf.Variable([0.0], name="seen")
    path = file_of(loop_of(lambda x: 12.0 / x + seen.assign_add([1.0]), 1))
    ipu.config.reset_ipu_configuration()
    context = runtime.embedded_runtime_start(path, [np.zeros(1, np.float32)], engine())

    def call(value):
        return float(runtime.embedded_runtime_call([np.float32([value])], context)[0][0])

    assert [call(1.0), call(2.0)] == [13.0, 8.0]
    with pytest.raises(
        tf.errors.InternalError, match=r"Recovery action: IPU_RESET.*\n?.*reset the next time a program"
    ):
        call(0.0)
    assert [call(1.0), call(3.0)] == [13.0, 6.0]  # after a reset: loaded as it was started


def test_programs_that_cannot_be_called_batch_by_batch_say_so(ipus, engine):
    ipus()
    infeed, outfeed = infeed_of(2), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    def once():
        total = ipu.loops.repeat(2, lambda total, x: total + x, [tf.zeros([2])], infeed)
        return outfeed.enqueue(total)

    context = runtime.embedded_runtime_start(file_of(once), [], engine())
    errors = []

    def call():
        try:
            runtime.embedded_runtime_call([np.ones(2, np.float32)], context)
        except tf.errors.InvalidArgumentError as error:
            errors.append(error)

    run_all([threading.Thread(target=call) for _ in range(4)])
    assert errors and "sends fewer results to an outfeed than it receives batches" in str(errors[0])


def test_a_call_that_is_cancelled_leaves_the_engine_alone(ipus, engine):
    ipus(2)
    infeed, outfeed = infeed_of(2), ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    body = lambda x: outfeed.enqueue(ipu.cross_replica_ops.cross_replica_sum(x))  # noqa: E731
    path = file_of(lambda: ipu.loops.repeat(3, body, [], infeed))
    with tf.Graph().as_default():
        context = runtime.embedded_runtime_start(path, [], engine(), timeout=300_000_000)
        fed = v1.placeholder(tf.float32, [2])
        result = runtime.embedded_runtime_call([fed], context)
        with v1.Session() as session:
            with pytest.raises(tf.errors.DeadlineExceededError):
                session.run(result, {fed: [1.0, 2.0]}, v1.RunOptions(timeout_in_ms=2000))
            # The first batch is in one replica still, and its result is nobody's.
            np.testing.assert_array_equal(session.run(result, {fed: [3.0, 4.0]})[0], [4.0, 6.0])


def test_one_name_is_one_engine(ipus, engine):
    ipus()
    double, triple = file_of(loop_of(lambda x: 2.0 * x, 1)), file_of(loop_of(lambda x: 3.0 * x, 1))
    name = engine()
    for _ in range(2):
        (result,) = runtime.embedded_runtime_start_and_call(double, [], [np.ones(1, np.float32)], name)
        assert float(result[0]) == 2.0
    with pytest.raises(tf.errors.AlreadyExistsError, match=f"{name}.*Choose another engine name"):
        runtime.embedded_runtime_start(triple, [], name)


def test_inputs_are_checked(ipus, engine):
    ipus()
    weight = tf.Variable([1.0, 2.0], name="w")
    path = file_of(loop_of(lambda x: weight * x, 2))
    start, right = runtime.embedded_runtime_start, np.ones(2, np.float32)
    for inputs, error, phrase in [
        (4, ValueError, "Expected the inputs to be a list."),
        ({}, ValueError, "Failed to find input tensor with name 'XLA_Args/w' in input dictionary."),
        ([right, right], ValueError, "Embedded application runtime expects 1 inputs, but 2 were provided."),
        (
            [np.ones([3, 1])],
            ValueError,
            r"Mismatched input shape at position 0 \('XLA_Args/w'\). Expected \[2\], but input ",
        ),
        ([np.ones(2, np.int32)], TypeError, "Expected <dtype: 'float32'>, but input 0 has dtype int32."),
    ]:
        with pytest.raises(error, match=phrase):
            start(path, inputs, engine())
    for file in (None, 3):
        with pytest.raises(TypeError, match=f"executable_file must be the path .* not {file}"):
            start(file, [right], engine())
    context = start(pathlib.Path(path), [right], engine())
    with pytest.raises(TypeError, match="what embedded_runtime_start returns, a RuntimeContext, not str"):
        runtime.embedded_runtime_call([right], "an engine")
    for inputs, error, phrase in [
        (
            3,
            TypeError,
            "the inputs of a call to be a list in the order of the signature, or a dictionary by name. Received 3",
        ),
        ({"x": right}, TypeError, "the inputs of a call to be a list"),
        ([None], TypeError, r"The input at position 0 \('infeed_.*'\) is None"),
        ([], ValueError, "Embedded application call expects 1 inputs, but 0 were provided"),
        ([np.ones(3, np.float32)], ValueError, "Mismatched input shape at position 0 .*infeed_0"),
        ([np.ones(2, np.int64)], TypeError, "Mismatched input dtype at position 0"),
    ]:
        with pytest.raises(error, match=phrase):
            runtime.embedded_runtime_call(inputs, context)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"float of shape \[3\]; the application was compiled for"):
        gen_application_runtime.application_call([tf.ones(3)], context.start_output(), [tf.float32], context.name())
    with pytest.raises(tf.errors.InvalidArgumentError, match="gives 1 results, and .* takes 2"):
        gen_application_runtime.application_call([right], context.start_output(), [tf.float32] * 2, context.name())
    with pytest.raises(tf.errors.FailedPreconditionError, match="There is no engine 'nobody'"):
        gen_application_runtime.application_call([right], context.start_output(), [tf.float32], "nobody")


def test_engines_that_find_no_ipus_do_not_start_and_can_later(monkeypatch, engine):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "m2000")  # four IPUs
    config = IPUConfig()
    config.auto_select_ipus = 4
    config.device_connection.type = ipu.config.DeviceConnectionType.ON_DEMAND
    config.configure_ipu_system()
    path = file_of(loop_of(lambda x: 2.0 * x, 1))
    assert not devices.get(0, attach=False).attached  # compiling needs none
    devices.get(0)
    name = engine()
    with pytest.raises(tf.errors.InternalError, match="Could not find an available device"):
        runtime.embedded_runtime_start(path, [], name)
    ipu.config.reset_ipu_configuration()
    assert float(runtime.embedded_runtime_start_and_call(path, [], [np.ones(1, np.float32)], name)[0][0]) == 2.0


def test_applications_without_feeds_have_nothing_to_call(ipus, engine):
    ipus()
    path = file_of(lambda: tf.ones([2]) * ipu.rand_ops.dropout(tf.ones([2]), 0.5)[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="neither infeeds nor outfeeds"):
        runtime.embedded_runtime_start(path, [], engine())


def test_stopping_is_refused_as_graphcore_does():
    with pytest.raises(NotImplementedError, match="Embedded runtime doesn't support stopping an engine"):
        runtime.embedded_runtime_stop(None)
