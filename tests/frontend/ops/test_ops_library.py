"""The ops library against NumPy: values, gradients, types and errors, eagerly and in compiled programs."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure, run_function, run_session
from tf_ipu_shim.ipu import ipu_compiler, scopes

from tf_ipu_shim import errors, ipu
from tf_ipu_shim.messages.trace_pb2 import IpuTraceEvent

v1 = tf.compat.v1
random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def everywhere(function, *inputs):
    """What a function gives at once, in a compiled `tf.function` and in a compiled TensorFlow 1 graph; all the same."""
    at_once = tf.nest.flatten(function(*map(tf.constant, inputs)))
    values = [tensor.numpy() for tensor in at_once]
    session = run_session(lambda parts, *arguments: tf.nest.flatten(function(*arguments)), inputs, on_ipu=True)
    traced = run_function(lambda parts, *arguments: tf.nest.flatten(function(*arguments)), inputs, mode="compile")
    for run in (session, traced):
        for ours, theirs in zip(run.steps[0], values, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, 1e-3 if ours.dtype == np.float16 else 1e-5, 1e-5)
    return values


def gradients(function, *inputs):
    """The gradients of the weighted sum of a function's result."""

    def both(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = function(*arguments)
            weights = tf.reshape(tf.range(tf.size(result, tf.int32)), tf.shape(result))
            loss = tf.reduce_sum(result * tf.cast(weights + 1, result.dtype))
        turns = tape.gradient(loss, arguments, unconnected_gradients="zero")
        return [turn + 0 * argument for turn, argument in zip(turns, arguments)]

    return everywhere(both, *inputs)


@pytest.mark.parametrize("dtype, result", [(np.uint8, np.float16), (np.float16, np.float16), (np.float32, np.float32)])
def test_normalise_image(dtype, result):
    image = random.integers(0, 9, (2, 3, 4, 3)).astype(dtype)
    (padded,) = everywhere(lambda x: ipu.image_ops.normalise_image(x, [1.0, 2.0, 3.0], [2.0, 4.0, 0.5], 0.5), image)
    expected = (image.astype(np.float64) * 0.5 - [1, 2, 3]) * [2, 4, 0.5]
    assert padded.dtype == result and padded.shape == (2, 3, 4, 4)
    np.testing.assert_allclose(padded[..., :3], expected)
    assert not padded[..., 3].any()


def test_normalise_image_refuses_other_types():
    with pytest.raises(TypeError, match="The input `image` to `normalise_image` must be"):
        ipu.image_ops.normalise_image(tf.zeros([2, 2, 3], tf.int32), [0] * 3, [1] * 3)


def test_normalise_image_refuses_other_channels():
    for channels in (1, 4):
        words = f"The image has {channels} channels, expected 3"
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            ipu.image_ops.normalise_image(tf.zeros([2, 2, channels]), [0] * 3, [1] * 3)
    words = r"`channel_scales` must be the same size as the number of image channels 3, but was of the shape \(1,\)"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        ipu.image_ops.normalise_image(tf.zeros([2, 2, 3]), [0] * 3, [1])


def sliced(dst, src, counts, sources, targets, zero):
    result = np.zeros_like(dst) if zero else dst.copy()
    for count, source, target in zip(counts, sources, targets):
        result[target : target + count] = src[source : source + count]
    return result


@pytest.mark.parametrize("zero", [True, False])
def test_sequence_slice(zero):
    dst, src = (random.normal(size=(size, 2)).astype(np.float32) for size in (9, 7))
    counts, sources, targets = (np.array(values, np.int32) for values in ([2, 0, 3], [1, 0, 4], [5, 3, 0]))
    slice_ = lambda d, s: ipu.slicing_ops.sequence_slice(d, s, counts, sources, targets, zero)  # noqa: E731
    (result,) = everywhere(slice_, dst, src)
    np.testing.assert_array_equal(result, sliced(dst, src, counts, sources, targets, zero))
    to_dst, to_src = gradients(slice_, dst, src)
    weights = np.arange(1, 19, dtype=np.float32).reshape(9, 2)
    expected = np.zeros_like(src)
    for count, source, target in zip(counts, sources, targets):
        expected[source : source + count] += weights[target : target + count]
    np.testing.assert_array_equal(to_src, expected)
    kept = weights.copy()
    kept[5:7] = kept[0:3] = 0
    np.testing.assert_array_equal(to_dst, np.zeros_like(dst) if zero else kept)


def test_pack_and_unpack():
    src = np.arange(1, 8, dtype=np.float32)
    counts, offsets = np.array([1, 3], np.int32), np.array([6, 2], np.int32)
    (unpacked,) = everywhere(lambda s: ipu.slicing_ops.sequence_slice_unpack(s, counts, offsets, 5), src)
    np.testing.assert_array_equal(unpacked, [7, 3, 4, 5, 0])
    pack = ipu.slicing_ops.sequence_slice_pack
    (packed,) = everywhere(lambda d, s: pack(d, s, counts, np.array([4, 0]), False), np.zeros(5, np.float32), src)
    np.testing.assert_array_equal(packed, [2, 3, 4, 0, 1])


def test_slices_are_checked():
    one = tf.ones([1], tf.int32)
    with pytest.raises(ValueError, match="num_elems, src_offsets and dst_offsets must have matching, nonzero"):
        ipu.slicing_ops.sequence_slice(tf.ones([2]), tf.ones([2]), tf.ones([2], tf.int32), one, one, False)
    with pytest.raises(ValueError, match="src and dst inner shapes must match"):
        ipu.slicing_ops.sequence_slice(tf.ones([2, 3]), tf.ones([2, 2]), one, one, one, False)
    with pytest.raises(ValueError, match="num_elems and src_offsets must have matching, nonzero"):
        ipu.slicing_ops.sequence_slice_unpack(tf.ones([2]), tf.ones([0], tf.int32), tf.ones([0], tf.int32), 2)
    with pytest.raises(ValueError, match="src and dst inner shapes must match"):
        ipu.slicing_ops.sequence_slice(1.0, 2.0, [1], [0], [0], True)
    with pytest.raises(ValueError, match="src is a scalar"):
        ipu.slicing_ops.sequence_slice_unpack(1.0, [1], [0], 1)
    with pytest.raises(TypeError, match="by integers, not by float32"):
        ipu.slicing_ops.sequence_slice(tf.zeros([2]), tf.zeros([2]), [1.0], [0], [0], True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("absolute", [True, False])
def test_histogram(dtype, absolute):
    values = random.normal(size=50).astype(dtype)
    levels = np.array([-1, values[3], 1.5], dtype)
    levels.sort()
    ops = ipu.statistics_ops
    counted, updated, shares = everywhere(
        lambda v: [
            (h := ops.histogram(v, levels, absolute)),
            ops.histogram_update(h, v, levels, absolute_of_input=absolute),
            ops.histogram_normalize(h),
        ],
        values,
    )
    taken = np.abs(values) if absolute else values
    expected = np.bincount(np.searchsorted(levels, taken, side="right"), minlength=4)
    np.testing.assert_array_equal(counted, expected)
    np.testing.assert_array_equal(updated, 2 * expected)
    np.testing.assert_allclose(shares, expected / 50)
    assert counted.dtype == np.float32


def test_bins_of_one_width_and_checks():
    ops = ipu.statistics_ops
    values = np.array([1, 9, 3], np.float32)
    (bins,) = everywhere(lambda v: ops.fixed_width_bins(v, 4), values)
    np.testing.assert_allclose(bins, np.histogram_bin_edges(values, 4)[1:-1])
    with pytest.raises(ValueError, match="Only float16 and float32 types are supported"):
        ops.histogram(tf.constant([1]), tf.constant([1.0]))
    with pytest.raises(ValueError, match="histogram expects rank-1 tensor inputs"):
        ops.histogram(tf.ones([1, 1]), tf.constant([1.0]))
    with pytest.raises(ValueError, match="hist must be of float32 type"):
        ops.histogram_update(tf.ones([2], tf.float16), tf.ones([1]), tf.ones([1]))
    with pytest.raises(ValueError, match="hist and levels shapes are incompatible"):
        ops.histogram_update(tf.ones([3]), tf.ones([1]), tf.ones([1]))
    with pytest.raises(ValueError, match="Only float16 and float32 types are supported"):
        ipu.statistics_ops.fixed_width_bins([1, 2], 2)
    with pytest.raises(ValueError, match="n_bins=0"):
        ipu.statistics_ops.fixed_width_bins([1.0, 2.0], 0)


def test_segment_sum():
    data, ids = random.normal(size=(5, 2)).astype(np.float32), np.array([0, 0, 2, 2, 2], np.int32)
    expected = np.zeros((4, 2), np.float32)
    np.add.at(expected, ids, data)
    (sums,) = everywhere(lambda d, i: ipu.math_ops.segment_sum(d, i, 4), data, ids)
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="num_segments must be greater than 0; got 0"):
        ipu.math_ops.segment_sum(data, ids, 0)
    with pytest.raises(ValueError, match="must have same length"):
        ipu.math_ops.segment_sum(data, ids[:3], 4)
    with pytest.raises(ValueError, match=r"Shape \(\) must have rank at least 1"):
        ipu.math_ops.segment_sum(1.0, [0], 1)
    with pytest.raises(ValueError, match=r"Shape \(5, 1\) must have rank 1"):
        ipu.math_ops.segment_sum(data, ids[:, None], 4)


@pytest.mark.parametrize("dimension", ["a_columns", "a_rows_b_columns", "b_rows"])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_serialized_matmul(dimension, transposed):
    a, b = random.normal(size=(2, 4, 8)).astype(np.float32), random.normal(size=(2, 8, 6)).astype(np.float32)
    given = [np.swapaxes(matrix, 1, 2) if turned else matrix for matrix, turned in zip((a, b), transposed)]
    product = lambda x, y: ipu.math_ops.serialized_matmul(x, y, 2, dimension, *transposed)  # noqa: E731
    weights = np.arange(1, 49, dtype=np.float32).reshape(2, 4, 6)
    if transposed == (True, False):
        values, turns = everywhere(product, *given), gradients(product, *given)
    else:
        values, turns = [product(*given).numpy()], None
    np.testing.assert_allclose(values[0], a @ b, rtol=1e-4, atol=1e-5)
    if turns:
        np.testing.assert_allclose(turns[0], np.swapaxes(weights @ np.swapaxes(b, 1, 2), 1, 2), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(turns[1], np.swapaxes(a, 1, 2) @ weights, rtol=1e-4, atol=1e-4)


def test_serialized_matmul_is_checked():
    product = ipu.math_ops.serialized_matmul
    for factor, dimension, message in (
        (0, "b_rows", "serialization_factor has to be at least 1"),
        (3, "a_columns", r"Expected 'serialization_factor' \(3\) to divide the columns"),
        (3, "a_rows_b_columns", r"Expected 'serialization_factor' \(3\) to divide the rows"),
        (3, "b_rows", r"Expected 'serialization_factor' \(3\) to divide the rows"),
        (2, "rows", "Invalid serialization_dimension=rows, expected one of: 'a_columns'"),
    ):
        with pytest.raises(ValueError, match=message):
            product(tf.ones([4, 4]), tf.ones([4, 4]), factor, dimension)
    with pytest.raises(TypeError, match=r"serialization_factor has to be a whole number, but was 2\.0"):
        product(tf.ones([4, 4]), tf.ones([4, 4]), 2.0, "b_rows")
    with pytest.raises(ValueError, match="Expected tensor 'b' to have a minimum"):
        product(tf.ones([4, 4]), tf.ones([4]), 2, "b_rows")
    with pytest.raises(ValueError, match="Expected the number of columns in 'a'"):
        product(tf.ones([4, 4]), tf.ones([6, 4]), 2, "a_rows_b_columns")


def test_embedding_lookup():
    table, ids = random.normal(size=(6, 3)).astype(np.float32), np.array([[1, 5], [1, 0]], np.int32)
    (rows,) = everywhere(lambda t: ipu.embedding_ops.embedding_lookup(t, ids, serialization_factor=2), table)
    np.testing.assert_array_equal(rows, table[ids])
    (dense,) = gradients(lambda t: ipu.embedding_ops.embedding_lookup(t, ids), table)
    expected = np.zeros_like(table)
    np.add.at(expected, ids, np.arange(1, 13, dtype=np.float32).reshape(2, 2, 3))
    np.testing.assert_array_equal(dense, expected)


def test_embedding_lookup_takes_both_orders_of_arguments():
    table, lookup = tf.ones([6, 3]), ipu.embedding_ops.embedding_lookup
    for arguments in ((4,), ("rows", 4), (None, 4)):
        with pytest.raises(ValueError, match=r"The serialization_factor \(4\) must divide the size"):
            lookup(table, [1], *arguments)
    with pytest.raises(ValueError, match="serialization_factor has to be at least 1"):
        lookup(table, [1], serialization_factor=0)
    with pytest.raises(ValueError, match="needs a table with rows"):
        ipu.embedding_ops.embedding_lookup(tf.constant(1.0), [0])
    for wrong in ([1.0], [True], ["one"]):
        with pytest.raises(TypeError, match="needs row numbers, and ids is a (float32|bool|string)"):
            lookup(table, wrong)
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        np.testing.assert_array_equal(lookup(tf.range(4.0)[:, None], np.array([2, 0], dtype)), [[2.0], [0.0]])
    with tf.Graph().as_default():
        assert lookup(tf.ones([6, 3]), [1], "rows", 2).op.name.startswith("rows/")


def test_codelet_expressions():
    a, b = (random.normal(size=4).astype(np.float32) for _ in range(2))
    edsl = ipu.vertex_edsl
    expression = lambda x, y: edsl.condition(x > y, edsl.let(x + edsl.constant(1.0), lambda z: z * z), y)  # noqa: E731
    (result,) = everywhere(lambda x, y: ipu.custom_ops.codelet_expression_op(expression, x, y), a, b)
    np.testing.assert_allclose(result, np.where(a > b, (a + 1) ** 2, b), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="an int or a float"):
        edsl.constant("1")
    with pytest.raises(errors.MissingAttributeError, match="does not emulate"):
        edsl.BinaryExpr  # noqa: B018


def test_what_leaves_values_alone():
    x = random.normal(size=3).astype(np.float32)
    internal = ipu.internal_ops
    for op in (internal.remap, internal.remap_deduce, internal.recompute, internal.block_recompute):
        np.testing.assert_array_equal(everywhere(op, x)[0], x)
        np.testing.assert_array_equal(gradients(op, x)[0], [1, 2, 3])


@pytest.mark.parametrize("for_gradients", [True, False])
def test_barrier(for_gradients):
    x, y = (random.normal(size=3).astype(np.float32) for _ in range(2))

    def product(a, b):
        waited = ipu.control_flow_ops.barrier({"a": a, "b": b}, insert_barrier_for_gradients=for_gradients)
        return waited["a"] * waited["b"]

    np.testing.assert_array_equal(everywhere(product, x, y)[0], x * y)
    to_x, to_y = gradients(product, x, y)
    np.testing.assert_allclose(to_x, y * [1, 2, 3], rtol=1e-6)
    np.testing.assert_allclose(to_y, x * [1, 2, 3], rtol=1e-6)


def test_outlined_functions():
    x = random.normal(size=(2, 2)).astype(np.float32)

    @ipu.outlined_function
    def square(value):
        return value * value

    @ipu.outlined_function(unique_sharding=True, name="cube")
    def cube(value):
        return {"result": value * square(value)}

    np.testing.assert_allclose(everywhere(lambda v: cube(v)["result"], x)[0], x**3, rtol=1e-5)
    np.testing.assert_allclose(gradients(lambda v: cube(v)["result"], x)[0], 3 * x**2 * [[1, 2], [3, 4]], rtol=1e-5)
    with tf.Graph().as_default():
        assert ipu.function(lambda v: v * 2.0, "doubled")(tf.ones([])).op.name.startswith("doubled/")


@pytest.mark.parametrize(
    "code, op",
    [
        (lambda x, numbers: tf.transpose(x, numbers), "Transpose"),
        (lambda x, numbers: tf.reduce_sum(x, axis=numbers[0]), "Sum"),
        (lambda x, numbers: tf.reshape(x, tf.stack([numbers[0], 6])), "Reshape"),
    ],
)
def test_outlined_functions_do_not_know_their_arguments(code, op):
    x = np.arange(6, dtype="f").reshape(2, 3)
    function = ipu.outlined_function(code)

    def with_argument(x):
        return function(x, tf.identity([1, 0]))

    def from_around(x):
        numbers = tf.identity([1, 0])
        return ipu.outlined_function(lambda x: code(x, numbers), name="inner")(x)

    refused = rf"with op {op} must be a compile-time constant, and it is an argument of the outlined function lambda"
    with pytest.raises(tf.errors.InvalidArgumentError, match=refused):
        everywhere(with_argument, x)
    expected = code(tf.constant(x), np.array([1, 0]))
    np.testing.assert_array_equal(everywhere(from_around, x)[0], expected)
    np.testing.assert_array_equal(everywhere(lambda x: function(x, [1, 0]), x)[0], expected)


def test_outlined_functions_compute_with_whole_numbers():
    function = ipu.outlined_function(lambda x, index: tf.gather(x, index) * tf.cast(index, tf.float32))
    x = np.arange(6, dtype="f").reshape(2, 3)
    np.testing.assert_array_equal(everywhere(lambda x: function(x, tf.constant(1)), x)[0], x[1])


@pytest.mark.parametrize("looped", [False, True])
def test_print_tensor(capfd, looped):
    def step(x):
        with tf.control_dependencies([ipu.internal_ops.print_tensor(x, "number")]):
            return x + 1.0

    def program(x):
        return ipu.loops.repeat(3, step, [x]) if looped else step(x)

    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [])
        with scopes.ipu_scope(IPU):
            compiled = ipu_compiler.compile(program, [x])
        assert session.run(compiled, {x: 1.5}) == [4.5 if looped else 2.5]
    printed = [line for line in capfd.readouterr().err.splitlines() if line.startswith("number:")]
    assert printed == [f"number: {value}" for value in ((1.5, 2.5, 3.5) if looped else (1.5,))]


def test_print_tensor_at_once(capfd):
    assert ipu.internal_ops.print_tensor(tf.constant([1, 2]), "pair") is None
    assert capfd.readouterr().err.strip() == "pair: [1 2]"


def test_events_in_a_summary_of_older_sdks(graph, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    options = ipu.utils.create_ipu_config(profiling=True, use_poplar_text_report=False)
    ipu.utils.configure_ipu_system(ipu.utils.auto_select_ipus(options, 1))
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [3])
    with scopes.ipu_scope("/device:IPU:0"):
        (doubled,) = ipu_compiler.compile(lambda x: [2 * x], [x])
    ipu.summary_ops.ipu_compile_summary("report", [doubled])
    other = ipu.summary_ops.ipu_compile_summary("other", doubled, collections=["mine"])
    assert v1.get_collection("mine") == [other]

    def events(text):
        (value,) = v1.Summary.FromString(text).value
        assert value.metadata.plugin_data.plugin_name == "ipu"
        return value.tag, [IpuTraceEvent.FromString(one).type for one in tf.make_ndarray(value.tensor).flat]

    with v1.Session() as session:
        result, text = session.run([doubled, v1.summary.merge_all()], {x: [1, 2, 3]})
        assert result.tolist() == [2, 4, 6]
        tag, kinds = events(text)
        assert tag == "report" and {IpuTraceEvent.COMPILE_END, IpuTraceEvent.EXECUTE} <= set(kinds)
        again = events(session.run(other, {x: [1, 2, 3]}))
    assert again[0] == "other" and set(again[1]) == {IpuTraceEvent.EXECUTE}, "those since they were read"


def test_reports_in_summaries_are_gone():
    with pytest.raises(NotImplementedError, match="ipu_compile_summary is deprecated, is no longer functional"):
        ipu.summary_ops.ipu_compile_summary("report", [])
    with pytest.raises(NotImplementedError, match="get_ipu_reports is deprecated"):
        ipu.summary_ops.get_ipu_reports()
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Eager execution mode should be used"):
        ipu.summary_ops.get_ipu_reports()


@pytest.mark.parametrize("depth", [1, 3])
def test_queues_keep_their_values_between_runs(depth):
    given = [np.float32([i, -i]) for i in range(1, 6)]
    expected = [np.zeros(2, np.float32)] * depth + given
    delayed = tf.function(lambda x: ipu.internal_ops.fifo(x, depth) + 0.0)
    strategy = ipu.ipu_strategy.IPUStrategyV1()
    for index, value in enumerate(given):
        np.testing.assert_array_equal(strategy.run(delayed, args=[tf.constant(value)]), expected[index])
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [2])
        with scopes.ipu_scope(IPU):
            (one,) = ipu_compiler.compile(lambda x: ipu.internal_ops.fifo(x, depth), [fed])
        session.run(v1.global_variables_initializer())
        for index, value in enumerate(given):
            np.testing.assert_array_equal(session.run(one, {fed: value}), expected[index])


def test_iterations_of_a_loop_are_executions_of_a_queue():
    def body(number, total):
        return number + 1.0, total + ipu.internal_ops.fifo(number, 2)

    with tf.Graph().as_default(), v1.Session() as session:
        with scopes.ipu_scope(IPU):
            outputs = ipu_compiler.compile(lambda: ipu.loops.repeat(5, body, [1.0, 0.0]), [])
        session.run(v1.global_variables_initializer())
        assert session.run(outputs) == [6.0, 0 + 0 + 1 + 2 + 3]
        assert session.run(outputs)[1] == 4 + 5 + 1 + 2 + 3


def test_queues_that_cannot_be():
    fifo = ipu.internal_ops.fifo
    with pytest.raises(ValueError, match="between the executions of one"):
        fifo(tf.ones([]), 2)
    with pytest.raises(ValueError, match="expected a number of executions"):
        fifo(tf.ones([]), -1)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="expected a fully defined one"):
        fifo(v1.placeholder(tf.float32, [None]), 1)


def test_what_poplar_would_refuse_of_a_multi_conv():
    image, kernel = tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1])

    @ipu.nn_ops.multi_conv(options={"availableMemoryProportion": "-0.1"})
    def both(x):
        return tf.nn.conv2d(x, kernel, 1, "SAME"), tf.nn.conv2d(x, kernel, 1, "VALID")

    with pytest.raises(tf.errors.InternalError, match="greater than or equal to 0"):
        both(image)
    with pytest.raises(tf.errors.InternalError, match="greater than or equal to 0"):
        run_function(lambda parts, x: list(both(x)), [image.numpy()], mode="compile")
