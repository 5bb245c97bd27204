"""Training of embedding tables: gradient descent on rows, and what other optimizers do with a table's gradient."""

import harness
import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu.ipu_strategy import IPUStrategy

from tf_ipu_shim import keras2, memory_report

pytestmark = pytest.mark.one_version

ROWS, WIDTH, RATE = 5000, 8, 0.25
TABLE = np.random.RandomState(0).randn(ROWS, WIDTH).astype("f")
IDS = np.array([[3, 7, 3], [0, 4999, 7]], np.int32)
legacy = keras2.public_module().optimizers.legacy


@pytest.fixture(autouse=True)
def strategy():
    harness.configure()
    return IPUStrategy()


def descended(table, *lookups):
    """NumPy's gradient descent of the sum of squares of looked-up rows."""
    gradient = np.zeros_like(table)
    for ids in lookups:
        np.add.at(gradient, ids, 2 * table[ids])
    return table - np.float32(RATE) * gradient


def trained(strategy, loss, dtype=tf.float32, steps=1):
    """The table after steps of gradient descent."""
    with strategy.scope():
        table = tf.Variable(TABLE, dtype=dtype)
        optimizer = legacy.SGD(RATE)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            value = loss(table, ids)
        optimizer.minimize(value, [table], tape=tape)
        return value

    for _ in range(steps):
        strategy.run(step, [tf.constant(IDS)])
    return table.numpy()


def squares(table, ids):
    return tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))


def peak():
    (plan,) = memory_report().devices[0].programs
    return plan.ipus[0].not_always_live_bytes


@pytest.mark.usefixtures("execution_mode")
def test_looked_up_rows_descend(strategy):
    expected = descended(descended(TABLE, IDS), IDS)
    np.testing.assert_allclose(trained(strategy, squares, steps=2), expected, rtol=1e-5, atol=1e-6)


def test_no_gradient_of_the_tables_size_is_made(strategy):
    trained(strategy, squares)
    assert peak() < TABLE.nbytes / 10


@pytest.mark.usefixtures("execution_mode")
def test_lookups_of_one_table_add_up(strategy):
    def loss(table, ids):
        return squares(table, ids) + squares(table, ids[:, :1])

    np.testing.assert_allclose(trained(strategy, loss), descended(TABLE, IDS, IDS[:, :1]), rtol=1e-5, atol=1e-6)


def test_rows_beside_a_use_of_the_whole_table(strategy):
    def loss(table, ids):
        return squares(table, ids) + tf.reduce_sum(table)

    expected = descended(TABLE, IDS) - np.float32(RATE)
    np.testing.assert_allclose(trained(strategy, loss), expected, rtol=1e-5, atol=1e-6)


def test_float16_is_accumulated_before_it_is_rounded(strategy):
    def loss(table, ids):
        return tf.reduce_sum(tf.cast(tf.nn.embedding_lookup(table, ids), tf.float32) ** 2)

    expected = descended(TABLE.astype(np.float16), IDS).astype(np.float16)
    np.testing.assert_allclose(trained(strategy, loss, tf.float16), expected, rtol=2e-3, atol=2e-3)


def test_a_gradient_that_is_returned_is_whole(strategy):
    with strategy.scope():
        table = tf.Variable(TABLE)
        optimizer = legacy.SGD(RATE)

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            value = squares(table, ids)
        gradient = tf.convert_to_tensor(tape.gradient(value, table))
        optimizer.apply_gradients([(gradient, table)])
        return gradient

    gradient = strategy.run(step, [tf.constant(IDS)]).numpy()
    np.testing.assert_allclose(gradient, (TABLE - descended(TABLE, IDS)) / RATE, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(table.numpy(), descended(TABLE, IDS), rtol=1e-5, atol=1e-6)


OPTIMIZERS = {
    "SGD": lambda: legacy.SGD(0.1),
    "momentum": lambda: legacy.SGD(0.1, momentum=0.9),
    "Nesterov": lambda: legacy.SGD(0.1, momentum=0.9, nesterov=True),
    "Adam": lambda: legacy.Adam(0.1),
    "Adagrad": lambda: legacy.Adagrad(0.1),
    "RMSprop": lambda: legacy.RMSprop(0.1),
    "RMSprop with momentum": lambda: legacy.RMSprop(0.1, momentum=0.9),
    "Nadam": lambda: legacy.Nadam(0.1),
    "Adamax": lambda: legacy.Adamax(0.1),
    "Adadelta": lambda: legacy.Adadelta(1.0, epsilon=1e-2),
    "Ftrl": lambda: legacy.Ftrl(0.1),
}
AS_STOCK = {"SGD", "Adam", "Adagrad", "RMSprop"}


def tables(name, run, rows_of):
    """An embedding table of six rows after six steps of an optimizer, which look up different rows."""
    table = tf.Variable(np.linspace(0.5, 1.5, 12, dtype="f").reshape(6, 2))
    optimizer = OPTIMIZERS[name]()

    @tf.function
    def step(ids, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(rows_of(table, ids) - targets))
        optimizer.minimize(loss, [table], tape=tape)

    for ids in ([0, 1], [0, 1], [2, 3], [3, 3], [0, 2], [1, 1]):
        run(step, [tf.constant(ids), tf.constant([[2.0, -1.0], [0.0, 1.0]])])
    return table.numpy()


def by_product(table, ids):
    return tf.one_hot(ids, 6) @ table


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_train_with_the_gradient_of_the_table(name, strategy):
    with strategy.scope():
        actual = tables(name, strategy.run, tf.nn.embedding_lookup)
    with tf.device(harness.CPU):
        whole = tables(name, lambda step, args: step(*args), by_product)
        stock = tables(name, lambda step, args: step(*args), tf.nn.embedding_lookup)
    np.testing.assert_allclose(actual, whole, rtol=1e-4, atol=1e-5)
    assert np.allclose(actual, stock, rtol=1e-4, atol=1e-5) == (name in AS_STOCK)
