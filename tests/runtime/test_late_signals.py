"""A program that has run is deleted while a thread that started one of its ops still leaves that op."""

import pathlib
import subprocess

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

SOURCE = pathlib.Path(__file__).with_name("late_signals.cc")
# The memory of a deleted op is filled, so that whoever uses it fails.
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


@pytest.fixture(scope="module")
def late_signals(tmp_path_factory):
    """The library that delays them, as a variable of a process."""
    library = tmp_path_factory.mktemp("late") / "late_signals.so"
    done = subprocess.run(
        ["g++", "-std=c++17", "-shared", "-fPIC", str(SOURCE), "-o", str(library), "-ldl"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {"LD_PRELOAD": str(library), **FILLED}


@pytest.mark.parametrize("feed", [ITERATOR, INFEED], ids=["iterator", "infeed"])
def test_an_op_that_waits_may_be_deleted_once_done(python, late_signals, feed):
    python.succeeds(python.script(COMMON + feed + RUN), environment=late_signals)
