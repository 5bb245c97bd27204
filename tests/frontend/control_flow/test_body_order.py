"""Variables in conds and loops of a session's graph are accessed in the order of stock `xla.compile`, in both modes."""

import pytest
import tensorflow as tf
from soak import access_programs
from tensorflow.python import ipu
from tensorflow.python.ops import control_flow_util

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture(params=[1, 2])
def version(request, monkeypatch):
    """Control flow of TensorFlow 1 and 2."""
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", request.param == 2)


# Those after 10 differ if ops that no result needs count, both branches have the same names, constants don't wait for
# the iteration or branch that they stand in, arguments of nested loops are named by the loop, and a branch that ends
# before its nested branch has read a variable. In `mixed`, a branch and a body call functions.
@pytest.mark.ci_cases(7)
@pytest.mark.parametrize(
    ("kind", "version", "seed"),
    [("cond", 1, 2), ("cond", 1, 26), ("cond", 1, 31), ("cond", 1, 49), ("cond", 1, 137), ("cond", 2, 1)]
    + [("cond", 2, 123), ("loop", 1, 1), ("loop", 1, 14), ("loop", 2, 2), ("call", 2, 6), ("call", 2, 18)]
    + [("mixed", 1, 17), ("mixed", 1, 222)],
)
def test_accesses_in_bodies_are_ordered_as_stock_orders_them(ipus, kind, version, seed):
    ipus(1)
    function, optimizes = access_programs.Function(kind, seed), access_programs.optimizes(kind, version)
    with access_programs.control_flow(version):
        assert access_programs.difference(function, optimizes=optimizes) == ""


def nested_cond(x):
    weight = v1.get_variable("b", initializer=1.0, use_resource=True)

    def outer():
        read = tf.cond(x[0] > 0.0, lambda: weight.read_value(), lambda: x[0])
        with tf.name_scope("l"), tf.control_dependencies([weight.assign(3.0).op]):
            return read + 1.0

    return tf.cond(x[0] > 0.5, outer, lambda: x[0])


def test_stock_has_two_orders_for_nested_conds(ipus, execution_mode):
    """Its session's graph optimizer decides, so the order here is that of the graph as it is made."""
    ipus(1)
    with access_programs.control_flow(1):
        optimized, made = (access_programs.ran(tf.xla.experimental.compile, nested_cond, on) for on in (True, False))
        assert [optimized[0], made[0]] == [4.0, 2.0]
        assert access_programs.difference(nested_cond, [execution_mode], optimizes=False) == ""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 280, 20))
def test_more_accesses(ipus, first):
    ipus(1)
    assert [text for text in access_programs.found(first, 20) if text] == []


def written_between(x):
    """What nothing needs of it: every write."""
    total = v1.get_variable("total", initializer=1.0, use_resource=True)
    before = total.read_value()
    total.assign(before + x[0])
    after = total.read_value()
    total.assign_add(10.0)
    sums = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + total.read_value()), (0, 0.0))[1]
    total.assign_add(100.0)
    return before, after, sums


def branches_between(x):
    state = v1.get_variable("state", initializer=1.0, use_resource=True)
    before = state.read_value()
    tf.cond(before > 0.0, lambda: state.assign_add(2.0), lambda: state.assign_sub(1.0))
    between = state.read_value()
    tf.switch_case(tf.constant(1), [lambda: state.assign_add(7.0), lambda: state.assign(state * 10.0)])
    state.assign_sub(1.0)
    return tf.stack([before, between, state.read_value()])


@pytest.mark.usefixtures("version")
@pytest.mark.parametrize("program", [written_between, branches_between])
def test_writes_that_nothing_needs_are_in_stocks_order(ipus, execution_mode, program):
    ipus(1)
    assert access_programs.difference(program, [execution_mode]) == ""


def test_elements_follow_the_order_of_the_variables(ipus, execution_mode):
    """The script sends `first` before `last`; stock puts the write, which waits for `last`, before the read."""
    ipus(1)
    first, last = (ipu.ipu_outfeed_queue.IPUOutfeedQueue() for _ in range(2))

    def program(sent):
        weight = v1.get_variable("w", initializer=1.0, use_resource=True)
        read = weight.read_value()
        if sent:
            first.enqueue(read)
        with tf.control_dependencies([last.enqueue(2.0)] if sent else []):
            weight.assign(3.0)
        return read

    with tf.Graph().as_default(), v1.Session() as session:
        (wanted,) = tf.xla.experimental.compile(lambda: program(False))
        session.run(v1.global_variables_initializer())
        wanted = session.run(wanted)
    with tf.Graph().as_default(), v1.Session() as session:
        (result,) = access_programs.on_ipu(lambda: program(True), [])
        rows = first.dequeue(), last.dequeue()
        session.run(v1.global_variables_initializer())
        assert session.run(result) == wanted == 3.0
        assert [row.tolist() for row in session.run(rows)] == [[3.0], [2.0]]


def called_with_state(inner):
    """A called function that reads and writes what its caller writes, too."""

    def program(x):
        total = v1.get_variable("total", initializer=1.0, use_resource=True)
        function = tf.function(lambda y: inner(y, total), autograph=False)
        first = function(x[0])
        total.assign_add(10.0)
        with tf.control_dependencies([first]):
            second = function(x[1])
        with tf.control_dependencies([second]):
            return first, second, total.read_value()

    return program


def twice_with_branch(y, total):
    """By its name, stock's order takes the second read before the write of the caller."""
    total.assign(total * 2.0)
    return tf.cond(y > 0.7, lambda: total + y, lambda: total - y)


@pytest.mark.parametrize("gradient", [False, True])
def test_called_functions_are_inlined_as_stock_inlines_them(ipus, execution_mode, gradient):
    ipus(1)

    def program(x):
        results = called_with_state(twice_with_branch)(x)
        return [*results, *(v1.gradients(results[0] * results[1], [x]) if gradient else [])]

    assert access_programs.difference(program, [execution_mode]) == ""


def test_the_line_of_an_op_in_an_inlined_function(ipus):
    ipus(1)

    def upper(y, total):
        total.assign(total * 2.0)
        return y + tf.strings.to_number(tf.strings.upper("1"))

    with tf.Graph().as_default(), v1.Session() as session:
        results = access_programs.on_ipu(called_with_state(upper), [tf.ones([2])])
        session.run(v1.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)StringUpper.*test_body_order\.py:\d+, in upper"):
            session.run(results)
