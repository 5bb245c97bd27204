"""Processes forked from one that has used TensorFlow: its threads are not in them, and nothing waits for these."""

START = """
import os, signal
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()

def in_a_fork(call):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # what waits for a thread would do so for ever
        try:
            call()
        except tf.errors.FailedPreconditionError as error:
            print(error.message, flush=True)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
EAGER = (
    START
    + """
strategy = ipu.ipu_strategy.IPUStrategy()
square = tf.function(lambda x: tf.matmul(x, x))
double = tf.function(lambda x: 2.0 * x)
total = tf.function(lambda: ipu.loops.repeat(3, lambda total, x: total + x, [0.0], infeed))
infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(2.0).repeat())

def long(of):
    assert strategy.run(square, args=[tf.constant(np.full([300, 300], of, "f"))]).numpy()[7, 7] == 300 * of * of

def short():
    print("short", strategy.run(double, args=[tf.constant(3.0)]).numpy(), flush=True)

with strategy.scope():
    long(2.0)
    short()
    in_a_fork(lambda: long(3.0))
    in_a_fork(lambda: print(strategy.run(total)))
    in_a_fork(short)
    long(4.0)
    assert float(strategy.run(total)) == 6.0
"""
)
SESSIONS = (
    START
    + """
v1 = tf.compat.v1
with tf.Graph().as_default():
    fed = v1.placeholder(tf.float32, [])
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        (result,) = ipu.ipu_compiler.compile(lambda x: 2.0 * x, [fed])
    on_this_thread = v1.ConfigProto(inter_op_parallelism_threads=-1)
    with v1.Session() as session, v1.Session(config=on_this_thread) as single:
        assert session.run(result, {fed: 3.0}) == 6.0
        in_a_fork(lambda: session.run(result, {fed: 3.0}))
        in_a_fork(lambda: v1.Session().run(result, {fed: 3.0}))
        own = v1.ConfigProto(use_per_session_threads=True)
        in_a_fork(lambda: print("own threads", v1.Session(config=own).run(fed + 1.0, {fed: 3.0}), flush=True))
        in_a_fork(lambda: print("no threads", single.run(fed + 1.0, {fed: 3.0}), flush=True))
        assert session.run(result, {fed: 4.0}) == 8.0
"""
)


def test_programs(python):
    lines = python.succeeds(python.script(EAGER)).splitlines()
    assert [line for line in lines if line.startswith("short")] == ["short 6.0"] * 2
    refused = [line for line in lines if "cannot run in this process. It was forked from" in line]
    assert len(refused) == 2 and all("multiprocessing.get_context('spawn')" in line for line in refused), lines


def test_sessions(python):
    lines = python.succeeds(python.script(SESSIONS)).splitlines()
    refused = [line for line in lines if line.startswith("A session cannot run in this process: it was forked from")]
    assert len(refused) == 2 and lines[2:] == ["own threads 4.0", "no threads 4.0"], lines


def test_forks_of_a_process_that_has_run_nothing(python):
    script = (
        START
        + """
square = tf.function(lambda x: tf.matmul(x, x), jit_compile=True)

def run():
    config.configure_ipu_system()
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        print(square(tf.constant(np.full([300, 300], 2.0, "f"))).numpy()[7, 7], flush=True)

for _ in range(3):
    in_a_fork(run)
run()
"""
    )
    assert python.succeeds(python.script(script)).splitlines() == ["1200.0"] * 4
