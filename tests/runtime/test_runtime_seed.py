"""Seeds of devices, and the numbers that compiled programs draw from them."""

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import utils

from tf_ipu_shim import ipu
from tf_ipu_shim.runtime import seed

pytestmark = pytest.mark.one_version


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(seed, "_states", {})


def draw_everywhere():
    """Random ops on two shards, in a loop, in a branch."""
    with ipu.scopes.ipu_shard(0):
        uniform = tf.random.uniform([4])
        integers = tf.random.uniform([6], 0, 1000, tf.int32)
    with ipu.scopes.ipu_shard(1):
        normal = tf.random.normal([3])
        truncated = tf.random.truncated_normal([2])
    _, looped = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, values: (i + 1, values.write(i, tf.random.uniform([2]))),
        (0, tf.TensorArray(tf.float32, 3, element_shape=[2])),
    )
    branch = tf.cond(uniform[0] > 2, lambda: tf.random.uniform([2]), lambda: -tf.random.uniform([2]))
    categories = tf.random.categorical(tf.zeros([1, 1000]), 4)
    order = tf.random.shuffle(tf.range(50))
    return uniform, integers, normal, truncated, looped.stack(), branch, categories, order


def same(first, second):
    return [bool(np.array_equal(one, other)) for one, other in zip(first, second)]


def test_numbers_follow_from_the_seed():
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 2
    config.configure_ipu_system()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            drawn = ipu.ipu_compiler.compile(draw_everywhere, [])
        utils.reset_ipu_seed(7)
        first, second = session.run(drawn), session.run(drawn)
        utils.reset_ipu_seed(7)
        assert all(same(session.run(drawn), first)) and all(same(session.run(drawn), second))
        assert not any(same(first, second))
        utils.reset_ipu_seed(8)
        assert not any(same(session.run(drawn), first))
    uniform, integers, _, truncated, looped, branch, _, order = first
    assert ((uniform >= 0) & (uniform < 1)).all() and ((integers >= 0) & (integers < 1000)).all()
    assert (np.abs(truncated) <= 2).all() and (branch <= 0).all()
    assert len(np.unique(looped)) == looped.size, "each iteration draws its own numbers"
    assert sorted(order.tolist()) == list(range(50))


@pytest.mark.parametrize("value", [np.arange(12).reshape(6, 2), 3.5, np.zeros([0, 3]), np.ones([4], bool)], ids=str)
def test_a_shuffle_keeps_rows(execution_mode, value):
    with ipu.ipu_strategy.IPUStrategyV1().scope():
        shuffled = tf.function(tf.random.shuffle, jit_compile=True)(tf.constant(value)).numpy()
    assert shuffled.shape == np.shape(value)
    np.testing.assert_array_equal(np.sort(shuffled, 0) if shuffled.ndim else shuffled, value)


def test_every_order_of_a_shuffle_is_as_likely(execution_mode):
    utils.reset_ipu_seed(11)
    draws = 2400

    @tf.function(jit_compile=True)
    def orders():
        def body(i, drawn):
            return i + 1, tf.tensor_scatter_nd_update(drawn, [[i]], [tf.random.shuffle(tf.range(4))])

        return tf.while_loop(lambda i, _: i < draws, body, [0, tf.zeros([draws, 4], tf.int32)])[1]

    with ipu.ipu_strategy.IPUStrategyV1().scope():
        drawn = orders().numpy()
    found, counts = np.unique(drawn, axis=0, return_counts=True)
    expected = draws / 24
    assert len(found) == 24
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected)), "five standard deviations"


def mean_and_deviation():
    values = tf.random.normal([20000])
    return tf.reduce_mean(values), tf.math.reduce_std(values)


def test_numbers_have_the_right_distribution():
    utils.reset_ipu_seed(1)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            moments = session.run(ipu.ipu_compiler.compile(mean_and_deviation, []))
    np.testing.assert_allclose(moments, [0, 1], atol=0.05)


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32])
def test_categories_of_any_float(dtype):
    logits = tf.constant([[-900.0, 0.0, -900.0], [0.0, -900.0, -900.0]], dtype)
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        (drawn,) = ipu.ipu_compiler.compile(lambda: tf.random.categorical(logits, 5))
    np.testing.assert_array_equal(drawn, [[1] * 5, [0] * 5])


@pytest.mark.parametrize("graph_seed", [None, 5])
def test_without_a_device_seed_the_script_s_seeds_count(graph_seed):
    def first_run():
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            tf.compat.v1.set_random_seed(graph_seed)
            with ipu.scopes.ipu_scope("/device:IPU:1"):
                drawn = ipu.ipu_compiler.compile(lambda: tf.random.uniform([4]), [])
            return session.run(drawn)[0]

    config = ipu.config.IPUConfig()
    config.auto_select_ipus = [1, 1]
    config.configure_ipu_system()
    assert np.array_equal(first_run(), first_run()) == (graph_seed is not None)


def test_generation_counts_settings():
    assert seed.state_of(1) == seed.SeedState(None, 0, False)
    utils.reset_ipu_seed(1, "/device:IPU:1")
    utils.reset_ipu_seed(1, device="/job:localhost/replica:0/task:0/device:IPU:1", experimental_identical_replicas=True)
    assert seed.state_of(1) == seed.SeedState(1, 2, True)
    assert seed.state_of(0).generation == 0


def test_wrong_arguments():
    with pytest.raises(TypeError, match="`seed` must be an integer"):
        utils.reset_ipu_seed(1.5)
    for device in ("/device:CPU:0", "cpu", "", None):
        with pytest.raises(tf.errors.InvalidArgumentError, match="is not an IPU device"):
            utils.reset_ipu_seed(1, device)
