"""Candidate samplers in compiled programs, against the distributions worked out in NumPy."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, loops, utils
from tf_ipu_shim.ipu.scopes import ipu_scope

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
SAMPLERS = {"uniform": tf.random.uniform_candidate_sampler, "log_uniform": tf.random.log_uniform_candidate_sampler}


def probabilities(distribution, classes):
    if distribution == "uniform":
        return np.full(classes, 1 / classes)
    numbers = np.arange(classes)
    return np.log((numbers + 2) / (numbers + 1)) / np.log(classes + 1)


def run(distribution, sampled, classes, unique, seed=None, runs=1, repeats=0):
    """For each run what the sampler gives; the true classes are all there are."""

    def draw(true):
        drawn = SAMPLERS[distribution](true, classes, sampled, unique, classes, seed=seed)
        return [drawn[0], drawn[1], drawn[2]]

    def body(numbers, true):
        return tf.concat([numbers[1:], draw(true)[0][tf.newaxis]], 0), true

    def program(true):
        if not repeats:
            return draw(true)
        return loops.repeat(repeats, body, [tf.zeros([repeats, sampled], tf.int64), true])

    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            true = v1.placeholder(tf.int64, [1, classes])
        with ipu_scope("/device:IPU:0"):
            compiled = ipu_compiler.compile(program, [true])
        return [session.run(compiled, {true: np.arange(classes)[np.newaxis]}) for _ in range(runs)]


@pytest.mark.parametrize("distribution", SAMPLERS)
def test_with_replacement(ipus, execution_mode, distribution):
    ipus(1)
    utils.reset_ipu_seed(3)
    ((sampled, true_counts, sampled_counts),) = run(distribution, 20000, 50, unique=False)
    expected = 20000 * probabilities(distribution, 50)
    np.testing.assert_allclose(true_counts, expected[np.newaxis], rtol=1e-5)
    np.testing.assert_allclose(sampled_counts, expected[sampled], rtol=1e-5)
    counted = np.bincount(sampled, minlength=50)
    assert counted.size == 50
    assert np.all(np.abs(counted - expected) < 6 * np.sqrt(expected)), "six standard deviations"


@functools.cache
def drawn_one_by_one(distribution, classes, count):
    """How often each class is drawn without replacement, and the expected counts, in NumPy."""
    weights = probabilities(distribution, classes)
    generator = np.random.default_rng(5)
    drawn, expected = np.zeros(classes), np.zeros(classes)
    for _ in range(4000):
        seen, tries = [], 0
        while len(seen) < count:
            tries += 1
            one = int(np.searchsorted(np.cumsum(weights), generator.random() * weights.sum()))
            if one not in seen:
                seen.append(one)
        drawn[seen] += 1 / 4000
        expected += -np.expm1(tries * np.log1p(-weights)) / 4000
    return drawn, expected


@pytest.mark.ci_cases(2)
@pytest.mark.parametrize("distribution", SAMPLERS)
def test_without_replacement(ipus, execution_mode, distribution):
    ipus(1)
    utils.reset_ipu_seed(4)
    runs, classes, count = 400, 30, 10
    drawn, expected = drawn_one_by_one(distribution, classes, count)
    found, counts = np.zeros(classes), np.zeros(classes)
    for sampled, true_counts, sampled_counts in run(distribution, count, classes, unique=True, runs=runs):
        assert len(set(sampled)) == count and set(sampled) <= set(range(classes))
        np.testing.assert_allclose(sampled_counts, true_counts[0][sampled], rtol=1e-5)
        assert np.all((true_counts >= 0) & (true_counts <= 1))
        found[sampled] += 1 / runs
        counts += true_counts[0] / runs
    assert np.all(np.abs(found - drawn) < 6 * 0.5 / np.sqrt(runs) + 0.05)
    np.testing.assert_allclose(counts, expected, rtol=0.05)


def test_all_classes(ipus):
    ipus(1)
    ((sampled, _, _),) = run("log_uniform", 40, 40, unique=True)
    assert sorted(sampled) == list(range(40))


@pytest.mark.parametrize("unique", [False, True])
def test_a_fixed_seed(ipus, unique):
    """Iterations differ, and each run has the same ones; without a seed runs differ."""
    ipus(1)
    first, second = run("uniform", 10, 1000, unique, seed=42, runs=2, repeats=3)
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.array_equal(first[0][0], first[0][1])
    other = run("uniform", 10, 1000, unique, seed=43, repeats=3)[0]
    assert not np.array_equal(first[0], other[0])
    first, second = run("uniform", 10, 1000, unique, runs=2)
    assert not np.array_equal(first[0], second[0])


def test_more_than_there_are(ipus):
    ipus(1)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="11 different classes, but the sampler's range only has 10"
    ):
        run("uniform", 11, 10, unique=True)
