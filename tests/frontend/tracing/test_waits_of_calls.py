"""A `tf.function` called in a session's graph runs when its inputs are there, and what takes its results follows it.

TensorFlow adds no control input to an op that takes a value of the op to wait for. Stock XLA inlines calls, and so
forgets some of these waits, so that the values are not stock's but what the script says.
"""

import functools

import pytest
import tensorflow as tf
from soak import access_programs
from tensorflow.python.ops import control_flow_util

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture(params=[1, 2])
def version(request, monkeypatch):
    """Control flow of TensorFlow 1 and 2."""
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", request.param == 2)


def waiting_for(op, made):
    with tf.control_dependencies([op]):
        return made()


def called(function, *arguments):
    return tf.function(function, autograph=False)(*arguments)


def halved(state, x):
    """Halves a variable; the result does not tell."""
    return waiting_for(state.assign(state.read_value() * 0.5).op, lambda: tf.identity(x))


def loop(state, x):
    return tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, halved(state, x)), (0, x), maximum_iterations=5)[1]


def cond(state, x):
    return tf.cond(x > 0.0, lambda: halved(state, x), lambda: x)


def forgetful(state, x):
    """The result needs nothing of what the function does."""
    state.assign(state * 0.5)
    return x * 1.0


def call(state, x):
    return called(lambda x: forgetful(state, x), x)


def nested_calls(state, x):
    return called(lambda x: called(lambda x: forgetful(state, x), x) + 0.0, x)


def call_of_a_loop(state, x):
    return called(lambda x: loop(state, x), x)


def pure_call(state, x):
    """What takes the result of the call knows of the loop by it alone."""
    return called(lambda x: x * 1.0, loop(state, x))


def call_that_waits(state, x):
    """The call of a loop's value waits for the next one."""
    return waiting_for(cond(state, x).op, lambda: call(state, x))


WRITES = {
    loop: 0.125,
    cond: 0.5,
    call: 0.5,
    nested_calls: 0.5,
    call_of_a_loop: 0.125,
    pure_call: 0.125,
    call_that_waits: 0.25,
}


def read(state, x):
    """Reads what the script has it wait for, but takes a value of no other op."""
    return state.read_value() + 0.0 * x


def read_by_a_call(state, x):
    return called(lambda x: read(state, x), x)


def read_by_nested_calls(state, x):
    return called(lambda x: called(lambda x: read(state, x), x), x)


def read_by_a_loop(state, x):
    return called(lambda x: tf.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, read(state, x)), (0, x))[1], x)


def read_by_a_branch(state, x):
    return called(lambda x: tf.cond(x > 0.0, lambda: read(state, x), lambda: x), x)


def added(state, x):
    """No call: the write takes the value that it waits for."""
    return state.assign_add(0.0 * x)


READS = (read, read_by_a_call, read_by_nested_calls, read_by_a_loop, read_by_a_branch, added)


def program(reads, x):
    results = []
    for write in WRITES:
        state = v1.get_variable(f"{write.__name__}_{reads.__name__}", initializer=1.0, use_resource=True)
        written = write(state, x[0])
        results.append(waiting_for(written.op, functools.partial(reads, state, written)))
    return [tf.identity(result) for result in results]


@pytest.mark.ci_cases(6)
@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("reads", READS)
def test_what_a_script_waits_for_has_been_written(ipus, execution_mode, reads):
    ipus(1)
    with tf.Graph().as_default(), v1.Session() as session:
        results = access_programs.on_ipu(functools.partial(program, reads), [tf.ones([2])])
        session.run(v1.global_variables_initializer())
        found = session.run(results)
    assert dict(zip(WRITES, found, strict=True)) == WRITES
