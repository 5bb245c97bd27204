"""Stochastic rounding of float16: neighbours, means and seeds, worked out by NumPy in float64."""

import contextlib
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU
from tf_ipu_shim.ipu import config, ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, scopes, utils
from tf_ipu_shim.ipu.ops import cross_replica_ops

from tf_ipu_shim import memory_report, plugin
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.kernels import stochastic_rounding
from tf_ipu_shim.compiler.xla_semantics import float16_overflow
from tf_ipu_shim.runtime.stochastic_rounding import Rounding

v1 = tf.compat.v1
ON, COMMON_ONLY = config.StochasticRoundingBehaviour.ON, config.StochasticRoundingBehaviour.REPLICA_IDENTICAL_ONLY
COUNT = 4096
DEVIATIONS = 6.0  # of a mean: once in 500 million, and the seed is set


def rounding(esr=ON, ipus=1, stable=False, seed=1, **floating_point):
    config.reset_ipu_configuration()
    configuration = config.IPUConfig()
    configuration.auto_select_ipus = ipus
    configuration.experimental.enable_prng_stability = stable
    configuration.floating_point_behaviour.esr = esr
    for option, value in floating_point.items():
        setattr(configuration.floating_point_behaviour, option, value)
    configuration.configure_ipu_system()
    utils.reset_ipu_seed(seed)


def run(model, *inputs):
    """Runs a compiled model on inputs that are fed, so that TensorFlow cannot compute anything beforehand."""
    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(value.dtype, np.shape(value)) for value in inputs]
        with scopes.ipu_scope(IPU):
            result = ipu_compiler.compile(model, fed)
        session.run(v1.global_variables_initializer())
        return session.run(result, dict(zip(fed, inputs)))


def neighbours(exact):
    """The float16 next to each number: not above it, and not below it."""
    nearest = np.asarray(exact, np.float64).astype(np.float16)
    below = np.where(nearest > exact, np.nextafter(nearest, np.float16(-np.inf)), nearest)
    above = np.where(nearest < exact, np.nextafter(nearest, np.float16(np.inf)), nearest)
    return below.astype(np.float64), above.astype(np.float64)


def check(result, exact, slack=0.0):
    """Each number is one of its two neighbours, and they are right on average; `slack` is float32's own error."""
    assert result.dtype == np.float16
    below, above = neighbours(exact)
    result = result.astype(np.float64)
    assert (((result == below) | (result == above)) | (np.abs(result - exact) <= slack)).all()
    gaps = above - below
    assert (result == above).any() and (result == below).any()
    spread = np.sqrt((gaps**2).sum()) / 2 + 1e-12
    assert abs((result - exact).sum()) <= DEVIATIONS * spread + slack * exact.size


A, B = np.float16(np.random.RandomState(0).uniform(0.5, 2.0, (2, COUNT)))
WIDE = np.random.RandomState(1).uniform(-3.0, 3.0, COUNT).astype(np.float32)
a, b = A.astype(np.float64), B.astype(np.float64)
SQUARE = (64, 64)
PICTURE, FILTER = A.reshape(1, 32, 32, 4), B[:72].reshape(3, 3, 4, 2)


def correlated():
    """A convolution without padding."""
    picture, kernel = PICTURE.astype(np.float64)[0], FILTER.astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(picture, (3, 3), (0, 1))
    return np.einsum("xycij,ijco->xyo", windows, kernel)[None]


CASES = {
    "cast": (lambda x: tf.cast(x, tf.float16), [WIDE], WIDE.astype(np.float64)),
    "cast of integers": (lambda x: tf.cast(x, tf.float16), [np.arange(2049, 4095, 2)], np.arange(2049.0, 4095, 2)),
    "sum of two": (tf.add, [A, B], a + b),
    "difference": (tf.subtract, [A, np.float16(1e-3) * B], a - (np.float16(1e-3) * B).astype(np.float64)),
    "product": (tf.multiply, [A, B], a * b),
    "quotient": (tf.divide, [A, B], a / b),
    "root": (tf.sqrt, [A], np.sqrt(a)),
    "exponential": (tf.exp, [A], np.exp(a)),
    "sigmoid": (tf.sigmoid, [A], 1 / (1 + np.exp(-a))),
    "matrix product": (
        tf.matmul,
        [A.reshape(SQUARE), B.reshape(SQUARE)],
        a.reshape(SQUARE) @ b.reshape(SQUARE),
    ),
    "convolution": (lambda x, y: tf.nn.conv2d(x, y, 1, "VALID"), [PICTURE, FILTER], correlated()),
    "sum": (lambda x: tf.reduce_sum(x, 1), [A.reshape(SQUARE)], a.reshape(SQUARE).sum(1)),
    "mean": (lambda x: tf.reduce_mean(x, 0), [A.reshape(SQUARE)], a.reshape(SQUARE).mean(0)),
    "small numbers": (lambda x: tf.cast(x, tf.float16), [WIDE * np.float32(1e-6)], (WIDE * np.float32(1e-6)) * 1.0),
    "in a loop": (
        lambda x: tf.while_loop(
            lambda i, _: i < 3, lambda i, _: (i + 1, tf.cast(x, tf.float16)), (0, tf.zeros([COUNT], tf.float16))
        )[1],
        [WIDE],
        WIDE.astype(np.float64),
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_each_op(what):
    model, inputs, exact = CASES[what]
    rounding()
    (result,) = run(lambda *values: [model(*values)], *inputs)
    check(result, exact, slack=1e-6 * np.abs(exact).max())


def test_numbers_that_have_no_two_neighbours():
    rounding()
    exact = np.float32([0.0, -0.0, 1.0, -2.5, 2**-24, 65504.0, np.inf, np.nan])
    results = [run(lambda x: tf.cast(x, tf.float16), exact)[0] for _ in range(3)]
    for result in results:
        np.testing.assert_array_equal(result[:6], exact[:6].astype(np.float16))
        assert np.signbit(result[1]) and np.isnan(result[7])
        assert result[6] == 65504.0  # a conversion that overflows


def test_what_is_out_of_range():
    """As without stochastic rounding: 65520 is what would be rounded to infinity."""
    value = np.float32([65519.0, -65519.0, 65520.0, -1e9])
    rounding()
    assert run(lambda x: tf.cast(x, tf.float16), value)[0].tolist() == [65504.0, -65504.0, 65504.0, -65504.0]
    rounding(nanoo=True)
    np.testing.assert_array_equal(
        run(lambda x: tf.cast(x, tf.float16), value)[0], np.float16([65504.0, -65504.0, np.nan, np.nan])
    )
    rounding(oflo=True)
    with pytest.raises(tf.errors.InternalError, match="overflow"):
        run(lambda x: tf.cast(x, tf.float16), value)


def test_a_sum_that_nearest_rounding_swamps():
    """10,000 times 0.0001, as in Graphcore's tutorial: rounding to the nearest stops at 0.25."""
    step = np.float16(0.0001)

    def model(x):
        return [tf.while_loop(lambda i, _: i < 10000, lambda i, y: (i + 1, y + step), (0, x))[1]]

    rounding(seed=2)
    (result,) = run(model, np.zeros(20, np.float16))
    assert abs(result.astype(np.float64).mean() - 1.0) < 0.05
    rounding(esr=config.StochasticRoundingBehaviour.OFF)
    (result,) = run(model, np.zeros(20, np.float16))
    assert (result == 0.25).all()


def test_updates_of_variables():
    rounding()

    def model(x):
        results = []
        for update in ("assign_add", "assign_sub"):
            variable = v1.get_variable(update, initializer=np.full([COUNT], 1000, np.float16), use_resource=True)
            with tf.control_dependencies([getattr(variable, update)(x)]):
                results.append(variable.read_value())
        rows = v1.get_variable("rows", initializer=np.full([2, COUNT], 1000, np.float16), use_resource=True)
        with tf.control_dependencies([rows.scatter_add(tf.IndexedSlices(x[None], [1]))]):
            results.append(rows.read_value())
        return results

    more, less, rows = run(model, np.full([COUNT], 0.1, np.float16))
    step = float(np.float16(0.1))
    check(more, np.full([COUNT], 1000 + step), slack=1e-4)
    check(less, np.full([COUNT], 1000 - step), slack=1e-4)
    check(rows[1], np.full([COUNT], 1000 + step), slack=1e-4)
    assert (rows[0] == 1000).all()


def test_optimizers():
    """Updates of 0.1 to 1000, which rounding to the nearest would lose."""
    rounding()

    def model(gradient):
        results = []
        for name, optimizer in {
            "sgd": v1.train.GradientDescentOptimizer(1.0),
            "momentum": v1.train.MomentumOptimizer(1.0, 0.5),
        }.items():
            weights = v1.get_variable(name, initializer=np.full([COUNT], 1000, np.float16), use_resource=True)
            with tf.control_dependencies([optimizer.apply_gradients([(gradient, weights)])]):
                results.append(weights.read_value())
        return results

    for result in run(model, np.full([COUNT], 0.1, np.float16)):
        check(result, np.full([COUNT], 1000 - float(np.float16(0.1))), slack=1e-4)


# Seeds


def cast_twice(x):
    return [tf.cast(x, tf.float16), tf.cast(x + 0.0, tf.float16)]


def test_the_seed():
    rounding(seed=5)
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [COUNT])
        with scopes.ipu_scope(IPU):
            result = ipu_compiler.compile(cast_twice, [fed])
        runs = []
        for seed in (5, None, 5, None, 6):
            if seed is not None:
                utils.reset_ipu_seed(seed)
            runs.append(session.run(result, {fed: WIDE}))
    np.testing.assert_array_equal(runs[0], runs[2])
    np.testing.assert_array_equal(runs[1], runs[3])
    different = [runs[0][0], runs[0][1], runs[1][0], runs[4][0]]
    for i, one in enumerate(different):
        for other in different[:i]:
            share = (one == other).mean()
            assert 0.4 < share < 0.9  # independent ones agree in 2/3 on average


def test_devices_have_seeds_of_their_own():
    configuration = config.IPUConfig()
    configuration.auto_select_ipus = [1, 1]
    configuration.floating_point_behaviour.esr = ON
    configuration.configure_ipu_system()
    results = []
    for ordinal in (0, 1):
        with tf.device(f"/device:IPU:{ordinal}"):
            results.append(tf.cast(tf.constant(WIDE), tf.float16).numpy())
    assert (results[0] != results[1]).any()


def test_ops_of_their_own():
    rounding()
    with tf.device(IPU):
        cast = tf.cast(tf.constant(WIDE), tf.float16)
        product = cast * cast
    check(cast.numpy(), WIDE.astype(np.float64))
    check(product.numpy(), cast.numpy().astype(np.float64) ** 2)


def test_off_by_default():
    assert config.IPUConfig().floating_point_behaviour.esr is config.StochasticRoundingBehaviour.OFF
    rounding(esr=config.StochasticRoundingBehaviour.OFF)
    np.testing.assert_array_equal(run(lambda x: tf.cast(x, tf.float16), WIDE)[0], WIDE.astype(np.float16))


def test_configured_after_the_first_run():
    """The kernel of an op is made once."""
    rounding(esr=config.StochasticRoundingBehaviour.OFF)
    for esr in (config.StochasticRoundingBehaviour.OFF, ON, config.StochasticRoundingBehaviour.OFF):
        rounding(esr=esr)
        with tf.device(IPU):
            result = tf.cast(tf.constant(WIDE), tf.float16).numpy()
        assert (result != WIDE.astype(np.float16)).any() == (esr is ON)


# The scope


@pytest.mark.parametrize("esr", [ON, config.StochasticRoundingBehaviour.OFF])
@pytest.mark.parametrize("compiled", [True, False])
def test_the_scope(esr, compiled):
    rounding(esr=esr)

    def model(x):
        results = [tf.cast(x, tf.float16)]
        with scopes.stochastic_rounding(False):
            results.append(tf.cast(x, tf.float16))
            with scopes.stochastic_rounding(True):
                results.append(tf.cast(x, tf.float16))
        return results

    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [COUNT])
        with scopes.ipu_scope(IPU):
            results = ipu_compiler.compile(model, [fed]) if compiled else model(fed)
        unmarked, nearest, stochastic = session.run(results, {fed: WIDE})
    np.testing.assert_array_equal(nearest, WIDE.astype(np.float16))
    check(stochastic, WIDE.astype(np.float64))
    assert (unmarked != nearest).any() == (esr is ON)


@pytest.mark.parametrize("around", [True, False])
def test_the_scope_holds_in_programs_loops_and_branches_within(around):
    rounding(esr=config.StochasticRoundingBehaviour.OFF)

    def halves(x):
        return tf.cast(x, tf.float16)

    def model(x):
        with contextlib.nullcontext() if around else scopes.stochastic_rounding(True):
            zeros = [tf.constant(0), tf.zeros([COUNT], tf.float16)]
            _, looped = tf.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, halves(x)), zeros)
            return looped, tf.cond(x[0] < 1e9, lambda: halves(x), lambda: halves(-x))

    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [COUNT])
        with scopes.ipu_scope(IPU), scopes.stochastic_rounding(True) if around else contextlib.nullcontext():
            results = ipu_compiler.compile(model, [fed])
        for made in session.run(results, {fed: WIDE}):
            check(made, WIDE.astype(np.float64))
            assert (made != WIDE.astype(np.float16)).any()


# Which programs it concerns


def way_of(model, *inputs):
    run(model, *inputs)
    return memory_report().devices[0].programs[-1].mode


def test_programs_without_halves_run_as_before(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")
    rounding()
    assert way_of(lambda x: x * 2.0, WIDE) == "xla"
    assert way_of(lambda x: tf.cast(x, tf.float16), WIDE) == "kernels"


def test_programs_not_run_op_by_op_say_they_round_to_nearest(capfd, monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    rounding()
    picture = np.float16(np.random.RandomState(2).uniform(0.0, 1.0, (1, 3, 8, 8)))

    def model(x):
        return tf.nn.avg_pool2d(x * x, 2, 2, "VALID", data_format="NCHW")

    assert way_of(model, picture) == "xla"
    assert "rounded to the nearest" in memory_report().devices[0].programs[-1].mode_reason
    assert "rounds float16 to the nearest, not stochastically as configured" in capfd.readouterr().err
    with tf.device(IPU):
        pooled = tf.nn.avg_pool2d(tf.constant(picture), 2, 2, "VALID", data_format="NCHW")
    expected = picture.astype(np.float64).reshape(1, 3, 4, 2, 4, 2).mean((3, 5))
    np.testing.assert_allclose(pooled, expected, rtol=2e-3)


# Replicas


def by_replica(function, **options):
    """What each of two replicas sends of `function(x)`, where x is of its own."""
    rounding(ipus=2, **options)
    with tf.Graph().as_default(), v1.Session() as session:
        values = np.stack([WIDE, WIDE + 1])
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(values).repeat())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope(IPU):
            program = ipu_compiler.compile(lambda: loops.repeat(1, lambda x: outfeed.enqueue(function(x)), [], infeed))
        dequeued = outfeed.dequeue()
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
        return [np.asarray(sent[0]) for sent in session.run(dequeued)]


def own_and_common(x):
    """Casts of what is a replica's own, of a sum over both, and a variable that is updated by that sum."""
    total = cross_replica_ops.cross_replica_sum(x)
    weights = v1.get_variable("weights", initializer=np.full([COUNT], 100, np.float16), use_resource=True)
    with tf.control_dependencies([weights.assign_add(tf.cast(total, tf.float16))]):
        after = weights.read_value()
    return tf.cast(x, tf.float16), tf.cast(total, tf.float16), after


OWN, COMMON = np.stack([WIDE, WIDE + 1]), WIDE + (WIDE + 1)


def test_replicas_have_seeds_of_their_own():
    own, common, weights = by_replica(own_and_common)
    for replica in (0, 1):
        check(own[replica], OWN[replica].astype(np.float64))
        check(common[replica], COMMON.astype(np.float64), slack=1e-6)
    assert (common[0] != common[1]).any() and (weights[0] != weights[1]).any()


def test_replicas_that_are_kept_alike():
    own, common, weights = by_replica(own_and_common, stable=True)
    for replica in (0, 1):
        check(own[replica], OWN[replica].astype(np.float64))
        check(common[replica], COMMON.astype(np.float64), slack=1e-6)
    np.testing.assert_array_equal(common[0], common[1])
    np.testing.assert_array_equal(weights[0], weights[1])


def test_only_what_replicas_have_in_common():
    own, common, weights = by_replica(own_and_common, esr=COMMON_ONLY)
    np.testing.assert_array_equal(own, OWN.astype(np.float16))
    check(common[0], COMMON.astype(np.float64), slack=1e-6)
    np.testing.assert_array_equal(common[0], common[1])
    np.testing.assert_array_equal(weights[0], weights[1])


def test_equal_values_follow_calls_branches_and_variables():
    def halved(value):
        return tf.function(lambda value: tf.cast(value, tf.float16))(value)

    def model(x):
        total = cross_replica_ops.cross_replica_sum(x)
        alike = tf.cond(total[0] > 1e9, lambda: -halved(total), lambda: halved(total))
        apart = tf.cond(x[0] > 1e9, lambda: -halved(total), lambda: halved(total))
        kept = v1.get_variable("kept", initializer=np.zeros([COUNT], np.float32), use_resource=True)
        with tf.control_dependencies([kept.assign(x)]):
            return tf.cast(kept.read_value(), tf.float16), alike, apart

    kept, alike, apart = by_replica(model, esr=COMMON_ONLY)
    np.testing.assert_array_equal(kept, OWN.astype(np.float16))
    check(alike[0], COMMON.astype(np.float64), slack=1e-6)
    np.testing.assert_array_equal(alike[0], alike[1])
    np.testing.assert_array_equal(apart, np.stack([COMMON, COMMON]).astype(np.float16))


# Two languages


def test_the_plugin_rounds_the_same_ops():
    source = pathlib.Path(plugin.__file__).with_name("csrc") / "floats" / "stochastic_rounding"
    text = source.with_suffix(".cc").read_text()
    (listed,) = re.findall(r"new std::set<std::string>\{(.*?)\};", text, re.DOTALL)
    assert set(re.findall(r'"(\w+)"', listed)) == stochastic_rounding.WITHIN_RANGE
    assert not stochastic_rounding.WITHIN_RANGE & float16_overflow.OVERFLOWING
    assert f'kRoundingAttr[] = "{vocabulary.ROUNDING_ATTRIBUTE}"' in text
    assert f'kFrontendAttr[] = "{vocabulary.FRONTEND_ATTRIBUTE}"' in text
    bits = dict(re.findall(r"k(\w+) = (\d)", source.with_suffix(".h").read_text()))
    ours = {bit.name.replace("_", "").lower(): bit.value for bit in (Rounding.STOCHASTIC, Rounding.SAME_FOR_SAME)}
    assert {name.lower(): int(value) for name, value in bits.items()} == ours
