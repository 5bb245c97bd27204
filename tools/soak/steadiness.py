"""Checks that memory, threads and open files do not grow over many runs, and that runs during reconfiguration end."""

from __future__ import annotations

import gc
import os
import pathlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_ipu_shim import ipu

v1 = tf.compat.v1
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST_GROWTH = 24 << 20  # bytes: what allocators keep varies by some
_OF_A_KERAS_MODEL = 5 << 20  # bytes: what stock Keras leaves of one that was trained, asked and dropped
_MOST_NEW_THREADS = 2  # pools start threads when they have work for them
_LETTING_GO = 70  # seconds: an iterator's threads go when the one that tunes it wakes, within a minute (infeed_life.cc)


def resident_bytes() -> int:
    """Returns the bytes that the process has in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def running_threads() -> int:
    """Returns how many threads the process has, Python's and all others."""
    return len(list(pathlib.Path("/proc/self/task").iterdir()))


def open_files() -> int:
    """Returns how many files the process has open."""
    return len(list(pathlib.Path("/proc/self/fd").iterdir()))


def _configured(ipus: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()


def grown(runs: int) -> str:
    """Runs a training loop with feeds on two replicas again and again.

    Args:
        runs: the number of runs; memory is first measured after half of them.

    Returns:
        Returns what has grown, or an empty string.
    """
    _configured(2)
    with _Trained() as trained:
        return _growth(trained.run, runs)


def restarted(times: int) -> str:
    """Starts the infeed of such a loop again before each of its runs, as an epoch does. As `grown`."""
    _configured(2)
    with _Trained() as trained:

        def run() -> None:
            trained.session.run(trained.start)
            trained.run()

        return _growth(run, times)


def recompiled(programs: int) -> str:
    """Makes functions, runs each once and drops it, as notebooks do. As `grown`."""
    _configured(2)
    strategy = ipu.ipu_strategy.IPUStrategy()
    numbers = iter(range(programs))
    x = tf.ones([8, 8])

    def run() -> None:
        number = float(next(numbers))

        @tf.function(jit_compile=True)
        def function(x: tf.Tensor) -> tf.Tensor:
            with ipu.scopes.ipu_shard(0):
                y = x * number
            with ipu.scopes.ipu_shard(1):
                return tf.reduce_sum(y)

        assert float(strategy.run(function, [x])) == 64 * number

    with strategy.scope():
        return _growth(run, programs)


def modelled(models: int) -> str:
    """Makes Keras models, trains and evaluates each once and drops it, as a search for parameters does. As `grown`."""
    _configured(1)
    keras = tf.keras
    x, y = np.ones([32, 4], np.float32), np.ones([32, 2], np.float32)

    def run() -> None:
        with ipu.ipu_strategy.IPUStrategy().scope():
            model = keras.Sequential([keras.layers.Dense(2, input_shape=(4,))])
            model.compile("sgd", "mse", steps_per_execution=4)
            model.fit(x, y, batch_size=8, verbose=0)
            model.predict(x, batch_size=8, verbose=0)
        del model
        keras.backend.clear_session()
        gc.collect()

    return _growth(run, models, _MOST_GROWTH + models // 2 * _OF_A_KERAS_MODEL)


class _Trained:
    """A session with a training loop of two replicas."""

    def __enter__(self) -> _Trained:
        self._graph = tf.Graph()
        with self._graph.as_default():
            infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.ones([64])).repeat())
            outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
            weights = v1.get_variable("weights", [64], use_resource=True)

            def body(x: tf.Tensor) -> tuple[object, ...]:
                loss = tf.reduce_sum((weights - x) ** 2)
                return outfeed.enqueue(loss), v1.train.GradientDescentOptimizer(0.01).minimize(loss)

            with ipu.scopes.ipu_scope("/device:IPU:0"):
                self._program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(2, body, [], infeed))
            self._rows, self.start = outfeed.dequeue(), infeed.initializer
            self.session = v1.Session()
            self.session.run([v1.global_variables_initializer(), self.start])
        return self

    def __exit__(self, *error: object) -> None:
        self.session.close()

    def run(self) -> None:
        self.session.run(self._program)
        self.session.run(self._rows)


def _growth(run: Callable[[], object], times: int, most: int = _MOST_GROWTH, wait: float = _LETTING_GO) -> str:
    def half() -> tuple[int, int, int]:
        for _ in range(times // 2):
            run()
        gc.collect()
        return resident_bytes(), running_threads(), open_files()

    def is_steady() -> bool:
        return after[0] - before[0] < most and after[1] - before[1] <= _MOST_NEW_THREADS and after[2] == before[2]

    before, after = half(), half()
    until = time.monotonic() + wait
    while not is_steady() and time.monotonic() < until:
        time.sleep(0.5)
        after = (resident_bytes(), running_threads(), open_files())
    if is_steady():
        return ""
    threads = dict(Counter(task.read_text().strip() for task in pathlib.Path("/proc/self/task").glob("*/comm")))
    return f"memory, threads and files after {times // 2} times: {before}, after as many more: {after}; {threads}"


def closed_while_running(sessions: int) -> str:
    """Closes sessions while another thread runs an endless loop in them, after different times.

    Args:
        sessions: the number of sessions, one after another.

    Returns:
        Returns the fault, or an empty string if each run ended with TensorFlow's error for it.
    """
    _configured(2)
    problems: list[str] = []
    for number in range(sessions):
        with tf.Graph().as_default():

            def body(x: tf.Tensor) -> tf.Tensor:
                with ipu.scopes.ipu_shard(0):
                    x = tf.tanh(x)
                with ipu.scopes.ipu_shard(1):
                    return tf.tanh(x)

            with ipu.scopes.ipu_scope("/device:IPU:0"):
                program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(2**30, body, [tf.ones([4])]))
            session = v1.Session()
            # TensorFlow 2.21 gets the graph before: getting it while a session closes ends the process, in stock
            # TensorFlow too.
            session.run(tf.no_op())

            def work(session: Any = session, program: Any = program) -> None:
                try:
                    session.run(program)
                except (tf.errors.CancelledError, RuntimeError):  # one that was closed before the run began
                    return
                except BaseException as error:
                    problems.append(f"{type(error).__name__}: {error}")
                else:
                    problems.append("an endless loop has ended")

            running = threading.Thread(target=work)
            running.start()
            time.sleep(0.4 * number / sessions)
            session.close()
            running.join()
    return "; ".join(problems[:3])


def beside_reconfiguration(runs: int, threads: int = 4) -> str:
    """Has threads run programs while another one configures again.

    Args:
        runs: the runs of each thread.
        threads: the number of threads.

    Returns:
        Returns the fault, or an empty string if each run returned its result or TensorFlow's error of a removed device.
    """
    problems: list[str] = []
    done = threading.Event()

    @tf.function
    def double(x: tf.Tensor) -> tf.Tensor:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            return ipu.ipu_compiler.compile(lambda x: x * 2.0, [x])[0]

    def work(number: int) -> None:
        for run in range(runs):
            x = float(number * runs + run)
            try:
                got = float(double(tf.constant(x)))
            except (tf.errors.CancelledError, tf.errors.FailedPreconditionError, tf.errors.UnavailableError):
                continue
            if got != 2 * x:
                problems.append(f"{got} is not twice {x}")

    def configure() -> None:
        for ipus in _alternating(done):
            _configured(ipus)

    _configured(1)
    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    configuring = threading.Thread(target=configure)
    for thread in (*workers, configuring):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    configuring.join()
    return "; ".join(problems[:3])


def _alternating(done: threading.Event) -> Iterator[int]:
    ipus = 1
    while not done.wait(0.05):
        ipus = 3 - ipus
        yield ipus
