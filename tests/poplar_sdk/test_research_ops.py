"""Custom ops of the kinds that researchers write, against NumPy and TensorFlow, in every execution mode."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import tensorflow as tf
import user_ops
from harness import configure
from tf_ipu_shim.ipu import ipu_compiler, ipu_outfeed_queue, ipu_strategy, pipelining_ops, scopes

pytestmark = pytest.mark.one_version

OPS = "research"


def normal(*shape):
    return np.random.default_rng(44).normal(size=shape).astype(np.float32)


def relaxed(x, iterations):
    x = x.astype(np.float64)
    for _ in range(iterations):
        padded = np.pad(x, 1)
        x = (padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]) / 4
    return x


@pytest.mark.parametrize(
    ("dtype", "iterations", "tolerance"), [(np.float32, 7, 1e-5), (np.float16, 4, 2e-3), (np.float32, 0, 0)]
)
def test_a_stencil_with_halos(run, op, dtype, iterations, tolerance):
    x = normal(13, 17).astype(dtype)
    (y,) = run(lambda x: op("Stencil", [x], [x.shape], [dtype], attributes=str(iterations)), x)
    np.testing.assert_allclose(y, relaxed(x, iterations), rtol=tolerance, atol=tolerance)


def test_a_scan_over_tiles_and_its_gradient(run, op):
    x, weights = normal(2, 10, 13)

    def scanned(x, weights):
        with tf.GradientTape() as tape:
            tape.watch(x)
            (y,) = op("Scan", [x], [x.shape], inputs_with_gradients=[0])
            loss = tf.reduce_sum(y * weights)
        return y, tape.gradient(loss, x)

    y, gradient = run(scanned, x, weights)
    np.testing.assert_allclose(y.ravel(), np.cumsum(x, dtype=np.float64), rtol=1e-4, atol=1e-4)
    expected = np.cumsum(weights.ravel()[::-1], dtype=np.float64)[::-1]
    np.testing.assert_allclose(gradient.ravel(), expected, rtol=1e-4, atol=1e-4)


def test_a_histogram_of_workers(run, op):
    x = np.random.default_rng(1).integers(-2, 12, 5000).astype(np.int32)
    (counts,) = run(lambda x: op("Histogram", [x], [[10]], [tf.int32], attributes="10"), x)
    np.testing.assert_array_equal(counts, np.bincount(x[(x >= 0) & (x < 10)], minlength=10))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_sorting_network(run, op, dtype):
    x = (100 * normal(51)).astype(dtype)
    (ordered,) = run(lambda x: op("Sort", [x], [x.shape], [dtype]), x)
    np.testing.assert_array_equal(ordered, np.sort(x))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float16, 6e-3)])
def test_an_activation_from_a_table(run, op, dtype, tolerance):
    x, points = 2 * normal(50, 33).astype(dtype), np.linspace(-4, 4, 65)
    (y,) = run(lambda x: op("Gelu", [x], [x.shape], [dtype]), x)
    table = points * (1 + np.vectorize(math.erf)(points / 2**0.5)) / 2
    np.testing.assert_allclose(y, np.interp(x, points, table), rtol=tolerance, atol=tolerance)


def test_sums_of_ragged_rows(run, op):
    x, lengths = normal(13), [3, 0, 5, 1, 4]
    (sums,) = run(lambda x: op("Ragged", [x], [[5]], attributes=" ".join(map(str, lengths))), x)
    rows = np.split(x, np.cumsum(lengths)[:-1])
    np.testing.assert_allclose(sums, [row.sum(dtype=np.float64) for row in rows], rtol=1e-6, atol=1e-6)


def test_two_outputs_with_a_gradient_of_each_input(run, op):
    def loss_and_gradients(x, y, polar):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            radius, angle = polar(x, y)
            loss = tf.reduce_sum(2 * radius + angle * angle)
        return radius, angle, *tape.gradient(loss, [x, y])

    x, y = normal(2, 40)
    found = run(
        lambda x, y: loss_and_gradients(
            x, y, lambda x, y: op("Polar", [x, y], [x.shape] * 2, inputs_with_gradients=[0, 1])
        ),
        x,
        y,
    )
    expected = loss_and_gradients(tf.constant(x), tf.constant(y), lambda x, y: (tf.sqrt(x * x + y * y), tf.atan2(y, x)))
    for value, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, reference, rtol=1e-4, atol=1e-5)


def test_an_update_in_place_leaves_the_input(run, op):
    x, y = normal(2, 9, 7)
    updated, kept = run(lambda x, y: (op("Update", [x, y], [x.shape]), x), x, y)
    np.testing.assert_allclose(updated, x + y / 2 + 1, rtol=1e-6)
    np.testing.assert_array_equal(kept, x)


def test_vectors_of_four_halves(run, op):
    a, b, c = normal(3, 10, 11).astype(np.float16)
    (y,) = run(lambda *values: op("Fma", values, [a.shape], [tf.float16]), a, b, c)
    np.testing.assert_allclose(y, a.astype(float) * b + c, rtol=2e-3, atol=2e-3)


def test_a_loop_until_no_vertex_moves(run, op):
    x = np.random.default_rng(2).uniform(0.1, 50, (6, 7)).astype(np.float32)
    roots, steps = run(lambda x: op("Newton", [x], [x.shape, []], [tf.float32, tf.int32]), x)
    np.testing.assert_allclose(roots, np.sqrt(x), rtol=1e-6)
    assert 3 < steps < 20


def test_a_vertex_of_the_supervisor(run, op):
    x = normal(23)
    (total,) = run(lambda x: op("Supervisor", [x], [[]]), x)
    np.testing.assert_allclose(total, x.sum(dtype=np.float64), rtol=1e-5)


def test_codelets_from_text(run, op):
    x = normal(5, 5)
    (y,) = run(lambda x: op("FromText", [x], [x.shape]), x)
    np.testing.assert_array_equal(y, np.float32(5) * x)


@pytest.mark.parametrize(("number", "expected"), [(0, [2, 4]), (3, [6, 10]), (9, [2, 3])])
def test_functions_in_a_switch_and_a_loop(run, op, number, expected):
    (y,) = run(lambda x, number: op("Choose", [x, number], [[2]]), np.float32([1, 2]), np.int32([number]))
    np.testing.assert_array_equal(y, np.float32(expected) + 10)


@pytest.mark.parametrize("index_type", [tf.uint32, tf.int32])
def test_slices_in_a_loop_and_the_largest(run, op, index_type):
    x = normal(6, 9)
    types = [tf.float32, tf.float32, index_type]
    reversed_rows, values, places = run(lambda x: op("Rows", [x], [[6, 9], [6, 2], [6, 2]], types), x)
    np.testing.assert_array_equal(reversed_rows, x[::-1])
    np.testing.assert_array_equal(values, -np.sort(-x, 1)[:, :2])
    np.testing.assert_array_equal(places, np.argsort(-x, 1)[:, :2])


def test_signed_indices_of_an_unsigned_allocator(run, op):
    x, places = normal(2, 6, 3), np.int32([[5, 0, 5, 2], [1, 1, 3, 0]])
    (rows,) = run(lambda x, places: op("Take", [x, places], [[2, 4, 3]]), x, places)
    np.testing.assert_array_equal(rows, np.take_along_axis(x, places[..., None], 1))


def gradients_of(step, watched):
    """Results of a step, and the gradients of their squares' sum."""
    with tf.GradientTape() as tape:
        tape.watch(watched)
        results = step(*watched)
        loss = tf.add_n([tf.reduce_sum(value * value) for value in results])
    return *results, *tape.gradient(loss, watched)


def assert_all_close(found, expected, tolerance):
    for value, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, reference, rtol=tolerance, atol=tolerance)


def test_a_layer_whose_inputs_poplin_allocates(run, op):
    x, w = normal(6, 5), normal(5, 7)
    layers = (lambda x, w: op("Dense", [x, w], [[6, 7]], attributes="7 6"), lambda x, w: [x @ w])
    found, expected = (run(lambda x, w, layer=layer: gradients_of(layer, [x, w]), x, w) for layer in layers)
    assert_all_close(found, expected, 1e-4)


def test_a_gradient_with_attributes(run, op):
    options = {"attributes": "1.5", "gradient_attributes": "1.5", "separate_gradients": True}
    ways = (lambda x: op("Swish", [x], [[3, 4]], **options), lambda x: [x * tf.sigmoid(1.5 * x)])
    found, expected = (run(lambda x, way=way: gradients_of(way, [x]), normal(3, 4)) for way in ways)
    assert_all_close(found, expected, 1e-5)


def test_a_solver_until_its_error_is_small(run, op):
    square, right = normal(10, 10), normal(10)
    matrix = square @ square.T + 10 * np.eye(10, dtype=np.float32)
    (x,) = run(lambda a, b: op("ConjugateGradients", [a, b], [[10]]), matrix, right)
    np.testing.assert_allclose(x, np.linalg.solve(matrix.astype(float), right), rtol=1e-3, atol=1e-4)


def test_paths_by_dynamic_updates(run, op):
    transitions, emissions = normal(4, 4), normal(7, 4)
    scores, path = run(
        lambda a, b: op("Viterbi", [a, b], [[4], [7, 4]], [tf.float32, tf.int32]), transitions, emissions
    )
    best, before = emissions[0], np.zeros((7, 4), int)
    for step in range(1, 7):
        candidates = best[:, None] + transitions
        before[step], best = candidates.argmax(0), candidates.max(0) + emissions[step]
    np.testing.assert_allclose(scores, best, rtol=1e-5)
    np.testing.assert_array_equal(path, before)


def test_a_convolution_of_views(run, op):
    x, w = normal(2, 6, 5, 3), normal(3, 2, 3, 4)
    (y,) = run(lambda x, w: op("Convolution", [x, w], [[2, 4, 4, 4]]), x, w)
    np.testing.assert_allclose(y, tf.nn.conv2d(x, w, 1, "VALID"), rtol=1e-4, atol=1e-4)


def test_a_loss_without_a_gradient_of_its_labels(run, op):
    logits, labels = normal(4, 3), np.int32([0, 2, 1, 1])

    def loss_and_gradient(logits, losses):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = losses(logits)
            total = tf.reduce_sum(loss * [1.0, 2.0, 3.0, 4.0])
        return loss, tape.gradient(total, logits)

    def with_op(logits, labels):
        return loss_and_gradient(logits, lambda z: op("CrossEntropy", [z, labels], [[4], [4, 3]])[0])

    expected = loss_and_gradient(
        tf.constant(logits), lambda z: tf.nn.sparse_softmax_cross_entropy_with_logits(labels, z)
    )
    assert_all_close(run(with_op, logits, labels), expected, 1e-5)


def test_a_branch_by_a_sum(run, op):
    x = np.float32([1, -5, 2])
    for given, expected, is_positive in ((x, -x, False), (-x, -2 * x, True)):
        y, predicate = run(lambda x: op("Signed", [x], [[3], []], [tf.float32, tf.bool]), given)
        np.testing.assert_array_equal(y, expected)
        assert predicate == is_positive


def test_a_variable_keeps_its_value_between_runs(op):
    configure()
    strategy = ipu_strategy.IPUStrategyV1()
    total = tf.function(lambda x: op("Total", [x], [[]], [tf.int32])[0], jit_compile=True)
    with strategy.scope():
        assert [int(strategy.run(total, [tf.constant(value)])) for value in (2.0, 3.0)] == [42, 45]


@pytest.mark.parametrize("mode", ["xla", "kernels"])
def test_an_input_lies_where_it_is_made(op, monkeypatch, mode):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", mode)

    def tile_of(x):
        return op("FirstTile", [x], [[]], [tf.int32])[0]

    def tiles(x):
        put, row = (op("PutOn", [part], [part.shape], attributes=tile)[0] for part, tile in ((x, "5"), (x[:1], "6")))
        allocated = tile_of(x), tile_of(tf.reshape(x, [-1]))
        of_an_op = tile_of(put), tile_of(tf.reshape(tf.nn.relu(put), [5, 5])), tile_of(put + row)
        computed = tile_of(x @ x), tile_of(x + 1), tile_of(row + x)
        return *allocated, *of_an_op, *computed

    found = user_ops.runner(False)(tiles, normal(5, 5))
    assert list(map(int, found)) == [7, 7, 5, 5, 5, 0, 0, 0]


def test_the_tensor_map_has_an_allocators_tiles(op, tmp_path, monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--tensor_map_file_path={tmp_path}")

    def tiles(x, y):
        return op("FirstTile", [x], [[]], [tf.int32])[0] + tf.cast(tf.reduce_sum(y), tf.int32)

    user_ops.runner(False)(tiles, normal(5, 5), normal(5, 5))
    (file,) = tmp_path.glob("*_tiles_*.tensor_map.json")
    rows = next(iter(json.loads(file.read_text())["mappings"].values()))
    where = {row[0]: row[-2] for row in rows}
    assert where["arg0.1"] == [[7, 25]]
    assert where["arg1.2"] == [[1, 25]]


@pytest.mark.parametrize("ipu", [0, 1])
def test_a_stage_on_all_ipus_gets_an_input_of_one(op, ipu):
    configure(2)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def program(x):
            return pipelining_ops.pipeline(
                [lambda x: x + 1, lambda x: op("FirstTile", [x], [[]], [tf.int32])[0], tf.abs],
                gradient_accumulation_count=3,
                inputs=[x],
                outfeed_queue=outfeed,
                device_mapping=[ipu, pipelining_ops._ALL_DEVICES, 1],
            )

        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(program, [tf.zeros([50, 1000])])
        dequeued = outfeed.dequeue()
        session.run(run)
        np.testing.assert_array_equal(session.run(dequeued), [1472 * ipu] * 3)
