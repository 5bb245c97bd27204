"""A fork of a process that has used TensorFlow ends with its own status: it waits for none of its parent's threads."""

import pytest

START = """
import multiprocessing, os, signal, subprocess, sys, threading, time
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()

def status_of(end):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(100)  # what waits for a thread would do so for ever: the status is -SIGALRM
        end()
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def fails():
    sys.stderr = open(os.devnull, "w")
    raise ValueError("of a child")

def ends():
    return [status_of(end) for end in (lambda: sys.exit(5), fails, lambda: os._exit(7))]

EXPECTED = [5, 1, 7]
"""
PROGRAMS = (
    START
    + """
import atexit
assert strategy.run(tf.function(lambda x: tf.sin(x), jit_compile=True), [tf.zeros([2])]).numpy().tolist() == [0, 0]
assert ends() == EXPECTED, "a program"

def daemon():  # as daemons are started: the second fork is nobody's child
    assert status_of(lambda: sys.exit(0 if status_of(lambda: sys.exit(3)) == 3 else 1)) == 0
    sys.exit(4)
assert status_of(daemon) == 4, "a daemon"

def writes():
    global left_open
    left_open = open(sys.argv[1], "w")
    left_open.write("what Python writes when it ends")
    atexit.register(lambda: left_open.write(", and before"))
assert status_of(writes) == 0
assert open(sys.argv[1]).read() == "what Python writes when it ends, and before"
assert status_of(lambda: sys.exit(subprocess.run([sys.executable, "-c", "raise SystemExit(6)"]).returncode)) == 6

def squares(number):
    return number * number
for daemonic in (False, True):
    process = multiprocessing.get_context("fork").Process(target=sys.exit, args=(9,), daemon=daemonic)
    process.start()
    process.join(100)
    assert process.exitcode == 9
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(squares, range(4)) == [0, 1, 4, 9]

def with_an_iterator():
    iterator = iter(tf.data.Dataset.range(1000).map(lambda x: x + 1, num_parallel_calls=2).prefetch(4).repeat())
    assert int(next(iterator)) == 1
    return ends()
assert with_an_iterator() == EXPECTED, "an iterator"

infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(1.0).repeat())
loop = tf.function(lambda count: ipu.loops.repeat(count, lambda total, x: total + x, [0.0], infeed), jit_compile=True)
assert float(strategy.run(loop, [3])) == 3.0
assert ends() == EXPECTED, "an infeed"
ended = False
def run():
    while not ended:
        strategy.run(loop, [2000])
running = threading.Thread(target=run)
running.start()
try:
    for _ in range(2):
        time.sleep(0.05)
        assert status_of(lambda: sys.exit(5)) == 5, "beside a program that runs"
finally:
    ended = True
    running.join()
assert float(strategy.run(loop, [4])) == 4.0, "the parent goes on"
print("all")
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
    element = v1.data.make_one_shot_iterator(tf.data.Dataset.range(1000).prefetch(2).repeat()).get_next()
    own = v1.ConfigProto(use_per_session_threads=True)
    with v1.Session() as session, v1.Session(config=own) as other:
        assert session.run(result, {fed: 3.0}) == other.run(result, {fed: 3.0}) == 6.0
        assert session.run(element) == other.run(element) == 0
        assert ends() == EXPECTED
        assert session.run(result, {fed: 4.0}) == 8.0
print("all")
"""
)
KERAS = (
    START
    + """
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(3,)), tf.keras.layers.Dense(4)])
    model.compile("adam", "mse", steps_per_execution=8)
    model.set_asynchronous_callbacks(True)
    model.fit(np.ones([64, 3], "f"), np.ones([64, 4], "f"), batch_size=2, verbose=0, epochs=2)
    assert ends() == EXPECTED
print("all")
"""
)


@pytest.mark.parametrize(
    "script",
    [PROGRAMS, pytest.param(SESSIONS, marks=pytest.mark.slow), pytest.param(KERAS, marks=pytest.mark.slow)],
    ids=["programs", "sessions", "keras"],
)
def test_statuses(python, script, tmp_path):
    assert python.succeeds(python.script(script), tmp_path / "written", timeout=600) == "all\n"
