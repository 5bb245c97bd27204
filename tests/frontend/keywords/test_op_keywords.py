"""Keywords that public programs pass to TensorFlow's ops: on the IPU each does what it does on the CPU."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, check_session, configure, run_function

pytestmark = [pytest.mark.one_version, pytest.mark.filterwarnings("ignore:.*is deprecated:UserWarning")]
v1, keras = tf.compat.v1, tf.keras
random = np.random.RandomState(0)
IMAGES = random.normal(size=[2, 8, 8, 3]).astype(np.float32)
ROWS = random.normal(size=[4, 6]).astype(np.float32)
WORDS = random.normal(size=[2, 5, 4]).astype(np.float32)
FILTERS = random.normal(size=[3, 3, 3, 4]).astype(np.float32)
SEGMENTS = [3, 0, 1, 0]
FEW = v1.random_uniform_initializer(minval=-0.2, maxval=0.2, seed=2)

# Of TensorFlow 2, called in a tf.function. Each result is deterministic.
FUNCTIONS = {
    "transpose(perm)": lambda: tf.transpose(IMAGES, perm=[0, 3, 1, 2]),
    "pad(paddings, mode)": lambda: tf.pad(IMAGES, paddings=[[0, 0], [1, 2], [2, 1], [0, 0]], mode="REFLECT"),
    "tile(multiples)": lambda: tf.tile(input=ROWS, multiples=[2, 1]),
    "split(num_or_size_splits)": lambda: tf.split(ROWS, num_or_size_splits=[1, 5], axis=1),
    "while_loop(loop_vars)": lambda: tf.while_loop(
        cond=lambda i, _: i < 3, body=lambda i, x: (i + 1, x * 2.0), loop_vars=[tf.constant(0), tf.constant(ROWS)]
    ),
    "unsorted_segment_sum(num_segments)": lambda: tf.math.unsorted_segment_sum(ROWS, SEGMENTS, num_segments=5),
    "reduce_sum(input_tensor)": lambda: tf.reduce_sum(input_tensor=ROWS, axis=0, keepdims=True),
    "reduce_max(keepdims)": lambda: tf.reduce_max(ROWS, axis=1, keepdims=True),
    "one_hot(on_value, off_value)": lambda: tf.one_hot(SEGMENTS, depth=4, on_value=0.9, off_value=0.1, axis=0),
    "norm(ord)": lambda: [tf.norm(ROWS, ord=kind) for kind in (1, 2, np.inf, "euclidean")],
    "linspace(num)": lambda: tf.linspace(0.0, 1.0, num=5),
    "embedding_lookup(ids)": lambda: tf.nn.embedding_lookup(ROWS, ids=SEGMENTS, max_norm=1.0),
    "conv2d(filters)": lambda: tf.nn.conv2d(IMAGES, filters=FILTERS, strides=[1, 2, 2, 1], padding="VALID"),
    "conv2d(dilations)": lambda: tf.nn.conv2d(IMAGES, FILTERS, [1, 1, 1, 1], padding="SAME", dilations=[1, 2, 3, 1]),
    "uniform(minval)": lambda: tf.random.uniform([100], minval=2, maxval=3, dtype=tf.int32),
    "truncated_normal(stddev)": lambda: tf.abs(tf.random.truncated_normal([4000], stddev=0.1)) < 0.2,
    "shuffle": lambda: tf.sort(tf.random.shuffle(ROWS, seed=1), axis=0),
    "Huber(delta)": lambda: keras.losses.Huber(delta=0.5, reduction="none")(ROWS, ROWS * 2),
    "MaxPooling2D(pool_size)": lambda: keras.layers.MaxPooling2D(pool_size=(2, 2))(IMAGES),
    "ExponentialDecay": lambda: keras.optimizers.schedules.ExponentialDecay(
        0.1, decay_steps=3, decay_rate=0.5, staircase=True
    )(tf.constant(7)),
}


def _normalised(x, training, **options):
    y = v1.layers.batch_normalization(x, training=training, momentum=0.9, epsilon=1e-5, **options)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        return tf.identity(y)


def _through(x, cell, **options):
    with v1.variable_scope("words", initializer=FEW):
        outputs, state = v1.nn.dynamic_rnn(cell, x, dtype=tf.float32, **options)
    return [outputs, *tf.nest.flatten(state)]


def _both_ways(x):
    cells = (v1.nn.rnn_cell.GRUCell(3), v1.nn.rnn_cell.LSTMCell(3, use_peepholes=True, num_proj=2, proj_clip=0.1))
    with v1.variable_scope("words", initializer=FEW):
        outputs, _ = v1.nn.bidirectional_dynamic_rnn(*cells, x, dtype=tf.float32, swap_memory=False)
    return list(outputs)


def _with_own_variables(x):
    def doubled(getter, name, *args, **kwargs):
        return 2.0 * getter(name, *args, **kwargs)

    with v1.variable_scope("own", custom_getter=doubled, initializer=FEW):
        return x @ v1.get_variable("kernel", [6, 3])


def _with_a_constraint(x):
    """An optimizer applies the constraint after its step."""
    kernel = v1.get_variable("kernel", [6, 1], initializer=FEW, constraint=lambda w: tf.clip_by_value(w, -0.1, 0.1))
    loss = tf.reduce_sum((x @ kernel) ** 2)
    return [loss, v1.train.GradientDescentOptimizer(learning_rate=0.1).minimize(loss)]


def _frozen():
    with tf.Graph().as_default() as graph, v1.Session() as session:
        rows = v1.placeholder(tf.float32, ROWS.shape, "rows")
        tf.identity(rows @ v1.get_variable("kernel", initializer=ROWS.T), name="products")
        session.run(v1.global_variables_initializer())
        convert = v1.graph_util.convert_variables_to_constants
        return convert(session, graph.as_graph_def(), output_node_names=["products"])


# Of TensorFlow 1, compiled in a graph, fed with the array.
GRAPHS = {
    "reduce_mean(reduction_indices, keep_dims)": (
        lambda x: v1.reduce_mean(x, reduction_indices=[1], keep_dims=True),
        ROWS,
    ),
    "expand_dims(dim)": (lambda x: v1.expand_dims(x, dim=1), ROWS),
    "while_loop(back_prop)": (
        lambda x: v1.while_loop(
            lambda i, _: i < 3, lambda i, x: (i + 1, x * 2.0), [0, x], parallel_iterations=1, back_prop=True
        )[1],
        ROWS,
    ),
    "multinomial(num_samples)": (
        lambda x: v1.multinomial(logits=tf.where(x[:, :2] > x[:, 1:2], 0.0, -1e9), num_samples=3),
        np.array([[1, 0], [2, 1]], np.float32),
    ),
    "batch_normalization(fused)": (lambda x: _normalised(x, True, fused=True), IMAGES),
    "batch_normalization(trainable)": (lambda x: _normalised(x, False, fused=True, trainable=False), IMAGES),
    "dynamic_rnn(swap_memory)": (
        lambda x: _through(x, v1.nn.rnn_cell.GRUCell(3), swap_memory=True, sequence_length=[5, 2]),
        WORDS,
    ),
    "BasicLSTMCell(forget_bias, state_is_tuple)": (
        lambda x: _through(x, v1.nn.rnn_cell.BasicLSTMCell(3, forget_bias=0.5, state_is_tuple=True)),
        WORDS,
    ),
    "bidirectional_dynamic_rnn(swap_memory)": (_both_ways, WORDS),
    "truncated_normal_initializer(stddev)": (
        lambda x: v1.layers.conv2d(
            inputs=x,
            filters=4,
            kernel_size=3,
            kernel_initializer=v1.truncated_normal_initializer(stddev=0.1, seed=1),
        ),
        IMAGES,
    ),
    "variable_scope(custom_getter)": (_with_own_variables, ROWS),
    "get_variable(constraint)": (_with_a_constraint, ROWS),
    "import_graph_def(input_map)": (
        lambda x: tf.import_graph_def(_frozen(), input_map={"rows:0": x}, return_elements=["products:0"]),
        ROWS,
    ),
}


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_keyword_in_a_function(call):
    expected, found = (run_function(lambda _: call(), [], mode=mode).steps[0] for mode in ("cpu", "jit"))
    assert len(expected) == len(found)
    for one, other in zip(found, expected):
        assert one.dtype == other.dtype
        assert_close(one, other)


@pytest.mark.parametrize(("call", "fed"), GRAPHS.values(), ids=GRAPHS)
def test_a_keyword_in_a_graph(call, fed):
    check_session(lambda _, x: call(x), [fed], steps=2)
