"""What `ipu_compiler.compile` refuses, and what errors at run time say and leave behind."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf
from compiling import IPU, compile_, placeholder, run
from harness import configure
from tensorflow.python.eager import context
from tf_ipu_shim.ipu import embedding_ops, ipu_compiler, scopes

from tf_ipu_shim.lowering import nested_calls

v1 = tf.compat.v1
pytestmark = pytest.mark.usefixtures("graph")


def test_operations_before_tensors_are_refused():
    with pytest.raises(ValueError, match="zero or more Tensor values followed by zero or more Operations"):
        compile_(lambda x: [tf.no_op(), x], tf.constant(1.0))


def test_operations_in_nested_results_are_refused():
    with pytest.raises(ValueError, match="does not support an Operation as a return value in a non-flat"):
        compile_(lambda x: {"a": x, "b": tf.no_op()}, tf.constant(1.0))


def test_results_that_cannot_be_converted_are_refused():
    with pytest.raises(ValueError, match="must all either be Operations or convertible to Tensors"):
        compile_(lambda x: [x, object()], tf.constant(1.0))


@pytest.mark.parametrize("around", [lambda spec: spec, lambda spec: [2, [], [spec]], lambda spec: {"a": (1, spec)}])
def test_estimator_specs_are_refused(around):
    spec = type("EstimatorSpec", (), {})()
    with pytest.raises(ValueError, match="computation output contains an EstimatorSpec or is one"):
        compile_(lambda x: around(spec), tf.constant(1.0))


@pytest.mark.parametrize("inputs", [5, tf.zeros, {"x": 1.0}])
def test_inputs_must_be_a_list(inputs):
    with pytest.raises(TypeError, match="^inputs must be a list, not"), scopes.ipu_scope(IPU):
        ipu_compiler.compile(lambda x: x, inputs)


def test_a_wrong_number_of_inputs():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        compile_(lambda x, y: x, tf.constant(1.0))


def test_without_an_ipu_device_compiling_is_refused():
    with pytest.raises(Exception, match="however it was not placed on an IPU device"):
        ipu_compiler.compile(lambda x: x + 1.0, [placeholder(2)])
    with pytest.raises(Exception, match="however it was not placed on an IPU device"), tf.device("/device:CPU:0"):
        ipu_compiler.compile(lambda x: x + 1.0, [placeholder(2)])


@pytest.mark.parametrize("use", [lambda w: w.assign([2.0]), lambda w: tf.identity(w.op.outputs[0])])
def test_reference_variables_are_refused(use):
    variable = v1.get_variable("w", initializer=[1.0], use_resource=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no supported kernel for IPU devices is available"):
        compile_(lambda: use(variable))


def test_an_op_that_xla_cannot_compile_is_named():
    def model(x):
        return tf.strings.to_number(tf.strings.as_string(x))  # this line

    result = compile_(model, tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(result)
    message = str(caught.value)
    assert "AsString" in message and "StringToNumber" in message
    assert f"{pathlib.Path(__file__).name}:{model.__code__.co_firstlineno + 1}" in message
    assert "outside_compilation_scope" in message


def test_the_gradient_of_a_loop_in_one_branch():
    """Stock XLA refuses it too: the other branch has no lists of what the loop's iterations had."""

    def model(x, taken):
        def loop():
            return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, tf.sin(y)), (0, x), maximum_iterations=3)[1]

        return tf.gradients(tf.cond(taken, loop, lambda: x), x)

    result = compile_(model, tf.constant([2.0]), tf.constant(True))
    message = r"FakeParam(.|\n)*, in model\nThey stand for the lists in which a loop .* Put the loop outside of tf.cond"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(result)


@pytest.mark.parametrize("wrap", [lambda body: body, tf.function, lambda body: tf.function(tf.function(body))])
def test_what_a_loop_runs_is_not_sent_to_a_scope_that_is_refused_there(wrap):
    def body(x):
        return x + tf.cast(tf.unique(x)[0][0], tf.float32)

    looped = wrap(body)
    result = compile_(lambda x: tf.while_loop(lambda x: x[0] < 3.0, lambda x: [looped(x)], [x]), tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="They are in a loop or branch") as caught:
        run(result)
    assert "outside_compilation_scope" not in str(caught.value)


@pytest.mark.parametrize("wrap", [lambda model: model, tf.function])
def test_an_op_on_an_ipu_that_is_not_there_is_named(wrap):
    def model(x):
        with scopes.ipu_shard(1):
            return x * x  # this line

    wrapped = wrap(model)
    result = compile_(lambda x: wrapped(x), tf.constant([1.0]))
    line = f"{pathlib.Path(__file__).name}:{model.__code__.co_firstlineno + 2}, in model"
    expected = f"is placed on shard 1 at .*/{line}, but the device has 1 IPU .* No IPU system is configured"
    with pytest.raises(tf.errors.InternalError, match=expected):
        run(result)


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (lambda x: [tf.unique(x)[0]] * 3, "Unique"),
        (lambda x: tf.where(x > 0.0), "Where"),
        (lambda x: tf.boolean_mask(x, x > 0.0), "Where"),
    ],
)
def test_shapes_that_depend_on_values_are_refused(model, named):
    result = compile_(model, tf.constant([1.0, 1.0, -1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be fully defined at compile time") as caught:
        run(result)
    assert f"({named})" in str(caught.value)


def test_gradients_of_rows_are_refused_to_optimizers_that_join_them():
    table = np.arange(8, dtype=np.float32).reshape(4, 2)

    def trained(look_up):
        def model(indices):
            weights = v1.get_variable("table", initializer=table, use_resource=True)
            loss = tf.reduce_sum(look_up(weights, indices))
            with tf.control_dependencies([v1.train.MomentumOptimizer(0.5, 0.9).minimize(loss)]):
                return tf.identity(loss)

        with tf.Graph().as_default(), v1.Session() as session:
            result = compile_(model, tf.constant([1, 1]))
            session.run(v1.global_variables_initializer())
            session.run(result)
            return session.run(v1.trainable_variables())[0]

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"variable up with ipu\.ops\.embedding_ops"):
        trained(tf.gather)
    np.testing.assert_allclose(trained(embedding_ops.embedding_lookup), table - [[0.0], [1.0], [0.0], [0.0]])


def test_a_difference_of_lists_that_are_known_is_none_of_them():
    """The gradient of a product takes one, of its axes: 3 * 4, 2 * 4, 2 * 3 in each row."""
    values = np.array([[2.0, 3.0, 4.0], [1.0, 5.0, 0.0]], np.float32)
    x = tf.constant(values)
    for axis, expected in ((1, [[12, 8, 6], [0, 0, 5]]), (None, [[0, 0, 0], [0, 0, 120]])):
        result = compile_(lambda x, axis=axis: tf.gradients(tf.reduce_prod(x, axis), x)[0], x)
        np.testing.assert_allclose(run(result)[0], expected)
    fed = placeholder(1, dtype=tf.int32)
    result = compile_(lambda x, y: v1.setdiff1d(x, y)[0], tf.constant([1, 2]), fed)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"fully defined at compile time(.|\n)*\(ListDiff\)"):
        run(result, {fed: [2]})


def test_a_shape_of_more_elements_than_a_number_counts(graph):
    """TensorFlow aborts the process where it looks at such a shape without care."""
    with context.eager_mode():
        configure(1)
        function = tf.function(lambda: tf.fill([1 << 31, 1 << 31, 4], 1.0), jit_compile=True)
        with tf.device(IPU), pytest.raises(tf.errors.InvalidArgumentError):
            function()


def _calls_in_each_other(number):
    def innermost(x):
        return x + 1.0

    function = innermost
    for _ in range(number):
        function = tf.function(lambda x, called=function: called(x) * 1.0 + 1.0)
    return tf.function(function, jit_compile=True)


def test_more_calls_in_each_other_than_xla_s_compiler_takes(graph):
    """One more ended the process, as it does in stock TensorFlow. A loop in between begins anew."""
    with context.eager_mode():
        configure(1)
        with tf.device(IPU):
            assert float(_calls_in_each_other(nested_calls.DEEPEST)(tf.constant(1.0))) == 2.0 + nested_calls.DEEPEST
            with pytest.raises(tf.errors.InvalidArgumentError, match="stand in each other") as caught:
                _calls_in_each_other(nested_calls.DEEPEST + 1)(tf.constant(1.0))
            assert f"made at {__file__}" in str(caught.value) and "in <lambda>" in str(caught.value)


def test_a_reason_survives_several_ipus_and_results():
    """TensorFlow drops an error that it takes for the consequence of another one."""
    configure(2)

    def model(x):
        with scopes.ipu_shard(0):
            first = tf.reshape(x, tf.cast(x, tf.int32))
        with scopes.ipu_shard(1):
            return first * 2.0, x * 3.0, x + 1.0

    with context.eager_mode():
        function = tf.function(lambda x: compile_(model, x), autograph=False)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be a compile-time constant"):
            function(tf.constant([1.0, 1.0]))


def test_string_inputs_are_refused():
    result = compile_(lambda x: tf.strings.length(x), tf.constant(["abc"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="StringLength"):
        run(result)
    result = compile_(lambda x: tf.expand_dims(x, 0), tf.constant(["cat"]))  # of numbers it would be known
    advice = (
        r"ExpandDims\), made at .*test_compile_errors.py:\d+, in <lambda>\n(?s:.*)was given texts: make them numbers"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=advice):
        run(result)


def test_an_unfed_placeholder():
    result = compile_(lambda x: x + 1.0, placeholder(2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for placeholder"):
        run(result)


def test_a_shape_that_depends_on_values():
    result = compile_(lambda x: tf.reshape(x, tf.cast(x[:1], tf.int32)), tf.constant([2.0, 3.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a compile-time constant"):
        run(result)


def test_tensors_of_another_graph_are_refused():
    with tf.Graph().as_default():
        foreign = placeholder(2)
    with pytest.raises(ValueError, match="^The compiled function uses Placeholder:0, which is from another graph"):
        compile_(lambda x: x + foreign, tf.constant([1.0, 1.0]))


def test_tensors_of_the_inside_are_not_for_the_outside():
    kept = []

    def model(x):
        kept.append(x * 2.0)
        return kept[0] + 1.0

    compile_(model, tf.constant(1.0))
    with pytest.raises(ValueError, match="is not an element of this graph"):
        run(tf.add(kept[0], 1.0))


def test_an_exception_in_the_function_leaves_no_trace(graph):
    def fail(x):
        with scopes.ipu_shard(1), v1.variable_scope("inner"):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        compile_(fail, tf.constant(1.0))
    assert v1.get_default_graph() is graph
    (result,) = compile_(lambda x: x + v1.get_variable("w", initializer=1.0), tf.constant(1.0))
    assert [variable.name for variable in v1.global_variables()] == ["w:0"]
    assert result.op.device == IPU and run(result) == 2.0


def test_an_error_in_one_run_leaves_the_next_alone():
    def checked(value):
        if value < 0:
            raise KeyError("negative")
        return value

    def model(x):
        counter = v1.get_variable("counter", initializer=0.0)
        with scopes.outside_compilation_scope():
            x = v1.py_func(checked, [x * 2.0], tf.float32)
            x.set_shape([])
        with tf.control_dependencies([counter.assign_add(x).op]):
            return counter.read_value()

    fed = placeholder()
    (result,) = compile_(model, fed)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(result, {fed: 1.0}) == 2.0
        with pytest.raises(tf.errors.UnknownError, match="KeyError: 'negative'"):
            session.run(result, {fed: -1.0})
        assert session.run(result, {fed: 2.0}) == 6.0


def test_uninitialised_variables():
    result = compile_(lambda x: x + v1.get_variable("weights", initializer=1.0), tf.constant(1.0))
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="weights"):
            session.run(result)
        session.run(v1.global_variables_initializer())
        assert session.run(result) == [2.0]


def test_a_device_that_is_not_there_is_refused_in_functions():
    """TensorFlow 2 would put the op elsewhere."""
    configure(1)

    @tf.function(autograph=False)
    def function(x):
        with tf.device("/device:IPU:7"):
            return ipu_compiler.compile(lambda x: x + 1.0, [x])

    with context.eager_mode(), pytest.raises(tf.errors.InvalidArgumentError, match="made for /device:IPU:7"):
        function(tf.constant(1.0))


def test_programs_in_programs_are_refused():
    def inner(x):
        return ipu_compiler.compile(lambda y: y * 3.0, [x])

    with pytest.raises(ValueError, match="^XLA compiled computations cannot be nested"):
        compile_(inner, tf.constant(2.0))
    with pytest.raises(ValueError, match="^XLA compiled computations cannot be nested"):
        compile_(lambda x: tf.cond(x > 0.0, lambda: inner(x), lambda: [x]), tf.constant(2.0))
