"""Floating-point exceptions: what `floating_point_behaviour` has an IPU stop at, worked out by IEEE 754 by hand."""

import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from keras_models import SAMPLES, Y, compiled, keras, strategy
from tf_ipu_shim.ipu import config, ipu_compiler, scopes

import tf_ipu_shim
from tf_ipu_shim import ipu, plugin
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.xla_semantics import float16_overflow
from tf_ipu_shim.runtime.float_checks import FloatCheck

v1 = tf.compat.v1
NAN, INF = float("nan"), float("inf")
STOPPED = r"(?s)\[Poplar\]\[Execute engine\] application_runtime_error: .*Tiles in excepted state.*will be reset"
INVALID, ZERO, OVERFLOW = "invalid operation", "division by zero", "overflow"
OPTION_OF = {INVALID: "inv", ZERO: "div0", OVERFLOW: "oflo"}


def stopping_at(*options, ipus=1):
    configuration = config.IPUConfig()
    configuration.auto_select_ipus = ipus
    for option in options:
        setattr(configuration.floating_point_behaviour, option, True)
    configuration.configure_ipu_system()


def run(model, *inputs, dtype=np.float32):
    """Runs a compiled model on inputs that are fed, so that TensorFlow cannot compute anything beforehand."""
    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(dtype, np.shape(value)) for value in inputs]
        with scopes.ipu_scope(IPU):
            result = ipu_compiler.compile(model, fed)
        session.run(v1.global_variables_initializer())
        return session.run(result, dict(zip(fed, inputs)))


CASES = {
    # IEEE 754, section 7.2, and what Poplar lists as invalid operations
    "zero by zero": (INVALID, tf.divide, [0.0, 1.0], [0.0, 1.0]),
    "infinity by infinity": (INVALID, tf.divide, [INF], [INF]),
    "infinity times zero": (INVALID, tf.multiply, [INF, 1.0], [0.0, 1.0]),
    "infinity minus infinity": (INVALID, tf.subtract, [INF], [INF]),
    "sum of infinities": (INVALID, lambda x: tf.reduce_sum(x), [INF, -INF]),
    "remainder": (INVALID, tf.math.floormod, [1.0], [0.0]),
    "square root": (INVALID, tf.sqrt, [-1.0]),
    "logarithm of a negative number": (INVALID, tf.math.log, [-2.0]),
    "an operand that is no number": (INVALID, tf.add, [NAN], [1.0]),
    "comparison": (INVALID, tf.less, [NAN], [1.0]),
    "conversion": (INVALID, lambda x: tf.cast(x, tf.int32), [NAN]),
    # section 7.3
    "one by zero": (ZERO, tf.divide, [1.0, 2.0], [0.0, 1.0]),
    "broadcast": (ZERO, tf.divide, [[1.0, 2.0], [3.0, 4.0]], [1.0, 0.0]),
    "reciprocal": (ZERO, tf.math.reciprocal, [4.0, -0.0]),
    "reciprocal square root": (ZERO, tf.math.rsqrt, [0.0]),
    "logarithm of zero": (ZERO, tf.math.log, [0.0]),
    "log1p of -1": (ZERO, tf.math.log1p, [-1.0]),
    "power": (ZERO, tf.pow, [0.0], [-2.0]),
    # section 7.4
    "product": (OVERFLOW, tf.multiply, [1e30], [1e30]),
    "quotient": (OVERFLOW, tf.divide, [1e30], [1e-30]),
    "exponential": (OVERFLOW, tf.exp, [100.0]),
    "sum": (OVERFLOW, lambda x: tf.reduce_sum(x), [3e38, 3e38]),
    "matrix product": (OVERFLOW, tf.matmul, [[1e30, 1.0]], [[1e30], [1.0]]),
}


@pytest.mark.parametrize("what", CASES)
def test_each_exception(what):
    exception, model, *inputs = CASES[what]
    stopping_at(OPTION_OF[exception])
    with pytest.raises(tf.errors.InternalError, match=STOPPED) as stopped:
        run(model, *inputs)
    message = stopped.value.message
    assert f"floating point exception, {exception}). IPU 0 of /device:IPU:0, op " in message
    assert f"floating_point_behaviour.{OPTION_OF[exception]} = False" in message


@pytest.mark.parametrize("what", [what for what, case in CASES.items() if case[0] is not INVALID])
def test_the_others_leave_it_alone(what):
    exception, model, *inputs = CASES[what]
    stopping_at(*(option for kind, option in OPTION_OF.items() if kind != exception))
    (result,) = run(model, *inputs)
    assert np.isinf(result).any() and not np.isnan(result).any()


UNTOUCHED = {
    "a mask of -inf": (lambda x: tf.nn.softmax(x), [1.0, -INF, 2.0]),
    "infinity by a number": (lambda x: x / 2.0, [INF]),
    "a number by infinity": (lambda x: 1.0 / x, [INF]),
    "infinity by zero is exact": (lambda x: x / tf.zeros_like(x), [INF]),
    "NaN that is only moved": (lambda x: tf.transpose(tf.concat([tf.reshape(x, [2, 1])] * 2, 1))[0], [NAN, 1.0]),
    "NaN that is not chosen": (lambda x: tf.where(tf.math.is_nan(x), tf.zeros_like(x), x), [NAN, 1.0]),
    "division without NaN": (lambda x: tf.math.divide_no_nan(x, tf.zeros_like(x)), [1.0]),
    "integers": (lambda x: tf.cast(x, tf.int32) * 2**30, [4.0]),
    "nothing to reduce": (lambda x: tf.reduce_max(x[:0]), [1.0]),
}


@pytest.mark.parametrize("what", UNTOUCHED)
def test_no_exception(what):
    model, value = UNTOUCHED[what]
    stopping_at("inv", "div0", "oflo")
    (result,) = run(model, np.array(value, np.float32))
    config.reset_ipu_configuration()
    configure(1)
    (expected,) = run(model, np.array(value, np.float32))
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def source_lines():
    return pathlib.Path(__file__).read_text().splitlines()


def test_the_message_names_ipu_op_and_line():
    stopping_at("div0", ipus=2)

    def model(x):
        with scopes.ipu_shard(0):
            x = x * 1.0
        with scopes.ipu_shard(1):
            return tf.divide(1.0, x, name="the_division")  # the line

    with pytest.raises(tf.errors.InternalError) as stopped:
        run(model, [0.0])
    message = stopped.value.message
    assert "IPU 1 of /device:IPU:0, op the_division (RealDiv), made at " in message
    line = 1 + next(n for n, text in enumerate(source_lines()) if text.endswith("# the line"))
    assert f"{__file__}:{line}, in model" in message


def test_inside_loops_branches_and_calls():
    stopping_at("inv", "oflo")

    def looped(x):
        return tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * y), (0, x))[1]

    def branched(x):
        return tf.cond(x[0] > 0, lambda: tf.sqrt(-x), lambda: x)

    inner = tf.function(lambda x: tf.exp(x * 50.0))
    for model, value, exception in ((looped, 1e10, OVERFLOW), (branched, 4.0, INVALID), (inner, 2.0, OVERFLOW)):
        with pytest.raises(tf.errors.InternalError, match=exception) as stopped:
            run(model, [value])
        assert f"made at {__file__}:" in stopped.value.message
        assert np.isfinite(run(model, [-1.0])).all()


def test_an_intermediate_that_is_not_returned():
    stopping_at("oflo")
    with pytest.raises(tf.errors.InternalError, match=OVERFLOW):
        run(lambda x: 1.0 / (x * x), [1e30])


def test_the_next_run_works(graph):
    stopping_at("div0")
    fed = v1.placeholder(tf.float32, [1])
    with scopes.ipu_scope(IPU):
        result = ipu_compiler.compile(lambda x: 1.0 / x, [fed])
    with v1.Session() as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InternalError, match=STOPPED):
                session.run(result, {fed: [0.0]})
            assert session.run(result, {fed: [4.0]})[0].tolist() == [0.25]


def test_updates_of_variables():
    stopping_at("oflo")

    def model(x):
        variable = v1.get_variable("variable", initializer=[3e38], use_resource=True)
        return variable.assign_add(x).op

    with pytest.raises(tf.errors.InternalError, match="overflow.*AssignAddVariableOp"):
        run(model, [3e38])


# float16, as in Graphcore's own tests of these options


def test_an_overflow_of_float16():
    stopping_at("oflo")
    with pytest.raises(tf.errors.InternalError, match=OVERFLOW):
        run(tf.multiply, [10000.0], [10000.0], dtype=np.float16)


def test_an_overflow_of_a_sum_of_halves():
    stopping_at("oflo")
    with pytest.raises(tf.errors.InternalError, match=f"{OVERFLOW}.*Sum"):
        run(tf.reduce_sum, [40000.0, 40000.0], dtype=np.float16)


def test_nan_on_overflow():
    stopping_at("nanoo")
    (result,) = run(tf.multiply, [10000.0, 2.0, -10000.0], [10000.0, 3.0, 10000.0], dtype=np.float16)
    np.testing.assert_array_equal(result, np.array([NAN, 6.0, NAN], np.float16))


def test_nan_on_overflow_leaves_float32_and_infinities_alone():
    stopping_at("nanoo")
    assert run(tf.multiply, [1e30], [1e30])[0].tolist() == [INF]
    assert run(tf.multiply, [INF], [2.0], dtype=np.float16)[0].tolist() == [INF]


def test_nan_on_overflow_is_an_invalid_operation():
    stopping_at("nanoo", "inv")
    with pytest.raises(tf.errors.InternalError, match=INVALID):
        run(tf.multiply, [10000.0], [10000.0], dtype=np.float16)


# Without the option a float16 overflow gives the largest number, in each way that an op runs


def test_halves_are_clipped(execution_mode):
    configure(1)
    big = np.array([10000.0, -10000.0, 3.0, NAN], np.float16)

    def model(x):
        wide = tf.cast(x, tf.float32)
        updated = v1.get_variable("v", initializer=np.full([4], 60000, np.float16), use_resource=True)
        with tf.control_dependencies([updated.assign_add(x)]):
            read = updated.read_value()
        looped = tf.while_loop(lambda i, _: i < 5, lambda i, y: (i + 1, y * y), (0, x))[1]
        return (
            x * x * tf.sign(x),
            x + 60000.0,
            tf.cast(wide * 1e6, tf.float16),
            tf.matmul(x[:1, None], x[None, :1]),
            (tf.reduce_sum(tf.abs(x[:3]) * 4.0)),
            looped,
            read,
            wide * 1e34,
        )

    results = run(model, big, dtype=np.float16)
    largest = 65504.0
    expected = [
        [largest, -largest, 9.0, NAN],
        [largest, 49984.0, 60000.0, NAN],
        [largest, -largest, largest, NAN],
        [[largest]],
        largest,
        [largest, largest, largest, NAN],
        [largest, 49984.0, 60000.0, NAN],
        np.array(big, np.float32) * np.float32(1e34),
    ]
    for result, wanted in zip(results, expected):
        np.testing.assert_array_equal(result, np.array(wanted, result.dtype))


def test_a_half_divided_by_zero_is_no_number(execution_mode):
    """A division of float16 is one of float32, whose infinity is no float16."""
    configure(1)
    x, y = np.array([8.0, -8.0, 0.0, 60000.0, 8.0], np.float16), np.array([0.0, 2.0, 0.0, 0.5, -0.0], np.float16)
    results = run(
        lambda x, y: (x / y, tf.math.reciprocal(y), tf.math.rsqrt(tf.abs(y)), x[:, None] / y[:2]),
        x,
        y,
        dtype=np.float16,
    )
    with np.errstate(all="ignore"):
        expected = [[NAN, -4.0, NAN, 65504.0, NAN], 1 / y, 1 / np.sqrt(np.abs(y)), x[:, None] / y[:2]]
    for result, wanted in zip(results, expected):
        wanted = np.where(np.isinf(wanted), NAN, wanted).astype(np.float16)
        np.testing.assert_allclose(result, wanted, rtol=1e-3)


def test_ops_of_their_own_clip_halves(own_environment):
    configure(1)
    with tf.device(IPU):
        x = tf.constant([10000.0, -INF], tf.float16)
        squares, moved, quotient = x * x, tf.reshape(x, [2, 1]), x / tf.zeros_like(x)
        infinite = tf.reduce_sum(x, [])  # hands on its operand
    np.testing.assert_array_equal(squares, np.float16([65504, 65504]))
    np.testing.assert_array_equal(moved[:, 0], np.float16([10000, -INF]))
    np.testing.assert_array_equal(infinite, np.float16([10000, -65504]))
    np.testing.assert_array_equal(x, np.float16([10000, -INF]))
    assert np.isnan(quotient).all()


def test_the_ipu_model_computes_on_the_host(environment, execution_mode):
    """float16 that overflows is infinite there, in programs and in ops of their own."""
    environment(flags="--use_ipu_model", ipus=1)
    (result,) = run(tf.multiply, [10000.0], [-10000.0], dtype=np.float16)
    with tf.device(IPU):
        quotient = tf.constant([1.0], tf.float16) / tf.zeros([1], tf.float16)
    assert (result.tolist(), quotient.numpy().tolist()) == ([-INF], [INF])
    environment(ipus=1)
    (result,) = run(tf.multiply, [10000.0], [-10000.0], dtype=np.float16)
    assert result.tolist() == [-65504.0]


@pytest.mark.parametrize("option", ["inv", "div0"])
def test_clipping_beside_exceptions(option):
    stopping_at(option)
    (result,) = run(tf.multiply, [10000.0], [-10000.0], dtype=np.float16)
    assert result.tolist() == [-65504.0]


# How it is switched on


def test_set_all():
    stopping_at("set_all")
    with pytest.raises(tf.errors.InternalError, match=INVALID):
        run(tf.sqrt, [-1.0])


@pytest.mark.filterwarnings("ignore")
def test_the_older_function():
    options = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 1)
    options = ipu.utils.set_floating_point_behaviour_options(options, inv=False, div0=True, oflo=False, nanoo=False)
    ipu.utils.configure_ipu_system(options)
    with pytest.raises(tf.errors.InternalError, match=ZERO):
        run(tf.divide, [1.0], [0.0])


def test_ops_of_their_own():
    """Outside programs too each op is an engine of the IPU."""
    stopping_at("div0")
    with tf.device(IPU), pytest.raises(tf.errors.InternalError, match=ZERO):
        tf.divide(tf.constant([1.0]), tf.constant([0.0]))


def test_a_program_that_cannot_run_op_by_op_is_refused(graph):
    stopping_at("inv")
    count = v1.placeholder(tf.int32, [])
    with scopes.ipu_scope(IPU):
        result = ipu_compiler.compile(lambda n: tf.cast(tf.range(n), tf.float32), [count])
    with v1.Session() as session, pytest.raises(tf.errors.UnimplementedError, match="need each op .* to run by itself"):
        session.run(result, {count: 3})


def test_keras_fit():
    stopping_at("inv", "div0", "oflo")
    with strategy().scope():
        inputs = keras.Input((2,), batch_size=8)
        outputs = keras.layers.Dense(3)(keras.layers.Lambda(lambda x: tf.math.log(x), name="logarithm")(inputs))
        model = compiled(keras.Model(inputs, outputs), steps_per_execution=2)
    data = np.ones((SAMPLES, 2), np.float32)
    options = {"batch_size": 8, "verbose": 0, "shuffle": False}
    assert np.isfinite(model.fit(data, Y, **options).history["loss"]).all()
    data[-1] = 0.0
    with pytest.raises(tf.errors.InternalError, match="(?s)division by zero.*logarithm"):
        model.fit(data, Y, **options)
    data[-1] = 1.0
    assert np.isfinite(model.fit(data, Y, **options).history["loss"]).all()


def test_replicas(graph):
    """The second of two replicas divides by zero."""
    stopping_at("div0", ipus=2)
    dataset = tf.data.Dataset.from_tensor_slices(np.array([1.0, 0.0], np.float32))
    infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset), ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with scopes.ipu_scope(IPU):
        program = ipu_compiler.compile(lambda: ipu.loops.repeat(1, lambda x: outfeed.enqueue(1.0 / x), [], infeed), [])
    with v1.Session() as session:
        session.run(infeed.initializer)
        with pytest.raises(tf.errors.InternalError, match=r"division by zero\). IPU 1 of /device:IPU:0"):
            session.run(program)


def test_switched_off_again():
    stopping_at("div0")
    with pytest.raises(tf.errors.InternalError, match=ZERO):
        run(tf.divide, [1.0], [0.0])
    config.reset_ipu_configuration()
    configure(1)
    assert np.isinf(run(tf.divide, [1.0], [0.0])[0]).all()
    (device,) = tf_ipu_shim.memory_report().devices
    assert all(plan.mode_reason.startswith("estimated") for plan in device.programs)


def test_the_plugin_knows_the_same_checks():
    source = pathlib.Path(plugin.__file__).with_name("csrc") / "floats" / "float_checks"
    constants = dict(re.findall(r"k(\w+) = (\d),", source.with_suffix(".h").read_text()))
    ours = {check.name.replace("_", "").lower(): check.value for check in FloatCheck}
    assert {name.lower(): int(value) for name, value in constants.items()} == ours
    overflow = source.with_name("float16_overflow.cc").read_text()
    (listed,) = re.findall(r"new std::set<std::string>\{(.*?)\};", overflow, re.DOTALL)
    assert set(re.findall(r'"(\w+)"', listed)) == float16_overflow.OVERFLOWING
    assert {op: int(index) for op, index in re.findall(r'\{"(\w+)", (\d)\}', overflow)} == float16_overflow.DIVISORS
    assert f'kDescriptionAttr[] = "{vocabulary.DESCRIPTION_ATTRIBUTE}"' in source.with_suffix(".cc").read_text()
