"""Processes that are ended at any moment, and those whose disk is full.

Each ends when it is told to, and the next one finds its IPUs, its compiled programs and its reports whole.
"""

from __future__ import annotations

import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
_PATIENCE = 30.0  # seconds in which a process ends after a signal
_START = 180.0  # seconds in which a process gives its first result while others run
_SCRIPT = """
import itertools, sys
import numpy as np
import tensorflow as tf
from tf_ipu_shim import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = [2]
config.configure_ipu_system()
weights = tf.Variable(tf.zeros([4]))

def trained(factor):
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.ones([4])).repeat())
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    @tf.function(jit_compile=True)
    def steps():
        def body(x):
            total = ipu.ops.cross_replica_ops.cross_replica_sum(x * factor)
            weights.assign_add(total)
            return outfeed.enqueue(total)
        ipu.loops.repeat(5, body, [], infeed)

    strategy.run(steps)
    rows = outfeed.dequeue().numpy()
    np.testing.assert_array_equal(rows, np.full([5, 2, 4], 2 * factor, "f"))

strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    for turn in itertools.count(1):
        weights.assign(tf.zeros([4]))
        trained(float(turn % 7))
        np.testing.assert_array_equal(weights, np.full([4], 5 * 2 * (turn % 7), "f"))
        print("right", flush=True)
        if len(sys.argv) > 1 and turn == int(sys.argv[1]):
            break
        if turn % 5 == 0:
            config.configure_ipu_system()
            weights = tf.Variable(tf.zeros([4]))
"""


def found(processes: int, seed: int = 1) -> Iterator[str]:
    """Starts processes that train, one after another, and sends each a signal.

    All have one directory of locks, of compiled programs and of profiles, so each finds the files of the previous one.

    Args:
        processes: the number of processes.
        seed: the seed of the moments and signals.

    Yields:
        Returns the fault of a process, or an empty string if it ended as it should.
    """
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="abrupt_ends_") as folder:
        environment = _environment(pathlib.Path(folder))
        for number in range(processes):
            wanted = chance.choice(_SIGNALS)
            # A third while it starts, the others while it compiles, runs and configures.
            starting = chance.random() < 1 / 3
            yield _ended(environment, wanted, starting, chance.uniform(0, 4 if starting else 1.5), number)
        last = subprocess.run(_command("3"), env=environment, capture_output=True, text=True, timeout=_START)
        yield "" if last.returncode == 0 else f"the last process, which nothing ended: {last.stderr[-2000:]}"


def without_room(sizes: Sequence[int] = (100, 5_000, 60_000)) -> Iterator[str]:
    """Trains in processes whose files are limited in size.

    Args:
        sizes: bytes that each may write to a file, smaller and larger than a compiled program and a profile.

    Yields:
        Returns the fault of a process, or an empty string if it trained all the same.
    """
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="without_room_") as folder:

            def limit(size: int = size) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

            environment = _environment(pathlib.Path(folder))
            done = subprocess.run(
                _command("3"), env=environment, capture_output=True, text=True, timeout=_START, preexec_fn=limit
            )
            yield "" if done.returncode == 0 else f"files of at most {size} bytes: {done.stderr[-2000:]}"


def _environment(folder: pathlib.Path) -> dict[str, str]:
    for name in ("locks", "programs", "profiles"):
        (folder / name).mkdir(mode=0o700)
    return {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_IPU_SHIM_LOCK_DIR": str(folder / "locks"),
        "TF_POPLAR_FLAGS": f"--executable_cache_path={folder / 'programs'}",
        "POPLAR_ENGINE_OPTIONS": f'{{"autoReport.all":"true", "autoReport.directory":"{folder / "profiles"}"}}',
    }


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", _SCRIPT, *arguments]


def _ended(environment: dict[str, str], wanted: signal.Signals, starting: bool, wait: float, number: int) -> str:
    told = f"process {number}, {wanted.name} {wait:.2f} s after its {'start' if starting else 'first result'}"
    with subprocess.Popen(
        _command(),
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_mind_interrupts,  # who is started in the background is told to ignore Ctrl-C
    ) as process:
        try:
            if not starting and (problem := _first_result(process)):
                return f"{told}: {problem}"
            time.sleep(wait)
            process.send_signal(wanted)
            try:
                _, errors = process.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                return f"{told}: still runs after {_PATIENCE:.0f} s"
        finally:
            process.kill()
    if process.returncode == -wanted:
        return ""
    # KeyboardInterrupt may arrive while Python loads modules, and some modules catch it. NumPy's C code replaces it by
    # another error.
    if wanted == signal.SIGINT and ("KeyboardInterrupt" in errors or "Error importing numpy" in errors):
        return ""
    return f"{told}: ended with {process.returncode}: {errors[-2000:]}"


def _mind_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _first_result(process: subprocess.Popen[str]) -> str:
    began = time.monotonic()
    assert process.stdout is not None
    line = process.stdout.readline()
    if line != "right\n":
        return f"no result, {line!r}: {process.communicate(timeout=_PATIENCE)[1][-2000:]}"
    late = time.monotonic() - began
    return "" if late < _START else f"its first result took {late:.0f} s"
