"""What XLA cannot compile is refused with the script's line and a way out, whenever XLA finds it out."""

import re

import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import ipu_strategy

INTERNAL = re.compile("dummy_file_name|TF_DUMP_GRAPH_PREFIX|tf2xla|Stack trace for op")
MODES = {"auto": ("auto", "on"), "kernels": ("kernels", "on"), "xla": ("xla", "on"), "no plan": ("xla", "off")}


@pytest.fixture(autouse=True, params=MODES.values(), ids=MODES.keys())
def mode(request, own_environment, monkeypatch):
    way, memory = request.param
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", way)
    monkeypatch.setenv("TF_IPU_SHIM_MEMORY_PLAN", memory)
    configure()
    return request.param


def refusal(function, *arguments):
    with tf.device(IPU), pytest.raises((tf.errors.InvalidArgumentError, tf.errors.InternalError)) as caught:
        tf.function(function, jit_compile=True)(*[tf.constant(one) for one in arguments])
    text = str(caught.value)
    assert not INTERNAL.search(text), text
    return text


def computed_place(variable):
    for i in tf.range(2, 5):
        variable[i].assign(variable[i - 1])


def test_a_place_that_the_program_computes():
    with tf.device(IPU):
        variable = tf.Variable([1, 1, 0, 0, 0])
    text = refusal(lambda: computed_place(variable))
    assert re.search(r"test_compile_errors.py:\d+, in computed_place.*tf.tensor_scatter_nd_update", text, re.S)


def test_beside_a_shape_that_is_an_argument():
    with tf.device(IPU):
        variable = tf.Variable([1, 1, 0, 0, 0])

    def function(x, shape):
        computed_place(variable)
        return tf.reshape(x, shape)

    text = refusal(function, [1.0, 2.0, 3.0, 4.0], [2, 2])
    assert re.search(r"Cannot compile function: .*test_compile_errors.py:\d+, in (computed_place|function)", text)
    assert "static shapes" in text


def test_beside_a_shape_that_a_variable_decides():
    with tf.device(IPU):
        variable, shape = tf.Variable([1, 1, 0, 0, 0]), tf.Variable([2, 2])

    def function():
        computed_place(variable)
        return tf.ones(shape)

    assert re.search(r"test_compile_errors.py:\d+, in (computed_place|function)", refusal(function))


def test_the_gradient_of_a_loop_without_a_most_names_the_loop():
    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            while tf.reduce_sum(y) < 100.0:  # the loop
                y = y * 2.0 * x
        return tape.gradient(y, x)

    text = refusal(function, [1.0, 2.0])
    assert re.search(r"test_compile_errors.py:\d+, in function.*maximum_iterations", text)
    line = int(re.search(r"test_compile_errors.py:(\d+)", text)[1])
    assert line == function.__code__.co_firstlineno + 4


def test_an_error_of_a_run_keeps_its_own_words():
    """Only what XLA says of its compilation is told anew."""

    def function(x):
        tf.debugging.assert_less(x, 2.0, message="Too large")
        return x

    text = refusal(function, [1.0, 2.0])
    assert "Too large" in text
    assert "Cannot compile" not in text


class Doubled(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.inner = tf.keras.layers.Dense(2)

    def call(self, x):
        y = self.inner(x)
        while tf.reduce_sum(tf.abs(y)) < 100.0:
            y = y * 2.0 + self.inner(x)
        return y


def test_a_loop_in_a_layer_names_the_layers_line():
    with ipu_strategy.IPUStrategy().scope():
        model = tf.keras.Sequential([Doubled()])
        model.compile("sgd", "mse", steps_per_execution=2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"test_compile_errors.py:\d+, in call") as caught:
            model.fit(tf.ones([4, 2]), tf.ones([4, 2]), batch_size=1, verbose=0)
    assert "maximum_iterations" in str(caught.value)
    assert not INTERNAL.search(str(caught.value))


def test_rows_of_a_variable_by_gather_nd():
    with tf.device(IPU):
        variable = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    text = refusal(lambda: tf.gather_nd(variable, [[0, 1]]))
    assert "Give it tf.identity(variable)." in text
    with tf.device(IPU):
        given = tf.function(lambda: tf.gather_nd(tf.identity(variable), [[0, 1]]), jit_compile=True)()
    assert given.numpy().tolist() == [2.0]
