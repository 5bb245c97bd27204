"""Random numbers of both execution modes are those of stock XLA, whatever the seed is and wherever it is computed."""

import pytest
import tensorflow as tf

IPU = "/device:IPU:0"


def uniform(seed):
    return tf.random.stateless_uniform([3], seed)


def part(place):
    """One of the seeds that a called function makes; the second has a negative number."""

    def program():
        return uniform(tf.function(lambda seed: tf.random.split(seed, 2), autograph=False)(tf.constant([1, 2]))[place])

    return program


def key(seed):
    return tf.bitcast(tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)[0], tf.int64)


def key_with_algorithm(seed):
    """Unlike the other key, this is one of TensorFlow's kernel if the seed is a constant."""
    return tf.bitcast(tf.raw_ops.StatelessRandomGetKeyCounterAlg(seed=seed)[0], tf.int64)


PROGRAMS = {
    "negative": lambda: uniform(tf.constant([-5, 7])),
    "largest and least": lambda: uniform(tf.constant([2**31 - 1, -(2**31)])),
    "64 bits": lambda: uniform(tf.constant([-(2**40), 2**33 + 1], tf.int64)),
    "normal": lambda: tf.random.stateless_normal([3], tf.constant([-1, -1])),
    "integers": lambda: tf.random.stateless_uniform([3], [3, -9], 0, 1000, tf.int32),
    "first split": part(0),
    "second split": part(1),
    "passed on": lambda: tf.function(uniform)(tf.function(lambda seed: seed - 9)(tf.constant([1, 2]))),
    "key": lambda: key(tf.constant([-5, 7])),
    "key with algorithm": lambda: key_with_algorithm(tf.constant([-5, 7])),
}
SAMPLERS = {
    "key with algorithm": key_with_algorithm,
    "normal within bounds": lambda seed: tf.random.stateless_parameterized_truncated_normal(
        [3], seed, 0.0, 1.0, -1.0, 1.0
    ),
    "choices": lambda seed: tf.random.stateless_categorical([[0.0, 0.5, 1.0]], 8, seed)[0],
    "dropout": lambda seed: tf.nn.experimental.stateless_dropout(tf.ones([16]), 0.5, seed),
}


def assert_as_stock_xla(program, *arguments):
    with tf.device("/device:CPU:0"):
        wanted = tf.function(program, jit_compile=True, autograph=False)(*arguments).numpy().tolist()
    with tf.device(IPU):
        found = tf.function(program, jit_compile=True, autograph=False)(*arguments).numpy().tolist()
    # Keys are integers of 64 bits: equal is equal.
    assert found == (wanted if isinstance(wanted, int) else pytest.approx(wanted))


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_numbers_are_those_of_stock_xla(ipus, execution_mode, program):
    ipus(1)
    assert_as_stock_xla(program)


@pytest.mark.parametrize("seed", [[5, 7], [-5, 7]], ids=str)
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_numbers_of_computed_seeds(ipus, execution_mode, sampler, seed):
    ipus(1)
    assert_as_stock_xla(sampler, tf.constant(seed))
