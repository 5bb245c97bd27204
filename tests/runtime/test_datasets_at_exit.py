"""A process ends though a thread of its datasets is in the middle of a Python function."""

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

COMMON = """
import time
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu

def slow(x):
    time.sleep(1 if x else 0)
    return x

def load(x):
    return tf.cast(tf.ensure_shape(tf.numpy_function(slow, [x], tf.int64), []), tf.float32)

def elements():
    for number in range(4):
        yield slow(number)

def first_of(dataset):
    iterator = iter(dataset.prefetch(4))
    next(iterator)
    raise ValueError("uncaught")
"""
ITERATOR = COMMON + "first_of(tf.data.Dataset.range(4).map(load))\n"
GENERATOR = COMMON + "first_of(tf.data.Dataset.from_generator(elements, tf.int64, []))\n"
SESSION = (
    COMMON
    + """
def first():
    infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(4).map(load).prefetch(4))
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        total = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(1, lambda t, x: t + x, [0.0], infeed))
    session = tf.Session()
    session.run(infeed.initializer)
    session.run(total)
    raise ValueError("uncaught")

tf.disable_v2_behavior()
first()
"""
)


@pytest.mark.parametrize("script", [ITERATOR, GENERATOR, SESSION], ids=["iterator", "generator", "session"])
def test_an_uncaught_error_ends_the_process(forked, script):
    """Its frames hold what waits for the thread, and are let go when no thread can run Python any more."""
    process = forked(forked.script(script))
    assert process.returncode == 1, process.stdout + process.stderr
    assert process.stderr.endswith("ValueError: uncaught\n")
