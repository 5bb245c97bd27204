"""Threads that use one Keras model at a time: each call gets its own rows, losses and metrics.

Layers of ones pass inputs on, so that NumPy knows what each call has to give.
"""

import collections
import concurrent.futures
import functools
import os
import signal
import threading

import numpy as np
import pytest
import tensorflow as tf
from keras_models import keras, strategy
from slow_cases import slowly

from tf_ipu_shim.frontend.keras.training import locks

pytestmark = [
    pytest.mark.one_version,
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"),  # Keras' own seeds
]
BATCH = 4
WAIT = 120  # seconds


def one(**options):
    return keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", **options)


def identity(steps_per_execution=2, **compile_options):
    """A model of one layer that training does not change, and whose loss is the mean square of its inputs."""
    with strategy().scope():
        model = keras.Sequential([one(input_shape=(1,))])
        model.compile(keras.optimizers.SGD(0.0), "mse", steps_per_execution=steps_per_execution, **compile_options)
    return model


def constant(value, rows=16):
    return np.full((rows, 1), value, np.float32)


def together(*functions):
    """Runs each function in a thread of its own; fails if one of them fails, or waits for ever."""
    with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
        for running in [pool.submit(function) for function in functions]:
            running.result(WAIT)


def predicts(model, value, method="predict"):
    """Calls a method with constant data, of which NumPy says what comes."""
    data = constant(value)
    if method == "predict":
        np.testing.assert_array_equal(model.predict(data, batch_size=BATCH, verbose=0), data)
    elif method == "predict_on_batch":
        np.testing.assert_array_equal(model.predict_on_batch(data[:BATCH]), data[:BATCH])
    elif method == "evaluate":
        assert model.evaluate(data, 0 * data, batch_size=BATCH, verbose=0) == value**2
    elif method == "test_on_batch":
        assert model.test_on_batch(data[:BATCH], 0 * data[:BATCH]) == value**2
    else:
        assert model.train_on_batch(data[:BATCH], 0 * data[:BATCH]) == value**2


METHODS = ("predict", "predict_on_batch", "evaluate", "test_on_batch", "train_on_batch")


@pytest.mark.parametrize("calls", [10, slowly(125)])
def test_calls_of_eight_threads(ipus, calls):
    ipus(1)
    model, seen = identity(), collections.Counter()

    def work(thread):
        for call in range(calls):
            method = METHODS[(thread + call) % len(METHODS)]
            predicts(model, thread + 10 * (call % 7), method)
            seen[method] += 1

    together(*[functools.partial(work, thread) for thread in range(8)])
    assert sum(seen.values()) == 8 * calls and set(seen) == set(METHODS)


def test_replicas(ipus):
    ipus(2)
    model = identity(steps_per_execution=1)
    model.set_replication_options("mean")

    def work(thread, method):
        for call in range(5):
            predicts(model, thread + 10 * call, method)

    together(*[functools.partial(work, thread, METHODS[2 * (thread % 2)]) for thread in range(4)])


def test_first_calls_of_a_subclass(ipus):
    """Its layers are built once, by whoever comes first."""
    ipus(1)

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.second = one(), one()

        def call(self, x):
            return 2.0 * self.second(self.first(x))

    with strategy().scope():
        model = Own()
    barrier = threading.Barrier(4)

    def work(thread):
        barrier.wait(WAIT)
        got = model.predict(constant(thread), batch_size=BATCH, verbose=0)
        np.testing.assert_array_equal(got, constant(2 * thread))

    together(*[functools.partial(work, thread) for thread in range(4)])
    assert len(model.weights) == 2


@pytest.mark.one_version
def test_models_that_share_a_layer(ipus):
    ipus(1)
    with strategy().scope():
        inputs = keras.Input((1,))
        hidden = one()(inputs)
        plain, double = keras.Model(inputs, hidden), keras.Model(inputs, {"twice": 2.0 * hidden, "more": hidden + 1.0})

    def of_plain():
        for value in range(5):
            predicts(plain, value)

    def of_double():
        for value in range(5):
            got = double.predict(constant(value), batch_size=BATCH, verbose=0)
            np.testing.assert_array_equal(got["twice"], constant(2 * value))
            np.testing.assert_array_equal(got["more"], constant(value + 1))

    together(of_plain, of_double, of_plain, of_double)


@pytest.mark.parametrize("asynchronous", [False, slowly(True)])
def test_fit_beside_other_calls(ipus, asynchronous):
    """Other calls come in between the executions of `fit`, and its metrics are those of its own data."""
    ipus(1)
    model = identity(metrics=["mae"])
    model.set_asynchronous_callbacks(asynchronous)
    data = np.arange(32, dtype=np.float32)[:, np.newaxis]
    between, ended = threading.Event(), threading.Event()
    # The third execution of each epoch waits until the other thread has evaluated.
    meets = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda step, logs: step != 4 or meet())

    def meet():
        between.clear()
        assert ended.is_set() or between.wait(WAIT)

    def train():
        try:
            return model.fit(data, 0 * data, batch_size=BATCH, epochs=3, verbose=0, callbacks=[meets]).history
        finally:
            ended.set()

    def others():
        value = 0
        while not ended.is_set():
            value = value % 7 + 1
            predicts(model, value)
            if not asynchronous:
                got = model.evaluate(constant(value), constant(0), batch_size=BATCH, verbose=0)
                np.testing.assert_allclose(got, [value**2, value], rtol=1e-6)
            between.set()

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        beside, training = pool.submit(others), pool.submit(train)
        history = training.result(WAIT)
        beside.result(WAIT)
    np.testing.assert_allclose(history["loss"], 3 * [np.mean(data**2)], rtol=1e-5)
    np.testing.assert_allclose(history["mae"], 3 * [np.mean(data)], rtol=1e-5)


class Using(keras.callbacks.Callback):
    """Uses the model that calls it, in its own thread and in others."""

    def __init__(self, pool):
        super().__init__()
        self.pool, self.calls, self.inside = pool, 0, False

    def use(self, *methods):
        for method in methods:
            predicts(self.model, 3, method)
            self.pool.submit(predicts, self.model, 5, method).result(WAIT)
        self.calls += 1

    def on_train_batch_end(self, batch, logs=None):
        self.use("predict", "evaluate")

    def on_test_batch_end(self, batch, logs=None):
        self.use("predict")

    def on_predict_batch_end(self, batch, logs=None):
        if not self.inside:
            self.inside = True
            np.testing.assert_array_equal(
                self.model.predict(constant(4), batch_size=BATCH, verbose=0, callbacks=[self]), constant(4)
            )
            self.use("evaluate")
            self.inside = False


@pytest.mark.parametrize("asynchronous", [slowly(False), True])
@pytest.mark.slow
def test_callbacks_use_the_model(ipus, asynchronous):
    ipus(1)
    model = identity()
    model.set_asynchronous_callbacks(asynchronous)
    data, steps = constant(2), 4 if asynchronous else 2
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for run, expected in (
            (lambda using: model.fit(data, 0 * data, batch_size=BATCH, verbose=0, callbacks=[using]), None),
            (lambda using: model.evaluate(data, 0 * data, batch_size=BATCH, verbose=0, callbacks=[using]), 4.0),
            (lambda using: model.predict(data, batch_size=BATCH, verbose=0, callbacks=[using]), data),
        ):
            using = Using(pool)
            got = pool_free(run, using)
            assert using.calls == steps
            if expected is not None:
                np.testing.assert_array_equal(got, expected)


def pool_free(run, using):
    """In a thread, so that one that waits for ever fails the test."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(run, using).result(WAIT)


def test_asynchronous_callbacks_of_evaluate_that_evaluate(ipus):
    ipus(1)
    model = identity()
    model.set_asynchronous_callbacks(True)
    again = keras.callbacks.LambdaCallback(on_test_batch_end=lambda batch, logs: predicts(model, 1, "evaluate"))
    with pytest.raises(RuntimeError, match="An asynchronous callback of evaluate cannot train or evaluate the same"):
        model.evaluate(constant(1), constant(0), batch_size=BATCH, verbose=0, callbacks=[again])
    predicts(model, 2, "evaluate")


def test_replicas_whose_metrics_another_thread_uses(ipus, caplog):
    ipus(2)
    model = identity(steps_per_execution=1)
    model.set_replication_options("mean")

    def use(step, logs):
        if step == 1:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pool.submit(predicts, model, 3, "evaluate").result(WAIT)

    between = keras.callbacks.LambdaCallback(on_train_batch_end=use)
    data = np.concatenate([constant(1), constant(2)])
    history = model.fit(data, 0 * data, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[between]).history
    assert history["loss"] == [4.0]  # of the second half
    assert "Its 2 replicas keep their own metrics, so those of this epoch count from here on" in caplog.text


@pytest.mark.one_version
def test_a_dataset_that_predicts_with_the_model_that_takes_it(ipus, monkeypatch):
    ipus(1)
    model = identity(steps_per_execution=1)
    monkeypatch.setattr(locks, "HOST_FUNCTION_LIMIT", 0.5)

    def doubled(x):
        return 2.0 * model.predict(x, batch_size=BATCH, verbose=0)

    def element(x):
        return tf.ensure_shape(tf.numpy_function(doubled, [x], tf.float32), [BATCH, 1])

    data = tf.data.Dataset.from_tensor_slices(constant(3)).batch(BATCH, drop_remainder=True).map(element)
    predicts(model, 1)
    predicts(model, 1, "evaluate")
    got = model.evaluate(tf.data.Dataset.zip((data, data)), verbose=0)  # another program
    assert got == 0.0
    with pytest.raises(tf.errors.OpError, match="Another call of the same model"):
        model.predict(data, verbose=0)
    predicts(model, 2)


@pytest.mark.one_version
def test_errors_leave_the_model_to_others(ipus):
    ipus(1)
    model = identity()

    def fails():
        numbers = tf.data.Dataset.range(BATCH).map(lambda number: [2.0 - tf.cast(number, tf.float32)])
        broken = numbers.map(lambda number: tf.debugging.check_numerics(1.0 / number, "zero"))
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="zero"):
                model.predict(broken.batch(1, drop_remainder=True), verbose=0)
            with pytest.raises(ZeroDivisionError):
                stop = keras.callbacks.LambdaCallback(on_test_batch_begin=lambda batch, logs: 1 // 0)
                model.evaluate(constant(1), constant(0), batch_size=BATCH, verbose=0, callbacks=[stop])

    def works():
        for value in range(5):
            predicts(model, value)
            predicts(model, value, "evaluate")

    together(fails, works)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")  # since Python 3.12
def test_a_turn_that_another_thread_has_is_free_in_a_fork():
    lock, held, ended = locks.FairLock(), threading.Event(), threading.Event()

    def holds():
        with lock.hold():
            held.set()
            ended.wait(WAIT)

    holder = threading.Thread(target=holds)
    holder.start()
    held.wait(WAIT)
    child = os.fork()
    if child == 0:
        signal.alarm(WAIT)  # who waits for the other thread would do so for ever
        with lock.hold():
            os._exit(5)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended.set()
    holder.join(WAIT)
    assert status == 5


def test_a_turn_ends_by_an_interrupt():
    """Some hit the code that takes the lock, some the code that releases it, and some the time in between."""
    lock, interrupts = locks.FairLock(), 0
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for microseconds in range(1, 400):
            try:
                signal.setitimer(signal.ITIMER_REAL, microseconds / 1e6)
                for _ in range(1_000_000):
                    with lock.hold():
                        pass
            except KeyboardInterrupt:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)

    def takes():
        with lock.hold():
            return "taken"

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert pool.submit(takes).result(WAIT) == "taken"
    assert interrupts == 399
