"""On-device loops with feeds, against the same computation in NumPy or on the CPU; what they refuse."""

import numpy as np
import pytest
import tensorflow as tf
from compiling import IPU
from feeding import compiled, numbers
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedQueue

from tf_ipu_shim import ipu

v1 = tf.compat.v1


def test_a_loop_takes_an_element_an_iteration(graph):
    infeed = IPUInfeedQueue(numbers(5))
    total = compiled(lambda: ipu.loops.repeat(7, lambda total, x: total + x, [0.0], infeed))
    with v1.Session() as session:
        session.run(infeed.initializer)
        assert session.run(total) == [0 + 1 + 2 + 3 + 4 + 0 + 1]
        assert session.run(total) == [2 + 3 + 4 + 0 + 1 + 2 + 3], "goes on where it stopped"
    assert infeed.dequeued and infeed.number_of_tuple_elements == 1


def test_a_session_runs_of_a_body_what_it_returns(graph):
    """In TensorFlow 1 an assignment in a loop's body does not run where nothing returned depends on it."""

    def model():
        kept, left = (v1.get_variable(name, initializer=0.0, use_resource=True) for name in ("kept", "left"))

        def body(total):
            left.assign_add(1.0)
            with tf.control_dependencies([kept.assign_add(total)]):
                return total + 1

        return ipu.loops.repeat(3, body, [1.0])

    total = compiled(model)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(total) == [4]
        assert session.run(v1.global_variables()) == [1 + 2 + 3, 0]


def test_a_session_leaves_out_what_the_script_does_not_wait_for(graph):
    """TensorFlow has ops with side effects wait for each other, among them those of a Keras model's symbolic call."""
    outfeed = IPUOutfeedQueue()

    def model(x):
        order = v1.get_variable("order", initializer=0.0, use_resource=True)

        def body(total):
            unfed = v1.placeholder(tf.float32, [2])
            first = order.assign_add(1.0)
            tf.cond(tf.reduce_any(unfed > 0.0), lambda: tf.random.uniform([2]), lambda: unfed)
            with tf.control_dependencies([first]):
                return total + tf.reduce_sum(x), outfeed.enqueue(order * 2.0)

        return ipu.loops.repeat(3, body, [0.0])

    total, sent = compiled(model, [tf.constant([1.0, 2.0])]), outfeed.dequeue()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(total) == [9.0]
        assert session.run(sent).tolist() == [2.0, 4.0, 6.0]


def train_step(outfeed):
    def step(x, y):
        with v1.variable_scope("model", reuse=v1.AUTO_REUSE):
            first = v1.get_variable("first", [6, 5], initializer=v1.glorot_uniform_initializer(seed=1))
            second = v1.get_variable("second", [5, 2], initializer=v1.glorot_uniform_initializer(seed=2))
        with ipu.scopes.ipu_shard(0):
            hidden = tf.tanh(tf.matmul(x, first))
        with ipu.scopes.ipu_shard(1):
            loss = tf.reduce_mean(tf.square(tf.matmul(hidden, second) - y))
        update = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        return (update, outfeed.enqueue(loss)) if outfeed else (update, loss)

    return step


@pytest.mark.parametrize("ipus", [1, 2])
def test_training_in_a_loop_gives_the_cpu_s_weights(graph, ipus, monkeypatch):
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()
    if ipus == 1:
        monkeypatch.setattr(ipu.scopes, "ipu_shard", lambda _: tf.name_scope("unsharded"))
    random = np.random.RandomState(3)
    features, targets = random.rand(8, 4, 6).astype("f"), random.rand(8, 4, 2).astype("f")
    infeed = IPUInfeedQueue(tf.data.Dataset.from_tensor_slices((features, targets)).repeat())
    outfeed = IPUOutfeedQueue()
    train = compiled(lambda: ipu.loops.repeat(20, train_step(outfeed), [], infeed))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(train)
        losses = session.run(dequeued)
        weights = session.run(v1.trainable_variables())
    ipu.config.reset_ipu_configuration()

    with tf.Graph().as_default(), v1.Session() as session, v1.variable_scope("", use_resource=True):
        x, y = v1.placeholder(tf.float32, [4, 6]), v1.placeholder(tf.float32, [4, 2])
        update, loss = train_step(None)(x, y)
        session.run(v1.global_variables_initializer())
        expected = [session.run([loss, update], {x: features[i % 8], y: targets[i % 8]})[0] for i in range(20)]
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        for got, variable in zip(weights, v1.trainable_variables()):
            np.testing.assert_allclose(got, session.run(variable), rtol=1e-5, atol=1e-6)


def test_a_while_loop_stops_when_its_condition_says_so(graph):
    infeed = IPUInfeedQueue(numbers(5))
    result = compiled(
        lambda: ipu.loops.while_loop(
            lambda total, _: total < 5.0, lambda total, count, x: (total + x, count + 1), [0.0, 0], infeed
        )
    )
    with v1.Session() as session:
        session.run(infeed.initializer)
        assert session.run(result) == [6.0, 4]  # 0 + 1 + 2 + 3


def test_nested_loops_share_an_infeed(graph):
    infeed = IPUInfeedQueue(numbers(12))

    def outer(total):
        return ipu.loops.repeat(3, lambda inner, x: inner + x, [total * 2], infeed)

    result = compiled(lambda: ipu.loops.repeat(4, outer, [0.0]))
    with v1.Session() as session:
        session.run(infeed.initializer)
        expected, fed = 0.0, iter(range(12))
        for _ in range(4):
            expected = expected * 2 + sum(next(fed) for _ in range(3))
        assert session.run(result) == [expected]


@pytest.mark.parametrize("count", [2**31, 2**40, np.int64(2**33)])
def test_more_iterations_than_a_loop_can_count(graph, count):
    infeed = IPUInfeedQueue(numbers(3))
    with pytest.raises(ValueError, match="repeat\\(n\\) is .* expected at most 2147483647"):
        compiled(lambda: ipu.loops.repeat(count, lambda total, x: total + x, [0.0], infeed))
    with pytest.raises(ValueError, match="maximum_iterations.* expected at most 2147483647"):
        compiled(lambda: ipu.loops.while_loop(lambda x: x < 5.0, lambda x: x + 1.0, [0.0], None, count))


@pytest.mark.parametrize("kind", [tf.int8, tf.uint32, tf.int32, tf.int64])
def test_numbers_of_iterations_of_any_integer_type(graph, kind):
    n = v1.placeholder(kind, [])
    infeed = IPUInfeedQueue(numbers(9))
    with ipu.scopes.ipu_scope(IPU):
        given = ipu.ipu_compiler.compile(lambda n: ipu.loops.repeat(n, lambda y, x: y + x, [0.0], infeed), [n])
    known = compiled(lambda: ipu.loops.repeat(np.array(3, kind.as_numpy_dtype), lambda y: y * 2.0, [1.0]))
    with v1.Session() as session:
        session.run(infeed.initializer)
        # The infeed goes on where it was.
        assert [session.run(given, {n: count}) for count in (4, 0, 2)] == [[0.0 + 1 + 2 + 3], [0.0], [4.0 + 5]]
        assert session.run(known) == [8.0]


@pytest.mark.parametrize(
    ("n", "error", "text"),
    [
        (2.5, TypeError, "repeat\\(n\\) is a float32; expected .*tf.cast\\(n, tf.int32\\)"),
        (np.float64(2), TypeError, "repeat\\(n\\) is a float64"),
        ([2], ValueError, "repeat\\(n\\) has the shape \\(1,\\): it has to be a scalar"),
        (np.int64(2**33), ValueError, "expected at most 2147483647"),
    ],
)
def test_what_is_no_number_of_iterations(graph, n, error, text):
    with pytest.raises(error, match=text):
        compiled(lambda: ipu.loops.repeat(n, lambda x: x + 1.0, [0.0]))


def test_the_most_iterations_that_a_loop_can_count(graph):
    """They end with the dataset."""
    infeed, outfeed = IPUInfeedQueue(numbers(5, repeat=False)), IPUOutfeedQueue()
    program = compiled(lambda: ipu.loops.repeat(2**31 - 1, lambda x: outfeed.enqueue(x), [], infeed))
    rows = outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(program)
        assert session.run(rows).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("body", "inputs", "error", "text"),
    [
        (lambda x, y: x, [1.0], TypeError, "body function cannot be called"),
        (lambda: None, [1.0], TypeError, "body function cannot be called"),
        (lambda x: tf.cast(x, tf.int32), [1.0], TypeError, "Mismatch between input types and output types"),
        (lambda x: None, [1.0], TypeError, "Mismatch between input types and output types"),
        (
            lambda x: tf.concat([x, x], 0),
            [[1.0, 2.0]],
            ValueError,
            r"Value 0 of the loop enters the loop with shape \(2,\), but has shape \(4,\) after one iteration, as "
            r"`<lambda>`, defined at .*test_feed_loops.py:\d+, returns it. On IPUs a value must have the same shape",
        ),
        (
            lambda x, y: (x, tf.boolean_mask(y, y > 0.0)),
            [1.0, [1.0, 2.0]],
            ValueError,
            r"Value 1 of the loop .* shape \(2,\), but has shape \(None,\)",
        ),
        (lambda x: (tf.no_op(), x), [1.0], ValueError, "Tensor values followed by zero or more Operations"),
    ],
)
def test_wrong_loops(graph, body, inputs, error, text):
    with pytest.raises(error, match=text):
        compiled(lambda: ipu.loops.repeat(2, body, inputs))
    with pytest.raises(error, match=text):
        compiled(lambda: ipu.loops.while_loop(lambda *_: False, body, inputs))


def test_what_is_no_function(graph):
    with pytest.raises(TypeError, match="The body of an IPU loop must be a function, not 3"):
        compiled(lambda: ipu.loops.repeat(2, 3, [1.0]))
    with pytest.raises(TypeError, match="The condition of an IPU loop must be a function, not True"):
        compiled(lambda: ipu.loops.while_loop(True, lambda x: x, [1.0]))


def test_a_wrong_condition(graph):
    with pytest.raises(TypeError, match="condition function cannot be called"):
        compiled(lambda: ipu.loops.while_loop(lambda: True, lambda x: x, [1.0]))
    with pytest.raises(ValueError, match=r"returned a tensor of the shape \(2,\).*tf.reduce_any"):
        compiled(lambda: ipu.loops.while_loop(lambda x: x < 10.0, lambda x: 2 * x, [tf.constant([1.0, 3.0])]))

    for condition in (lambda x: x, lambda x: 1):
        with pytest.raises(TypeError, match="it has to be a boolean. Compare it"):
            compiled(lambda: ipu.loops.while_loop(condition, lambda x: 2 * x, [1.0]))  # noqa: B023
    with pytest.raises(TypeError, match=r"while_loop\(maximum_iterations\) is a float32"):
        compiled(lambda: ipu.loops.while_loop(lambda x: x < 9.0, lambda x: 2 * x, [1.0], maximum_iterations=2.5))
    with pytest.raises(TypeError, match="infeed_queue must be an IPUInfeedQueue, not a int"):
        compiled(lambda: ipu.loops.repeat(2, lambda x: x, [1.0], 3))


def test_loops_outside_of_functions(ipus):
    ipus(1)
    state = np.random.RandomState(0).rand(4, 3).astype("f")
    infeed = IPUInfeedQueue(numbers(5))
    with ipu.ipu_strategy.IPUStrategyV1().scope():
        result = ipu.loops.repeat(3, tf.function(lambda x: x * 0.5 + 1.0), tf.constant(state))
        np.testing.assert_allclose(result, state / 8 + 1.75, rtol=1e-6)
        assert ipu.loops.while_loop(lambda x: x > 1.0, lambda x: x / 2.0, [1000.0], maximum_iterations=4) == 62.5
        assert ipu.loops.repeat(4, lambda total, x: total + x, [0.0], infeed) == 0 + 1 + 2 + 3
        with pytest.raises(TypeError, match="Mismatch between input types and output types of the loop"):
            ipu.loops.repeat(3, lambda x: tf.cast(x, tf.int32), [0.0])
