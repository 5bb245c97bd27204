"""What must not grow over many runs: memory, threads, open files. What must not hang: runs beside reconfiguration."""

from __future__ import annotations

import os
import pathlib
import threading
from collections.abc import Iterator

import tensorflow as tf

from tf_ipu_shim import ipu

v1 = tf.compat.v1
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST_GROWTH = 24 << 20  # bytes: what allocators keep varies by some


def resident_bytes() -> int:
    """What the process has in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def open_files() -> int:
    """How many files the process has open."""
    return len(list(pathlib.Path("/proc/self/fd").iterdir()))


def _configured(ipus: int) -> None:
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()


def grown(runs: int) -> str:
    """Runs a training loop with feeds on two replicas again and again.

    Args:
        runs: how often, half of it before memory is looked at for the first time.

    Returns:
        What has grown meanwhile; empty where nothing has.
    """
    _configured(2)
    with tf.Graph().as_default():
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.ones([64])).repeat())
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        weights = v1.get_variable("weights", [64], use_resource=True)

        def body(x: tf.Tensor) -> tuple[object, ...]:
            loss = tf.reduce_sum((weights - x) ** 2)
            return outfeed.enqueue(loss), v1.train.GradientDescentOptimizer(0.01).minimize(loss)

        with ipu.scopes.ipu_scope("/device:IPU:0"):
            program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(2, body, [], infeed))
        rows = outfeed.dequeue()
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), infeed.initializer])

            def run(times: int) -> tuple[int, int, int]:
                for _ in range(times):
                    session.run(program)
                    session.run(rows)
                return resident_bytes(), threading.active_count(), open_files()

            before, after = run(runs // 2), run(runs // 2)
    if after[0] - before[0] < _MOST_GROWTH and after[1:] == before[1:]:
        return ""
    return f"memory, threads and files after {runs // 2} runs: {before}, after as many more: {after}"


def beside_reconfiguration(runs: int, threads: int = 4) -> str:
    """Has threads run programs while another one configures anew.

    Args:
        runs: of each thread.
        threads: how many run.

    Returns:
        What was wrong; empty where each run gave its result, or TensorFlow's error that its device was taken away.
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
