"""The generated op modules: their wrappers compute what the ops library computes."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import ipu_compiler, loops, scopes
from tf_ipu_shim.ipu.ops import op_util
from tf_ipu_shim.poplar.ops import gen_popnn_ops, gen_popops_ops, gen_poprand_ops, gen_poputil_ops

from tf_ipu_shim import errors

random = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def test_rows():
    table, updates = random.normal(size=(5, 2)).astype(np.float32), random.normal(size=(3, 2)).astype(np.float32)
    indices = np.array([4, 1, 4], np.int32)
    np.testing.assert_array_equal(gen_popops_ops.ipu_multi_slice(table, [[1, 4]]), table[[[1, 4]]])
    expected = table.copy()
    expected[indices[:2]] = updates[:2]
    for shape in ([2], [2, 1]):
        rows = indices[:2].reshape(shape)
        np.testing.assert_array_equal(gen_popops_ops.ipu_multi_update(table, rows, updates[:2]), expected)
    expected = table.copy()
    np.add.at(expected, indices, 0.5 * updates)
    np.testing.assert_allclose(gen_popops_ops.ipu_multi_update_add(table, indices, updates, 0.5), expected, rtol=1e-6)


def test_histograms_images_and_slices():
    counts = gen_popops_ops.ipu_histogram([0.5, -3.0], [1.0], True)
    np.testing.assert_array_equal(counts, [1, 1])
    np.testing.assert_array_equal(gen_popops_ops.ipu_histogram_update(counts, [7.0], [1.0], False), [1, 2])
    image = gen_popops_ops.normalise_image(np.ones((1, 3), np.float32), [0.0, 1.0, 2.0], [1.0] * 3, 2.0)
    np.testing.assert_array_equal(image, [[2, 1, 0, 0]])
    source, one = np.arange(4, dtype=np.float32), np.array([1], np.int32)
    np.testing.assert_array_equal(gen_popops_ops.ipu_sequence_slice_unpack(source, [2], [2], one, 3), [0, 2, 3])
    kept = gen_popops_ops.ipu_sequence_slice(np.full(3, 9, np.float32), source, [2], [2], one)
    np.testing.assert_array_equal(kept, [9, 2, 3])


def test_numbers_of_eight_bits():
    f143 = np.uint8(0)
    bits = gen_popops_ops.ipu_convert_to_f8(np.array([[1.0, 2.0]], np.float16), f143)
    np.testing.assert_array_equal(bits.output, [[0x40, 0x48]])  # exponents 8 and 9 of bias 8
    assert gen_popops_ops.ipu_convert_from_f8(*bits).numpy().tolist() == [[1, 2]]
    product = gen_popops_ops.ipu_f8_matmul(bits.output, f143, tf.transpose(bits.output), f143)
    np.testing.assert_array_equal(product.output, [[5]])
    ones = np.full((1, 2, 2, 1), 0x40, np.uint8)
    flat = gen_popops_ops.ipu_f8_conv2d(ones, ones.reshape(2, 2, 1, 1), f143, f143, [1, 1, 1, 1], "VALID")
    np.testing.assert_array_equal(flat.output, [[[[4]]]])
    around = gen_popops_ops.ipu_f8_conv2d(
        ones, ones.reshape(2, 2, 1, 1), f143, f143, [1, 1, 1, 1], "EXPLICIT", [0, 0, 1, 0, 1, 0, 0, 0]
    )
    np.testing.assert_array_equal(around.output[0, :, :, 0], [[1, 2], [2, 4]])
    deep = np.full((1, 2, 2, 2, 1), 0x40, np.uint8)
    solid = gen_popops_ops.ipu_f8_conv3d(deep, deep.reshape(2, 2, 2, 1, 1), f143, f143, [1] * 5, "VALID")
    np.testing.assert_array_equal(solid.output, [[[[[8]]]]])


def test_util_ops(capfd):
    x = tf.constant([1.0, 2.0])
    ops = gen_poputil_ops
    for op in (ops.ipu_remap, ops.ipu_remap_deduce, ops.ipu_suggest_recompute, ops.ipu_block_recompute):
        np.testing.assert_array_equal(op(x), x)
    assert [tensor.numpy() for tensor in ops.ipu_barrier([x[0], x[1]])] == [1, 2]
    ops.ipu_print_tensor(x, "pair")
    assert "pair: [1 2]" in capfd.readouterr().err
    with pytest.raises(ValueError, match="between the executions of one"):
        ops.ipu_fifo(x, 3, False)
    with pytest.raises(errors.MissingAttributeError, match="ipu_user_op"):
        ops.ipu_user_op  # noqa: B018


@pytest.mark.parametrize(
    "name, stock",
    [
        ("gelu", lambda x: tf.nn.gelu(x, approximate=True)),
        ("swish", tf.nn.silu),
        ("hard_sigmoid", lambda x: tf.clip_by_value(0.2 * x + 0.5, 0.0, 1.0)),
    ],
)
def test_activations(name, stock):
    x = tf.constant([-4.0, -0.3, 0.2, 1.5])
    upstream = tf.constant([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        expected = stock(x)
    np.testing.assert_allclose(getattr(gen_popnn_ops, f"ipu_{name}")(x), expected, rtol=1e-5, atol=1e-6)
    gradient = tape.gradient(expected, x, output_gradients=upstream)
    np.testing.assert_allclose(getattr(gen_popnn_ops, f"ipu_{name}_grad")(upstream, x), gradient, rtol=1e-4, atol=1e-5)


def test_softmax():
    x = random.normal(size=(2, 3)).astype(np.float32)
    for op in (gen_popnn_ops.ipu_softmax, gen_popnn_ops.ipu_stable_softmax):
        np.testing.assert_allclose(op(x), tf.nn.softmax(x), rtol=1e-5)


def accumulating(body, initial, iterations, ipus=1):
    """Runs a loop in a program twice; returns what it gave, and the variables after each run."""
    v1 = tf.compat.v1
    configure(ipus)
    with tf.Graph().as_default(), v1.Session() as session:
        with scopes.ipu_scope(IPU):
            compiled = ipu_compiler.compile(lambda: loops.repeat(iterations, body, initial), [])
        session.run(v1.global_variables_initializer())
        return [(session.run(compiled), session.run(v1.global_variables())) for _ in range(2)]


def test_gradients_summed_over_iterations():
    """Each loop begins with nothing; the sum of three is given with the third."""

    def step(total, times, x):
        summed = gen_poputil_ops.ipu_stateful_gradient_accumulate(x, num_mini_batches=3, verify_usage=False)
        return total + summed, times + tf.sign(summed), x + 1.0

    for given, _ in accumulating(step, [0.0, 0.0, 1.0], 6):
        assert given == [1 + 2 + 3 + 4 + 5 + 6, 2, 7]


def test_gradients_that_update_a_variable():
    def step(x):
        w = tf.compat.v1.get_variable("w", [2], initializer=tf.compat.v1.ones_initializer(), use_resource=True)
        summed = gen_poputil_ops.ipu_stateful_gradient_accumulate(tf.fill([2], x), num_mini_batches=2)
        with tf.control_dependencies([w.assign_sub(summed)]):
            return x + 1.0

    runs = accumulating(step, [1.0], 4)
    assert [values[0].tolist() for _, values in runs] == [[1 - 10] * 2, [1 - 20] * 2]


@pytest.mark.parametrize("ipus, given_as", [(1, float), (2, float), (1, tf.constant), (1, np.float32)])
def test_gradients_summed_with_momentum(ipus, given_as):
    """Two ones and 0.5 times the sum before them; replicas have equal sums, as each has all the gradients."""
    v1 = tf.compat.v1

    def step(total):
        kept = v1.get_variable("kept", [1], initializer=v1.zeros_initializer(), use_resource=True)
        gradient = tf.ones([1])
        if ipus > 1:
            gradient = gen_poputil_ops.ipu_replication_normalise(gen_popops_ops.ipu_cross_replica_sum(gradient))
        return total + gen_poputil_ops.ipu_stateful_gradient_accumulate_with_momentum(
            kept.handle, gradient, given_as(0.5), 2
        )

    (first, after_first), (second, after_second) = accumulating(step, [np.zeros([1], np.float32)], 4, ipus)
    assert (first[0].tolist(), after_first[0].tolist()) == ([2 + 3], [3])
    assert (second[0].tolist(), after_second[0].tolist()) == ([3.5 + 3.75], [3.75])


def test_momentum_that_a_program_computes():
    kept = tf.Variable([0.0])

    @tf.function
    def step(momentum):
        return gen_poputil_ops.ipu_stateful_gradient_accumulate_with_momentum(kept.handle, [1.0], momentum, 2)

    with pytest.raises(NotImplementedError, match="momentum of accumulated gradients has to be known"):
        step(tf.constant(0.5))


@pytest.mark.parametrize(
    "iterations, options, message",
    [
        (10, {"verify_usage": False}, "operation with 4 number of mini batches inside a loop with 10 iterations"),
        (8, {}, "The .*IpuStatefulGradientAccumulate op updates no variable"),
    ],
)
def test_accumulations_that_cannot_be_meant(iterations, options, message):
    def step(x):
        return x + gen_poputil_ops.ipu_stateful_gradient_accumulate(x, num_mini_batches=4, **options)

    with pytest.raises(tf.errors.FailedPreconditionError, match=message):
        accumulating(step, [1.0], iterations)


def test_accumulations_outside_loops():
    def program():
        return gen_poputil_ops.ipu_stateful_gradient_accumulate(tf.ones([2]), num_mini_batches=4, verify_usage=False)

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        with scopes.ipu_scope(IPU):
            compiled = ipu_compiler.compile(program, [])
        with pytest.raises(tf.errors.FailedPreconditionError, match="is outside a loop"):
            session.run(compiled)
    with pytest.raises(tf.errors.FailedPreconditionError, match="is in no program"):
        program()
    with tf.Graph().as_default(), pytest.raises(ValueError, match="has to be fully defined"):
        gen_poputil_ops.ipu_stateful_gradient_accumulate(tf.compat.v1.placeholder(tf.float32, [None]), 4)


@pytest.mark.parametrize("running_mean, expected", [(False, 55.0), (True, 4.5)])
def test_gradients_added_to_a_scaled_accumulator(running_mean, expected):
    """0 to 9 added to 10, and their mean as they come, with which the 10 has nothing to do."""
    accumulator = tf.constant([10.0])
    for index in range(10):
        scale = index / (index + 1) if running_mean else 1.0
        gradient = [index / (index + 1) if running_mean else float(index)]
        accumulator = gen_poputil_ops.gradient_accumulator_add_with_scale(
            accumulator, gradients=gradient, accumulator_scale=scale
        )
    np.testing.assert_allclose(accumulator, [expected], rtol=1e-6)


def test_shared_helpers():
    assert op_util.bool_to_three_state(True) == "THREESTATE_ON"
    assert op_util.bool_to_three_state(False, "x") == "THREESTATE_OFF"
    assert op_util.bool_to_three_state(None) == "THREESTATE_UNDEFINED"
    assert op_util.bool_to_three_state(None, "THREESTATE_ON") == "THREESTATE_ON"
    half = tf.Variable(1.0, dtype=tf.float16)
    assert op_util.get_accumulator_dtype(half, None) == tf.float16
    assert op_util.get_accumulator_dtype(half, tf.float32) == tf.float32
    assert op_util.get_accumulator_dtype(half, lambda variable: tf.float32) == tf.float32
    for name in ("relu", "tanh", "sigmoid", "softmax"):
        for identifier in (name, getattr(tf.nn, name), getattr(tf.keras.activations, name)):
            assert op_util.get_activation_name(identifier) == name
    with pytest.raises(TypeError, match="Unrecognized function : "):
        op_util.get_activation_name(lambda x: x)
    with pytest.raises(TypeError, match="Could not interpret activation function identifier: 3"):
        op_util.get_activation_name(3)


def dropped(op, *arguments, **options):
    """Runs a dropout of a long row of twos three times in a session; returns rows, seeds and gradients."""
    v1 = tf.compat.v1

    def program(x):
        output, seed, *_ = op(x, *arguments, rate=0.25, scale=3.0, **options)
        return output, seed, tf.gradients(output, x)[0]

    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(tf.float32, [200, 50])
        with scopes.ipu_scope(IPU):
            compiled = ipu_compiler.compile(program, [x])
        return [session.run(compiled, {x: np.full([200, 50], 2.0)}) for _ in range(3)]


@pytest.mark.parametrize("op", [gen_poprand_ops.ipu_dropout, gen_poprand_ops.ipu_dropout_no_ref])
def test_dropout_whose_seeds_are_the_device_s(op):
    configure(1)
    runs = dropped(op)
    for output, seed, gradient in runs:
        assert seed.shape == (2,)
        np.testing.assert_array_equal(output, 2.0 * gradient)  # the mask of the backward pass is that of the forward
        assert set(np.unique(output)) == {0.0, 6.0}
        assert abs(np.mean(output == 0.0) - 0.25) < 6 * np.sqrt(0.25 * 0.75 / 10000)
    assert len({tuple(seed) for _, seed, _ in runs}) == 3
    assert not np.array_equal(runs[0][0], runs[1][0])


@pytest.mark.parametrize(
    "op, further",
    [
        (gen_poprand_ops.ipu_dropout_with_seed, []),
        (gen_poprand_ops.ipu_dropout_with_seed_no_ref, []),
        (gen_poprand_ops.ipu_dropout_with_seed_and_reference, [np.zeros(0, np.float32)]),
    ],
)
def test_dropout_with_a_seed(op, further):
    configure(1)
    runs = dropped(op, [10, 11], *further, noise_shape=[200, 1])
    for output, seed, _ in runs:
        assert seed.tolist() == [10, 11]
        np.testing.assert_array_equal(output, runs[0][0])
        assert np.all(output == output[:, :1]), "whole rows"
    assert not np.array_equal(dropped(op, [10, 12], *further, noise_shape=[200, 1])[0][0], runs[0][0])


def test_arguments_of_a_wrapper():
    """They are Graphcore's, by position or by name; the op is named after the wrapper, or as the script says."""
    assert str(inspect.signature(gen_popops_ops.ipu_sequence_slice)) == (
        "(dst, src, num_elems, src_offsets, dst_offsets, zero_unused=False, name=None)"
    )
    with tf.Graph().as_default():
        assert gen_poputil_ops.ipu_remap(input=[1.0]).op.name == "IpuRemap"
        assert gen_poputil_ops.ipu_remap([1.0], name="mine").op.name == "mine"
        assert gen_popops_ops.ipu_histogram([1.0], [0.0], False).op.name.startswith("IpuHistogram/")
        with pytest.raises(TypeError, match="ipu_fifo: missing a required argument: 'offload'.* input, depth, offload"):
            gen_poputil_ops.ipu_fifo([1.0], 3)
