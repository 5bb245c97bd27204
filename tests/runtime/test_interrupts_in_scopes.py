"""A Ctrl-C while TensorFlow enters or leaves scopes, or creates ops, leaves nothing half done."""

import pytest
from slow_cases import slowly

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

# Who is started in the background is told to ignore SIGINT.
LISTENS = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"

INTERRUPTS = (
    LISTENS
    + """
import sys

def is_interrupted_at(wanted, run, counts):
    lines = 0

    def count(frame, event, argument):
        nonlocal lines
        if event == "line" and counts(frame.f_code):
            lines += 1
            if lines == wanted:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return count

    sys.settrace(count)
    try:
        run()
        sys.settrace(None)
        while lines >= wanted:  # it comes a little later
            pass
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False
"""
)

SCOPES = """
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.eager import context

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()

def scopes():
    with strategy.scope(), tf.device("/device:CPU:0"), tf.name_scope("eager"):
        pass
    with tf.Graph().as_default() as graph, ipu.scopes.ipu_scope("/device:IPU:0"):
        with tf.compat.v1.variable_scope("variables"), graph.control_dependencies([]):
            pass

def state():
    here = context.context()
    return tf.distribute.has_strategy(), tf.executing_eagerly(), here.device_name, here.scope_name

def counts(code):
    # Python itself looks for signals at calls and jumps only: not where a script's `with` begins and ends.
    return code.co_filename != __file__

scopes()
before, line, step = state(), 1, int(sys.argv[1])
while is_interrupted_at(line, scopes, counts):
    assert state() == before, (line, before, state())
    line += step
print("interrupts:", line // step)
"""

WAITING = """
import contextlib, time
import tensorflow as tf
from tensorflow.python import ipu

ipu.config.IPUConfig().configure_ipu_system()

@contextlib.contextmanager
def slow():
    yield
    signal.raise_signal(signal.SIGINT)
    time.sleep(60)

try:
    with slow():
        pass
except KeyboardInterrupt:
    print("interrupted")
"""


OPS = """
import tensorflow as tf
from tensorflow.python import ipu

ipu.config.IPUConfig().configure_ipu_system()

weights = tf.Variable(tf.ones([2, 2]))

def layer(x):  # what visits all ops at the end asks who takes the results of those with state
    return tf.nn.bias_add(x @ weights, tf.random.uniform([2]))

def trace():
    tf.function(layer).get_concrete_function(tf.TensorSpec([2, 2]))

def counts(code):
    return code.co_name in ("_create_c_op", "from_node_def")

trace()
line, step = 1, int(sys.argv[1])
while is_interrupted_at(line, trace, counts):
    line += step
print("interrupts:", line // step)
"""


@pytest.mark.parametrize("step", [7, slowly(1)])
def test_ops_are_whole(forked, step):
    printed = forked.succeeds(forked.script(INTERRUPTS + OPS), str(step))
    assert int(printed.split()[-1]) > 50 // step, printed


@pytest.mark.parametrize("step", [29, slowly(1)])
def test_scopes_are_left(forked, step):
    printed = forked.succeeds(forked.script(INTERRUPTS + SCOPES), str(step))
    assert int(printed.split()[-1]) > 1500 // step, printed


def test_a_scope_that_waits_is_interrupted(forked):
    """The Ctrl-C is put off for a second at most."""
    assert forked.succeeds(forked.script(LISTENS + WAITING)) == "interrupted\n"
