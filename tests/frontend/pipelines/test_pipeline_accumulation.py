"""Gradients and outfeeds of several mini-batches: types, counts, masks; against NumPy."""

import numpy as np
import pipelines_by_hand
import pytest
import tensorflow as tf
from pipelines_by_hand import (
    ELEMENTS,
    GRADIENT_DESCENT,
    check_training,
    configure,
    descent,
    run,
    trained_by_hand,
    two_layers,
    variable,
)
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue, scopes
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import OptimizerFunctionOutput

from tf_ipu_shim import ipu
from tf_ipu_shim.frontend.gradients.accumulators import add_gradient
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def two_ipus(graph):
    configure(2)


class Seeing(GRADIENT_DESCENT):
    """Casts what it is given to the variables' type, and remembers what type it was given."""

    seen: list = []

    def apply_gradients(self, pairs, *arguments, **keywords):
        pairs = list(pairs)
        Seeing.seen = [gradient.dtype for gradient, _ in pairs]
        pairs = [(tf.cast(gradient, v.dtype.base_dtype), v) for gradient, v in pairs]
        return super().apply_gradients(pairs, *arguments, **keywords)


@pytest.mark.parametrize("dtype", [tf.float32, lambda variable: tf.float32, None])
def test_gradients_reach_the_optimizer_in_the_accumulators_type(dtype):
    def first(x):
        weight = v1.get_variable("w", [], tf.float16, v1.constant_initializer(1.0, tf.float16), use_resource=True)
        return tf.cast(x, tf.float16) * weight

    _, weights = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [first, lambda x: tf.reduce_sum(x)],
            gradient_accumulation_count=4,
            gradient_accumulation_dtype=dtype,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=lambda loss: OptimizerFunctionOutput(Seeing(2.0**-10), loss),
        )
    )
    assert Seeing.seen == [tf.float32 if dtype else tf.float16]
    np.testing.assert_allclose(weights["w"], 1 - ELEMENTS[:4].sum() / 2**10, rtol=1e-3)


@pytest.mark.parametrize("dtype", [tf.float32, lambda tensor: tf.float32])
def test_the_sum_for_the_outfeed_has_a_type_of_its_own(dtype):
    # In float16 the sum of 2048 and ones stays 2048.
    (got,), _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: x, lambda x: tf.cast(tf.reduce_sum(x) * 0 + 1024.5, tf.float16)],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
            accumulate_outfeed_dtype=dtype,
        )
    )
    assert got.dtype == np.float32 and got.tolist() == [4 * float(np.float16(1024.5))]


def counted(dtype):
    """A pipeline that sends what it counts beside a float16 mean, added up in types that are chosen for each."""
    return run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [
                lambda x: x,
                lambda x: (
                    tf.reduce_sum(tf.cast(x > 2.5, tf.int32)),
                    tf.reduce_any(x > 2.5),
                    tf.cast(tf.reduce_mean(x) * 0 + 1024.5, tf.float16),
                ),
            ],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
            accumulate_outfeed_dtype=dtype,
        )
    )


def test_what_is_counted_is_added_up_in_integers():
    (numbers, any_of_them, means), _ = counted(
        lambda tensor: {tf.int32: tf.int32, tf.bool: tf.int32, tf.float16: tf.float32}[tensor.dtype]
    )
    above = ELEMENTS[:4].reshape(4, -1) > 2.5
    assert 0 < above.any(1).sum() < 4
    assert numbers.dtype == any_of_them.dtype == np.int32 and means.dtype == np.float32
    assert numbers.tolist() == [above.sum()] and any_of_them.tolist() == [above.any(1).sum()]
    assert means.tolist() == [4 * float(np.float16(1024.5))]


@pytest.mark.parametrize(
    ("dtype", "error", "message"),
    [
        (tf.int32, ValueError, "output of float16 cannot be added up in int32.*accumulate_outfeed_dtype"),
        ("many", TypeError, "accumulate_outfeed_dtype is 'many', which"),
        (None, ValueError, "accumulate_outfeed adds up .* booleans have no sums.*accumulate_outfeed_dtype"),
        (lambda tensor: None, TypeError, "accumulate_outfeed_dtype is a function that returned None"),
    ],
)
def test_types_of_sums_that_are_refused(dtype, error, message):
    with pytest.raises(error, match=message):
        counted(dtype)


@pytest.mark.parametrize("method", ["MEAN", "RUNNING_MEAN"])
def test_gradients_are_scaled_and_not_divided(method):
    # A third is no number of the type: x * (1 / 3) and x / 3 differ in the last bit for about every third x.
    gradients = np.random.default_rng(0).normal(size=[3, 64]).astype("f")
    total = tf.zeros([64])
    by_hand = np.zeros(64, "f")
    for number, gradient in enumerate(gradients):
        total = add_gradient(total, tf.constant(gradient), number, 3, GradientAccumulationReductionMethod[method])
        scale = np.float32(1) / np.float32(3 if method == "MEAN" else number + 1)
        kept = np.float32(1) if method == "MEAN" else np.float32(number) * scale
        by_hand = by_hand * kept + gradient * scale
    with v1.Session() as session:
        assert session.run(total).tolist() == by_hand.tolist()


def test_types_that_are_none():
    for options in ({"gradient_accumulation_dtype": object()}, {"gradient_accumulation_dtype": lambda _: object()}):
        with tf.Graph().as_default(), pytest.raises(TypeError, match="gradient_accumulation_dtype is .*cannot convert"):
            run(two_layers(gradient_accumulation_count=4, **options))


@pytest.mark.parametrize("kind", [v1.train.GradientDescentOptimizer, v1.train.AdamOptimizer])
def test_an_optimizer_refusing_the_accumulator_type_is_named(kind, monkeypatch):
    monkeypatch.setattr(pipelines_by_hand, "GRADIENT_DESCENT", kind)
    message = f"gradients in float16, which {kind.__name__} does not accept for weights of float32 .first:0"
    with tf.Graph().as_default(), pytest.raises(TypeError, match=message):
        run(two_layers(gradient_accumulation_count=4, gradient_accumulation_dtype=tf.float16))


def test_batch_serialization_runs_that_many_mini_batches():
    configure(1)  # all stages are on one IPU: two would be two replicas
    got = run(two_layers(gradient_accumulation_count=3, batch_serialization_iterations=4, repeat_count=2))
    check_training(got, trained_by_hand(12, 2))


def test_batch_serialization_in_inference():
    got, _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: x * 2.0, lambda x: tf.reduce_sum(x)],
            gradient_accumulation_count=2,
            batch_serialization_iterations=3,
            device_mapping=[1, 1],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
        )
    )
    np.testing.assert_allclose(got, [[2 * ELEMENTS[:6].sum()]])


@pytest.mark.parametrize("masked", [[True, False], [False, True]])
def test_accumulated_and_masked(masked):
    got, _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: x, lambda x: (tf.reduce_sum(x) * variable("w", 1.0), tf.reduce_max(x))],
            gradient_accumulation_count=4,
            repeat_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
            outfeed_mask=masked,
            optimizer_function=lambda *outputs: descent(*outputs, rate=0.0),
        )
    )
    expected = [ELEMENTS.sum((1, 2)), ELEMENTS.max((1, 2))][masked.index(False)]
    np.testing.assert_allclose(got, [expected.reshape(2, 4).sum(1)])


def test_a_mask_that_keeps_everything_back_needs_no_queue():
    def compiled(mask):
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(ELEMENTS).repeat())

        def build():
            return pipelining_ops.pipeline(
                [lambda x: x * variable("w", 1.0), lambda x: tf.reduce_sum(x)],
                gradient_accumulation_count=4,
                infeed_queue=infeed,
                optimizer_function=descent,
                outfeed_mask=mask,
            )

        with scopes.ipu_scope("/device:IPU:0"):
            return infeed, ipu.ipu_compiler.compile(build, [])

    with tf.Graph().as_default(), pytest.raises(ValueError, match="has 1 outputs, but the outfeed_mask has 2"):
        compiled([True, True])
    with tf.Graph().as_default(), pytest.raises(ValueError, match="no outfeed_queue has been provided"):
        compiled([False])
    infeed, program = compiled([True])
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
        (weight,) = session.run(v1.trainable_variables())
    np.testing.assert_allclose(weight, 1 - 0.01 * ELEMENTS[:4].sum(), rtol=1e-6)


def test_the_last_mini_batch_alone():
    last = ipu_outfeed_queue.IPUOutfeedMode.LAST

    def build(infeed, outfeed, **options):
        return pipelining_ops.pipeline(
            [lambda x: (x, tf.reduce_sum(x)), lambda x, total: (x * 2.0, (total, {"more": total + 1.0}))],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            **options,
        )

    (doubled, (total, more)), _ = run(build, mode=last)
    np.testing.assert_allclose(doubled, 2 * ELEMENTS[3])
    assert [total, more["more"]] == [ELEMENTS[3].sum(), ELEMENTS[3].sum() + 1]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="it must be in IPUOutfeedMode ALL"):
        run(lambda infeed, outfeed: build(infeed, outfeed, accumulate_outfeed=True), mode=last)


def test_a_count_that_the_session_feeds():
    def build(infeed, outfeed, count):
        return pipelining_ops.pipeline(
            [lambda x: x * 2.0, lambda x: tf.reduce_sum(x)],
            gradient_accumulation_count=count,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
        )

    got, _ = run(build, [np.int32(6)])
    np.testing.assert_allclose(got, [[2 * ELEMENTS[:6].sum()]])


def test_a_pipeline_in_a_loop_runs_anew_each_time():
    inner = two_layers(gradient_accumulation_count=4)
    got = run(lambda infeed, outfeed: ipu.loops.repeat(3, lambda: inner(infeed, outfeed), []))
    check_training(got, trained_by_hand(4, 3))
