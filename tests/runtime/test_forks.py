"""Children of a process that has used TensorFlow: what they may run, and that they end with their own status."""

import pytest
from slow_cases import slowly

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

COMMON = """
import gc, multiprocessing, os, signal, subprocess, sys, threading, time
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
gc.freeze()  # else each child would search through, and so copy, all that imports have made when it ends
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
"""
START = (
    COMMON
    + """
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
)
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
IN_A_FORK = (
    COMMON
    + """
def in_a_fork(call):
    child = os.fork()
    if child == 0:
        signal.alarm(100)  # what waits for a thread would do so for ever
        try:
            call()
        except tf.errors.FailedPreconditionError as error:
            print(error.message, flush=True)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
)
PROGRAMS_IN_A_FORK = (
    IN_A_FORK
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
SESSIONS_IN_A_FORK = (
    IN_A_FORK
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
SPAWNED = """
import concurrent.futures, multiprocessing, sys

def total(count):
    import tensorflow as tf
    from tensorflow.python import ipu
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()
    double = tf.function(lambda x: tf.reduce_sum(2.0 * x), jit_compile=True)
    return float(ipu.ipu_strategy.IPUStrategy().run(double, [tf.ones([count])]))

def ends(count):
    sys.exit(int(total(count)))

if __name__ == "__main__":
    assert total(3) == 6.0
    for method, daemon in (("spawn", True), ("forkserver", False)) if sys.argv[1] == "short" else (
        (method, daemon) for method in ("spawn", "forkserver") for daemon in (False, True)
    ):
        context = multiprocessing.get_context(method)
        if daemon:
            process = context.Process(target=ends, args=(4,), daemon=True)
            process.start()
            process.join(100)
            assert process.exitcode == 8, (method, process.exitcode)
        else:
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
                assert list(executor.map(total, (1, 2))) == [2.0, 4.0], method
    assert total(5) == 10.0
    print("all")
"""


@pytest.mark.parametrize(
    "script",
    [PROGRAMS, pytest.param(SESSIONS, marks=pytest.mark.slow), pytest.param(KERAS, marks=pytest.mark.slow)],
    ids=["programs", "sessions", "keras"],
)
def test_statuses(python, script, tmp_path):
    assert python.succeeds(python.script(script), tmp_path / "written", timeout=600) == "all\n"


def test_programs_in_a_fork(forked):
    lines = forked.succeeds(forked.script(PROGRAMS_IN_A_FORK)).splitlines()
    assert [line for line in lines if line.startswith("short")] == ["short 6.0"] * 2
    refused = [line for line in lines if "cannot run in this process. It was forked from" in line]
    assert len(refused) == 2 and all("multiprocessing.get_context('spawn')" in line for line in refused), lines


def test_sessions_in_a_fork(forked):
    lines = forked.succeeds(forked.script(SESSIONS_IN_A_FORK)).splitlines()
    refused = [line for line in lines if line.startswith("A session cannot run in this process: it was forked from")]
    assert len(refused) == 2 and lines[2:] == ["own threads 4.0", "no threads 4.0"], lines


def test_forks_of_a_process_that_has_run_nothing(forked):
    script = (
        IN_A_FORK
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
    assert forked.succeeds(forked.script(script)).splitlines() == ["1200.0"] * 4


@pytest.mark.parametrize("cases", ["short", slowly("all")])
@pytest.mark.slow
def test_programs_of_processes_that_are_started_anew(python, cases):
    assert python.succeeds(python.script(SPAWNED), cases, timeout=600) == "all\n"
