"""Processes that have one parent: workers of multiprocessing, and forks of a process that has loaded TensorFlow."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

_PATIENCE = 300.0  # seconds
_FORKS = """
import multiprocessing
import tensorflow
from tf_ipu_shim import ipu
from soak import families

assert multiprocessing.get_context("fork").Pool(2).map(families.work, range(6)) == families.WANTED
assert [families.work(number) for number in range(6)] == families.WANTED
"""
WANTED = [5.0 * number for number in range(6)]


def work(number: int) -> float:
    """Adds a number to itself on an IPU of this process, five times."""
    import tensorflow as tf

    from tf_ipu_shim import ipu

    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()

    @tf.function(jit_compile=True)
    def function(x: tf.Tensor) -> tf.Tensor:
        return ipu.loops.repeat(5, lambda total: total + x, [0.0])

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return float(function(tf.constant(float(number))))


def found() -> Iterator[str]:
    """Makes workers of `spawn`, of `forkserver`, then forks run programs on separate IPUs, in turns.

    The one that forks has loaded TensorFlow and this package, and has run no program: a fork has none of TensorFlow's
    threads.

    Yields:
        Returns the fault, or an empty string if each process returned its results.
    """
    with tempfile.TemporaryDirectory(prefix="families_") as locks:
        os.environ["TF_IPU_SHIM_LOCK_DIR"] = locks
        try:
            for method in ("spawn", "forkserver"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    got = pool.map_async(work, range(6)).get(timeout=_PATIENCE)
                yield "" if got == WANTED else f"{method} workers gave {got}, not {WANTED}"
            paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            forks = [sys.executable, "-c", _FORKS]
            done = subprocess.run(forks, env=paths, capture_output=True, text=True, timeout=_PATIENCE)
            yield "" if done.returncode == 0 else f"forks: {done.stderr[-2000:]}"
        except (multiprocessing.TimeoutError, subprocess.TimeoutExpired) as error:
            yield f"no result after {_PATIENCE:.0f} s: {error}"
        finally:
            del os.environ["TF_IPU_SHIM_LOCK_DIR"]
