"""Threads that lose their core for a while: what they use is there when they go on."""

import pathlib
import subprocess

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

SOURCE = pathlib.Path(__file__).with_name("late_threads.cc")
# The memory of what is deleted is filled, so that whoever uses it fails.
FILLED = {"MALLOC_PERTURB_": "90"}
COMMON = """
import ctypes
import gc
import time
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategyV1()
dataset = tf.data.Dataset.from_tensors([1.0, 2.0]).repeat()
"""
ITERATOR = """
iterator = iter(dataset)

def total():
    result = tf.zeros([2])
    for _ in tf.range(3):
        result += next(iterator)
    return result
"""
INFEED = """
infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset)
infeed.initializer

def total():
    return ipu.loops.repeat(3, lambda total, x: total + x, [tf.zeros([2])], infeed)
"""
RUN = """
ctypes.CDLL(None).delay_signals(1_000_000)
with strategy.scope():
    program = tf.function(total)
    assert strategy.run(program).numpy().tolist() == [3, 6]
    del program
    gc.collect()
time.sleep(2)
"""
# The infeed's values come from a function with a resource, all of which its deletion frees.
DELETED = """
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3.0, 4.0]), 0.0)
infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors([1, 2]).repeat().map(table.lookup))
infeed.initializer
with strategy.scope():
    run = tf.function(lambda: ipu.loops.repeat(3, lambda total, x: total + x, [tf.zeros([2])], infeed))
    assert strategy.run(run).numpy().tolist() == [9, 12]
ctypes.CDLL(None).delay_starts(3_000_000)
infeed.deleter
"""


@pytest.fixture(scope="module")
def late_threads(tmp_path_factory):
    """The library that delays threads, as a variable of a process."""
    library = tmp_path_factory.mktemp("late") / "late_threads.so"
    done = subprocess.run(
        ["g++", "-std=c++17", "-shared", "-fPIC", str(SOURCE), "-o", str(library), "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {"LD_PRELOAD": str(library), **FILLED}


@pytest.mark.parametrize("feed", [pytest.param(ITERATOR, marks=pytest.mark.slow), INFEED], ids=["iterator", "infeed"])
def test_an_op_that_waits_may_be_deleted_once_done(python, late_threads, feed):
    python.succeeds(python.script(COMMON + feed + RUN), environment=late_threads)


def test_an_infeed_is_deleted_when_the_process_ends(python, late_threads):
    """The thread that deletes it begins when the process is at its end."""
    python.succeeds(python.script(COMMON + DELETED), environment=late_threads)
