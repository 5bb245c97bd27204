"""Connection types PRE_COMPILE and NEVER, system by system: programs are compiled and not run, results are zeros."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from keras_models import X, Y, compiled, keras, sequential
from slow_cases import slowly
from tf_ipu_shim.ipu import (
    config,
    ipu_compiler,
    ipu_infeed_queue,
    ipu_outfeed_queue,
    ipu_strategy,
    loops,
    scopes,
)
from tf_ipu_shim.ipu.ops import cross_replica_ops, pipelining_ops

from tf_ipu_shim import plugin

# Keras' own seeds
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]
v1 = tf.compat.v1
LAST = ipu_outfeed_queue.IPUOutfeedMode.LAST


def configure(kind, ipus=1):
    chosen = config.IPUConfig()
    chosen.auto_select_ipus = ipus
    chosen.device_connection.type = kind
    chosen.device_connection.version = "ipu2"
    chosen.configure_ipu_system()


@pytest.fixture(autouse=True)
def only_compiled(own_environment, monkeypatch, tmp_path):
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={tmp_path}")
    configure(config.DeviceConnectionType.PRE_COMPILE)
    plugin.load().reset_counters(0)


def compiled_and_not_run(number):
    library = plugin.load()
    return (library.programs_compiled(0), library.programs_run(0)) == (number, 0)


def numbers(shape=()):
    return tf.data.Dataset.from_tensors(tf.ones(shape)).repeat()


@pytest.mark.parametrize("mode", [None, LAST])
def test_feeds_of_a_session(graph, mode):
    infeed = ipu_infeed_queue.IPUInfeedQueue(numbers([2]))
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue(mode)

    def body(total, x):
        return total + x, outfeed.enqueue({"total": total + x, "number": tf.constant(7)})

    with scopes.ipu_scope("/device:IPU:0"):
        (total,) = ipu_compiler.compile(lambda: loops.repeat(5, body, [tf.zeros([2])], infeed))
    dequeued = outfeed.dequeue()
    with tf.device("/device:IPU:0"):
        touched = tf.sin(v1.placeholder_with_default(1.0, []))
    rows = () if mode is LAST else (5,)
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(touched)
        before = session.run(dequeued)["total"]
        assert before.shape == ((2,) if mode is LAST else (0, 2)), "nothing before the program has been run"
        assert not np.any(before)
        assert session.run(total).tolist() == [0, 0]
        first = session.run(dequeued)
        assert first["total"].shape == (*rows, 2) and first["number"].shape == rows
        assert not np.any(first["total"]) and not np.any(first["number"])
        session.run([total])
        session.run([total])
        assert session.run(dequeued)["total"].shape == ((2,) if mode is LAST else (10, 2))
    assert compiled_and_not_run(1)


def test_functions_of_a_strategy():
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        weight = tf.Variable(np.ones([3, 2], "f"))

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.matmul(x, weight))
            weight.assign_sub(tape.gradient(loss, weight))
            return loss, {"rows": x + 1.0}

        for rows in (4, 4, 5):
            loss, further = strategy.run(step, args=[tf.ones([rows, 3])])
            assert loss.numpy() == 0 and further["rows"].shape == (rows, 3) and not np.any(further["rows"])
        assert np.all(weight.numpy() == 1), "nothing ran"
    assert compiled_and_not_run(2)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_pipeline(replicas):
    configure(config.DeviceConnectionType.PRE_COMPILE, 2 * replicas)
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        infeed = ipu_infeed_queue.IPUInfeedQueue(numbers([2]))

        @tf.function
        def run():
            pipelining_ops.pipeline(
                [lambda x: 2.0 * x, lambda x: x + 1.0],
                gradient_accumulation_count=4,
                repeat_count=3,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
            )

        strategy.run(run)
    assert outfeed.dequeue().shape == ((12, 2) if replicas == 1 else (12, replicas, 2))
    assert outfeed.dequeue().shape[0] == 0


def computed(infeed, outfeed):
    for _ in tf.range(3):
        outfeed.enqueue(2.0 * next(infeed))


def handed_on(infeed, outfeed):
    for _ in tf.range(1, 8, 2):
        outfeed.enqueue(next(infeed))


def constant(infeed, outfeed):
    for _ in tf.range(3):
        outfeed.enqueue(tf.ones([2]))


def counted(infeed, outfeed):
    number = tf.constant(0)
    while number < 5:
        outfeed.enqueue(next(infeed))
        number += 2


def collected(infeed, outfeed):
    outfeed.enqueue(cross_replica_ops.cross_replica_sum(next(infeed)))


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("body, rows", [(computed, 3), (handed_on, 4), (constant, 3), (counted, 3), (collected, 1)])
def test_what_a_run_would_send(body, rows, replicas, cached, monkeypatch):
    if not cached:
        monkeypatch.delenv("TF_POPLAR_FLAGS")
    monkeypatch.setenv("TF_IPU_SHIM_COLLECTIVE_TIMEOUT", "2")  # nothing may wait for replicas that do not run
    configure(config.DeviceConnectionType.PRE_COMPILE, replicas)
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        infeed = iter(numbers([2]))
        run = tf.function(lambda infeed: body(infeed, outfeed), jit_compile=True)
        strategy.run(run, args=[infeed])
    sent = outfeed.dequeue().numpy()
    assert sent.shape == ((rows, 2) if replicas == 1 else (rows, replicas, 2)) and not sent.any()
    assert compiled_and_not_run(1)


@pytest.mark.parametrize("asynchronous", [slowly(False), True])
def test_keras(asynchronous):
    strategy = ipu_strategy.IPUStrategy()
    seen = []
    counting = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
    with strategy.scope():
        model = compiled(sequential(), steps_per_execution=2)
        model.set_asynchronous_callbacks(asynchronous)
        before = model.get_weights()
        history = model.fit(X, Y, batch_size=16, epochs=2, verbose=0, callbacks=[counting]).history
        losses = model.evaluate(X, Y, batch_size=16, verbose=0)
        predicted = model.predict(X, batch_size=16, verbose=0)
        for old, new in zip(before, model.get_weights()):
            np.testing.assert_array_equal(old, new)
    assert history["loss"] == [0, 0] and not np.any(losses)
    assert predicted.shape == (64, 3) and not np.any(predicted)
    assert seen == (2 * [0, 1, 2, 3] if asynchronous else 2 * [1, 3])
    assert compiled_and_not_run(3)


def test_an_estimator(tmp_path):
    pytest.importorskip("tensorflow_estimator", reason="TensorFlow has it up to 2.15")
    from tf_ipu_shim.ipu import ipu_estimator, ipu_run_config

    options = config.IPUConfig()
    options.auto_select_ipus = 1
    options.device_connection.type = config.DeviceConnectionType.PRE_COMPILE
    options.device_connection.version = "ipu2"

    def model(features, labels, mode):
        weight = v1.get_variable("weight", initializer=2.0)
        predicted = weight * features
        if mode == "infer":
            return tf.estimator.EstimatorSpec(mode, predicted)
        loss = tf.reduce_mean(tf.square(predicted - labels))
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss) if mode == "train" else None
        metrics = {"mean": v1.metrics.mean(features)} if mode == "eval" else None
        return tf.estimator.EstimatorSpec(mode, predicted, loss, train, metrics)

    def data():
        return tf.data.Dataset.from_tensors((tf.ones([4]), tf.ones([4]))).repeat()

    estimator = ipu_estimator.IPUEstimator(
        model,
        str(tmp_path / "model"),
        ipu_run_config.RunConfig(
            ipu_run_config=ipu_run_config.IPURunConfig(iterations_per_loop=2, ipu_options=options)
        ),
    )
    estimator.train(data, steps=4)
    assert estimator.get_variable_value("weight") == 2.0
    assert estimator.evaluate(data, steps=2)["loss"] == 0
    first = next(iter(estimator.predict(lambda: data().take(2))))
    assert not np.any(first)


def branching(x):
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

    def send(value):
        with tf.control_dependencies([outfeed.enqueue(value)]):
            return tf.identity(value)

    def step(x):
        total = tf.reduce_sum(x)
        return tf.cond(total > 0.0, lambda: x, lambda: send(x))

    return outfeed, step(x)


def test_a_branch_is_the_one_that_zeros_choose(graph):
    fed = v1.placeholder(tf.float32, [2])
    queues = []

    def program(x):
        queue, result = branching(x)
        queues.append(queue)
        return result

    with scopes.ipu_scope("/device:IPU:0"):
        (result,) = ipu_compiler.compile(program, [fed])
    dequeued = queues[0].dequeue()
    with v1.Session() as session:
        session.run(result, {fed: [1, 1]})
        assert session.run(dequeued).shape == (1, 2)


def test_never_refuses_to_run():
    configure(config.DeviceConnectionType.NEVER)
    plugin.load().reset_counters(0)
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        model = compiled(sequential())
        for call in (
            lambda: strategy.run(tf.function(lambda x: tf.matmul(x, x)), args=[tf.ones([2, 2])]),
            lambda: model.fit(X, Y, batch_size=16, verbose=0),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match="configured for compilation only"):
                call()
    with contextlib.suppress(tf.errors.InvalidArgumentError):
        strategy.run(tf.function(lambda x: tf.matmul(x, x)), args=[tf.ones([2, 2])])
    assert plugin.load().programs_compiled(0) >= 1 and plugin.load().programs_run(0) == 0


def test_datasets_under_never():
    configure(config.DeviceConnectionType.NEVER)
    with ipu_strategy.IPUStrategy(enable_dataset_iterators=False).scope():
        dataset = tf.data.Dataset.from_tensor_slices(np.arange(6, dtype=np.float32))
        dataset = dataset.batch(2, drop_remainder=True).repeat(2)
        assert [element.numpy().tolist() for element in dataset] == [[0, 1], [2, 3], [4, 5]] * 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="configured for compilation only"):
            tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]))


def test_files_of_programs_that_need_an_engine(graph, monkeypatch, tmp_path, capfd):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    fed, scalar = v1.placeholder(tf.float32, [2, 2]), v1.placeholder(tf.float32, [])
    with scopes.ipu_scope("/device:IPU:0"):
        (product,) = ipu_compiler.compile(lambda x: tf.matmul(x, x), [fed])
        (total,) = ipu_compiler.compile(lambda x: x + 1.0, [scalar])
    with v1.Session() as session:
        for _ in range(2):
            assert not session.run(product, {fed: np.ones([2, 2])}).any()
            session.run(total, {scalar: 1.0})
    (file,) = tmp_path.iterdir()
    said = [line for line in capfd.readouterr().err.splitlines() if "pre-compiled" in line]
    assert len(said) == 1 and said[0].endswith(f"A pre-compiled Poplar program has been saved to {file}")
    assert file.suffix == ".ipu_program"
