"""Ctrl-C ends what runs, raises KeyboardInterrupt, and leaves everything to run again.

What is interrupted would take hours, so that the process's time limit is the test.
"""

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

START = """
import os, signal, sys, threading, time
import numpy as np
ENDLESS, A_MINUTE = 2**30, 60
signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background is told to ignore it

def pressed(press, call):
    presses = threading.Thread(target=press, daemon=True)
    presses.start()
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        presses.join()
    return False

def interrupted(call, while_in=None):
    def is_time():
        if while_in is None:
            return True
        return any(while_in in frame.f_code.co_filename for frame in sys._current_frames().values())
    def press():
        time.sleep(0.2 if while_in else 0.8)
        while not is_time():
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)
    return pressed(press, call)
"""
SESSION = (
    START
    + """
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
from tf_ipu_shim import plugin
tf.disable_v2_behavior()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 4
config.configure_ipu_system()

def fed_so_far():
    return plugin.load().host_to_device(0).transfers

def fed(name, model, count):
    dataset = tf.data.Dataset.from_tensors(np.ones([4, 4], "f")).repeat()
    infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset), ipu.ipu_outfeed_queue.IPUOutfeedQueue("last")
    total = tf.get_variable(name, [], use_resource=True, initializer=tf.zeros_initializer())
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        loop = ipu.ipu_compiler.compile(lambda: model(total, count, infeed, outfeed), [])
    return infeed, loop, outfeed

def on_one(total, count, infeed, outfeed):
    def body(x):
        with tf.control_dependencies([total.assign_add(tf.reduce_sum(x))]):
            return outfeed.enqueue(total.read_value())
    return ipu.loops.repeat(count, body, [], infeed)

def on_four(total, count, infeed, outfeed):
    def body(x):
        for shard in range(4):
            with ipu.scopes.ipu_shard(shard):
                x = tf.tanh(x)
        return outfeed.enqueue(tf.reduce_sum(x))
    return ipu.loops.repeat(count, body, [], infeed)

def long_to_lower(total, count, infeed, outfeed):
    def body(x):
        for number in range(800):
            with ipu.scopes.ipu_shard(number % 4):
                x = tf.tanh(x)
        return outfeed.enqueue(tf.reduce_sum(x))
    return ipu.loops.repeat(count, body, [], infeed)

def pipelined(total, count, infeed, outfeed):
    return ipu.pipelining_ops.pipeline(
        [lambda x: x + 1.0, tf.reduce_sum], 4, repeat_count=count, infeed_queue=infeed, outfeed_queue=outfeed)

long_loop, short_loop = fed("a", on_one, ENDLESS), fed("b", on_one, 3)
shards, lowered, pipeline = fed("c", on_four, ENDLESS), fed("d", long_to_lower, 1), fed("e", pipelined, ENDLESS)
last = short_loop[2].dequeue()
waiting = long_loop[2].dequeue(wait_for_completion=True)
replicas, expected = 4, 0
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run([one[0].initializer for one in (long_loop, short_loop, shards, lowered, pipeline)])

    def runs():
        global expected
        expected += 3 * 16
        session.run(short_loop[1])
        assert session.run(last)[-1].tolist() == [expected] * replicas
    for turn in range(2):
        assert interrupted(lambda: session.run(long_loop[1])), "loop"
        runs()
    assert interrupted(lambda: session.run(shards[1])), "shards"
    assert interrupted(lambda: session.run(pipeline[1])), "pipeline"
    assert interrupted(lambda: session.run(lowered[1]), while_in="tf_ipu_shim/compiler"), "lowering"
    runs()
    session.run(lowered[1])

    def run_it():
        try:
            session.run(long_loop[1])
        except tf.errors.CancelledError as error:
            print("was interrupted by Ctrl-C" in str(error))

    def started():
        # A thread with a program that runs: what waits for programs waits for none that has not begun.
        before, running = fed_so_far(), threading.Thread(target=run_it)
        running.start()
        while fed_so_far() == before:
            time.sleep(0.001)
        return running
    running = started()
    assert interrupted(lambda: session.run(waiting)), "dequeue"
    running.join()
    runs()

    # A script that handles the signal in its own way is left alone, until it puts the default back.
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    assert not interrupted(lambda: (session.run(short_loop[1]), time.sleep(2)))
    assert seen == [1]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert interrupted(lambda: session.run(long_loop[1])), "again"

    # Programs of other threads go on where Python is free to answer.
    running = started()
    assert interrupted(lambda: time.sleep(A_MINUTE))
    time.sleep(0.3)
    assert running.is_alive()
    assert interrupted(lambda: session.run(waiting))
    running.join()
"""
)
TWO_IPUS = (
    START
    + """
import tensorflow as tf
import tf_ipu_shim
from tensorflow.python import ipu
config = ipu.config.IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()
"""
)
EAGER = (
    TWO_IPUS
    + """
x, y = np.ones([512, 16], "f"), np.ones([512, 8], "f")
keras = tf.keras
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(8, input_shape=(16,)), keras.layers.Dense(8)])
    model.compile("sgd", "mse", steps_per_execution=32)
    staged = keras.Sequential([keras.layers.Dense(8, input_shape=(16,)), keras.layers.Dense(8)])
    staged.set_pipeline_stage_assignment([0, 1])
    staged.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    staged.compile("sgd", "mse", steps_per_execution=64)
    for one, asynchronous in ((model, False), (staged, True)):
        one.set_asynchronous_callbacks(asynchronous)
        callbacks = [keras.callbacks.LambdaCallback(on_batch_end=lambda *_, **__: None)] if asynchronous else []
        assert interrupted(lambda: one.fit(x, y, batch_size=8, epochs=ENDLESS, verbose=0, callbacks=callbacks)), "fit"
        expected = x @ one.weights[0].numpy() + one.weights[1].numpy()
        expected = expected @ one.weights[2].numpy() + one.weights[3].numpy()
        got = one.predict(x, batch_size=8, verbose=0)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)

def endless(infeed):
    @tf.function(jit_compile=True)
    def run():
        return ipu.loops.repeat(ENDLESS, lambda total, x: total + x, [0.0], infeed)
    return run

# Within one XLA program: the loop ends between two iterations, and its variables stay as they were.
@tf.function(jit_compile=True)
def within(count, x):
    def inner(x):
        return tf.while_loop(lambda i, x: i < count, lambda i, x: (i + 1, tf.tanh(x)), [0, x])[1]
    def outer(x):
        first.assign_add(1.0)
        x = inner(x)
        second.assign_add(tf.ones([64]))
        return x
    return tf.while_loop(lambda i, x: i < count, lambda i, x: (i + 1, outer(x)), [0, x])[1]

os.environ["TF_IPU_SHIM_EXECUTION_MODE"] = "xla"
with strategy.scope():
    first, second = tf.Variable(0.0), tf.Variable(tf.zeros([64]))
for done in (0, 10):
    assert interrupted(lambda: strategy.run(within, [ENDLESS, tf.zeros([4])])), "within a program"
    assert [first.numpy().tolist(), second.numpy().tolist()] == [done, [done] * 64]
    strategy.run(within, [10, tf.zeros([4])])

def run_within():
    try:
        strategy.run(within, [ENDLESS, tf.zeros([4])])
    except tf.errors.CancelledError as error:
        print("was interrupted by Ctrl-C" in str(error))
running = threading.Thread(target=run_within)
begun = tf_ipu_shim.memory_report().devices[0].programs_run
running.start()
while tf_ipu_shim.memory_report().devices[0].programs_run == begun:  # else it might be the one that waits
    time.sleep(0.01)
assert interrupted(lambda: strategy.run(within, [ENDLESS, tf.zeros([4])])), "beside another"
running.join()
del os.environ["TF_IPU_SHIM_EXECUTION_MODE"]

numbers = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.float32(1)).repeat())
assert interrupted(lambda: strategy.run(endless(numbers))), "loop"

@tf.function(jit_compile=True)
def long_to_lower(x):
    for number in range(800):
        with ipu.scopes.ipu_shard(number % 2):
            x = tf.tanh(x)
    return x
assert interrupted(lambda: strategy.run(long_to_lower, [tf.zeros([4])]), while_in="tf_ipu_shim/compiler"), "lowering"
print(strategy.run(long_to_lower, [tf.zeros([4])]).numpy())
"""
)


@pytest.mark.slow
def test_sessions(forked):
    assert forked.succeeds(forked.script(SESSION)).split() == ["True"] * 2


def test_keras_and_functions(forked):
    assert forked.succeeds(forked.script(EAGER)) == "True\n[0. 0. 0. 0.]\n"


KERNEL = (
    START
    + """
from signal import default_int_handler as kernels_handler, signal as set_by_kernel  # before `ipu` is imported
import tensorflow as tf
from tensorflow.python import ipu
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    elements = iter(tf.data.Dataset.from_tensors(1.0).repeat())

@tf.function(jit_compile=True)
def long():
    total = 0.0
    for _ in tf.range(ENDLESS):
        total += next(elements)
    return total

for cell in range(3):
    before = set_by_kernel(signal.SIGINT, kernels_handler)
    assert interrupted(lambda: strategy.run(long)), cell
    set_by_kernel(signal.SIGINT, before)
print("all")
"""
)


@pytest.mark.slow
def test_cells_of_a_notebook(python):
    """As ipykernel does around each cell."""
    assert python.succeeds(python.script(KERNEL)) == "all\n"


DELETED = (
    TWO_IPUS
    + """
import weakref

@tf.function(jit_compile=True)
def step(x):
    return x + 1

class Deleted:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.3)
        print("deleted, beside", step(total).numpy())  # programs run until it comes again

class Watched:
    pass

def called_back():
    signal.raise_signal(signal.SIGINT)
    print("called back")

with tf.device("/device:IPU:0"):
    total = step(tf.ones([]))
    for kind in range(2):
        value = Deleted() if kind == 0 else Watched()
        if kind:
            weakref.finalize(value, called_back)
        try:
            del value
            time.sleep(A_MINUTE)
            print("lost")
        except KeyboardInterrupt:
            print("raised")
"""
)


def test_what_python_drops_comes_again(forked):
    process = forked("-c", DELETED)
    assert process.stdout == "deleted, beside 3.0\nraised\ncalled back\nraised\n", process.stdout + process.stderr
    assert "Exception ignored" not in process.stderr


COMPILING = (
    START
    + """
import traceback
os.environ["TF_IPU_SHIM_EXECUTION_MODE"] = "xla"
import tensorflow as tf
from tensorflow.python import ipu
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
LONG = 60
expected = np.ones([8, 8], "f")
for number in range(LONG):
    expected = np.exp(np.tanh(expected @ np.ones([8, 8], "f")) * (1 + number))
    expected /= expected.sum(1, keepdims=True)

def many(x, weights, count):
    for number in range(count):
        x = tf.nn.softmax(tf.tanh(tf.matmul(x, weights)) * (1.0 + number))
    return x

def in_compilation(call):
    def press():  # where Python stands still: while TensorFlow traces, Ctrl-C may become a SystemError of its own
        still, before = 0, None
        while still < 30:
            time.sleep(0.01)
            frames = sys._current_frames()
            files = (inner.f_code.co_filename for frame in frames.values() for inner, _ in traceback.walk_stack(frame))
            lowers = any("tf_ipu_shim/compiler" in file for file in files)
            frame = frames[threading.main_thread().ident]
            now = id(frame), frame.f_lasti
            still, before = (still + 1 if now == before and not lowers else 0), now
        os.kill(os.getpid(), signal.SIGINT)
    return pressed(press, call)

strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    weights, total = tf.Variable(tf.ones([8, 8])), tf.Variable(0.0)

@tf.function(jit_compile=True)
def whole(x, count):
    result = many(x, weights, count)
    total.assign_add(1.0)
    return result

@tf.function(jit_compile=True)
def short(x):
    total.assign_add(x)
    return total.read_value()

x = tf.ones([8, 8])
for turn in range(2):
    assert in_compilation(lambda: strategy.run(whole, [x, LONG])), "function"
    assert strategy.run(short, [0.5]).numpy() == 0.5 * (turn + 1)
np.testing.assert_allclose(strategy.run(whole, [x, LONG]), expected, rtol=1e-4)
assert total.numpy() == 2.0

with tf.Graph().as_default():
    fed = tf.compat.v1.placeholder(tf.float32, [8, 8])
    constant = tf.ones([8, 8])
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        [compiled] = ipu.ipu_compiler.compile(lambda x: many(x, constant, LONG), [fed])
        [other] = ipu.ipu_compiler.compile(lambda x: x + 1.0, [fed])
    feeds = {fed: np.ones([8, 8])}
    with tf.compat.v1.Session() as session:
        assert in_compilation(lambda: session.run(compiled, feeds)), "session"
        assert session.run(other, feeds).tolist() == [[2.0] * 8] * 8
        np.testing.assert_allclose(session.run(compiled, feeds), expected, rtol=1e-4)
    # TensorFlow waits for half a minute where a session does not close, and says "failed to close".
    with tf.compat.v1.Session() as session:
        assert in_compilation(lambda: session.run(compiled, feeds)), "closed"
    try:
        session.run(other, feeds)
    except RuntimeError as error:
        print(error)

if in_compilation(lambda: strategy.run(whole, [x, 20 * LONG])):
    sys.exit(3)  # at once: what is compiled would take minutes
"""
)


@pytest.mark.slow
def test_compilation(forked):
    process = forked(forked.script(COMPILING))
    assert (process.returncode, process.stdout) == (3, "Attempted to use a closed Session.\n"), process.stderr
    assert "failed to close" not in process.stderr


ERRORS = (
    TWO_IPUS
    + """
from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl

def as_an_error_is_made(frame, event, _):
    if event == "call" and frame.f_code.co_name == "__init__" and frame.f_code.co_filename in files:
        sys.setprofile(None)
        signal.raise_signal(signal.SIGINT)

files = {errors_impl.__file__, sys.modules["tensorflow.python.eager.core"].__file__}
fails = tf.function(lambda x: tf.reshape(x, tf.cast(x, tf.int32)))
with tf.Graph().as_default():
    shape = tf.compat.v1.placeholder(tf.int32, [1])
    in_a_graph, session = tf.reshape(tf.ones([2]), shape), tf.compat.v1.Session()
calls = {
    "a call of TensorFlow's": lambda: context.context().remove_function("no such function"),
    "an op": lambda: tf.raw_ops.Reshape(tensor=[1.0, 2.0], shape=[3]),
    "a function": lambda: fails(tf.constant([3.0, 1.0])),
    "a session": lambda: session.run(in_a_graph, {shape: [3]}),
}
for name, call in calls.items():
    try:
        swallowed = ""
        sys.setprofile(as_an_error_is_made)
        try:
            call()
        except Exception as error:  # as scripts do
            swallowed = type(error).__name__
            print("swallowed", swallowed)
        time.sleep(A_MINUTE)
        print("lost")
    except KeyboardInterrupt:
        assert not sys.getprofile(), "no error was made"
        print(name, swallowed != "RuntimeError")
"""
)


def test_interrupts_while_an_error_is_made(forked):
    """pybind11 would find another exception than the one that it has had made, and raise a RuntimeError."""
    printed = forked.succeeds(forked.script(ERRORS))
    wanted = ["a call of TensorFlow's True", "an op True", "a function True", "a session True"]
    assert [line for line in printed.splitlines() if not line.startswith("swallowed")] == wanted, printed
