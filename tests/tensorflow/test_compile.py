"""`ipu_compiler.compile`: what it takes and gives back, when what is decided, and what goes wrong how."""

import collections
import threading

import numpy as np
import pytest
import tensorflow as tf
from harness import check_session, configure
from tensorflow.python.eager import context
from tf_ipu_shim.ipu import config, ipu_compiler, scopes

from tf_ipu_shim import plugin

v1 = tf.compat.v1
IPU = "/device:IPU:0"
Pair = collections.namedtuple("Pair", ["first", "second"])


@pytest.fixture(autouse=True)
def graph(own_environment):
    with tf.Graph().as_default() as made:
        yield made
    config.reset_ipu_configuration()


def placeholder(*shape, dtype=tf.float32):
    return v1.placeholder(dtype, shape)


def compile_(model, *inputs):
    with scopes.ipu_scope(IPU):
        return ipu_compiler.compile(model, list(inputs))


def run(fetched, feed=None):
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return session.run(fetched, feed)


# Forms of results


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: [t], lambda t: (t,)])
def test_one_tensor_becomes_a_list(wrap):
    result = compile_(lambda x: wrap(x + 1.0), tf.constant([1.0]))
    assert isinstance(result, list) and len(result) == 1
    assert run(result)[0].tolist() == [2.0]


def test_several_tensors():
    result = compile_(lambda x: (x + 1.0, x * 2.0), tf.constant([3.0]))
    assert isinstance(result, list)
    assert [value.tolist() for value in run(result)] == [[4.0], [6.0]]


def test_tensors_then_operations_gives_the_tensors():
    def model(x):
        counter = v1.get_variable("counter", initializer=0.0)
        return x + 1.0, counter.assign_add(x[0]).op

    result = compile_(model, tf.constant([3.0]))
    assert isinstance(result, list) and len(result) == 1
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(2):
            assert session.run(result)[0].tolist() == [4.0]
        assert session.run(v1.global_variables()) == [6.0]


@pytest.mark.parametrize("several", [False, True])
def test_operations_only_give_an_operation(several):
    def model(x):
        first = v1.get_variable("first", initializer=1.0).assign(x).op
        second = v1.get_variable("second", initializer=1.0).assign(x * 2.0).op
        return [first, second] if several else first

    result = compile_(model, tf.constant(5.0))
    assert isinstance(result, tf.Operation)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(result) is None
        assert session.run(v1.global_variables()) == [5.0, 10.0 if several else 1.0]


@pytest.mark.parametrize("returned", [None, [], ()])
def test_nothing_returned_gives_an_operation(returned):
    result = compile_(lambda x: returned, tf.constant(1.0))
    assert isinstance(result, tf.Operation)
    run(result)


def test_nested_results_keep_their_structure():
    def model(x):
        return {"a": x + 1.0, "b": [x * 2.0, (x * 3.0,)], "c": Pair(x, -x)}

    result = compile_(model, tf.constant(2.0))
    assert run(result) == {"a": 3.0, "b": [4.0, (6.0,)], "c": Pair(2.0, -2.0)}
    assert isinstance(result["c"], Pair)


def test_a_named_tuple_of_tensors_is_a_flat_sequence():
    """Samplers of TensorFlow return such: tensors of several types."""
    result = compile_(lambda x: Pair(x * 3.0, tf.cast(x, tf.int64)), tf.constant(2.0))
    assert type(result) is list
    assert run(result) == [6.0, 2] and result[1].dtype == tf.int64


def test_results_that_are_no_tensors_are_converted():
    result = compile_(lambda x: [x, 2.5, np.array([1, 2], np.int32)], tf.constant(2.0))
    values = run(result)
    assert values[0] == 2.0 and values[1] == 2.5 and values[2].tolist() == [1, 2]
    assert [tensor.dtype for tensor in result] == [tf.float32, tf.float32, tf.int32]


def test_static_shapes_are_kept():
    first, second = compile_(lambda x: (tf.transpose(x), tf.reduce_sum(x, axis=0)), placeholder(3, 4))
    assert first.shape == [4, 3] and second.shape == [4]


def test_arguments_keep_their_structure():
    def model(pair, table):
        return pair.first + pair.second * table["scale"][0]

    arguments = [Pair(tf.constant(1.0), tf.constant(2.0)), {"scale": [tf.constant(10.0)]}]
    assert run(compile_(model, *arguments)) == [21.0]


def test_arguments_that_are_no_tensors():
    assert run(compile_(lambda x, y: x * y, 3.0, np.float32(4.0))) == [12.0]


@pytest.mark.parametrize("inputs", [None, [], ()])
def test_no_inputs(inputs):
    with scopes.ipu_scope(IPU):
        result = ipu_compiler.compile(lambda: tf.random.stateless_uniform([2], [1, 2]) * 0.0, inputs)
    assert run(result)[0].tolist() == [0.0, 0.0]


def test_operations_before_tensors_are_refused():
    with pytest.raises(ValueError, match="zero or more Tensor values followed by zero or more Operations"):
        compile_(lambda x: [tf.no_op(), x], tf.constant(1.0))


def test_operations_in_nested_results_are_refused():
    with pytest.raises(ValueError, match="does not support an Operation as a return value in a non-flat"):
        compile_(lambda x: {"a": x, "b": tf.no_op()}, tf.constant(1.0))


def test_results_that_cannot_be_converted_are_refused():
    with pytest.raises(ValueError, match="must all either be Operations or convertible to Tensors"):
        compile_(lambda x: [x, object()], tf.constant(1.0))


def test_estimator_specs_are_refused():
    spec = type("EstimatorSpec", (), {})()
    with pytest.raises(ValueError, match="computation output contains an EstimatorSpec or is one"):
        compile_(lambda x: spec, tf.constant(1.0))


@pytest.mark.parametrize("inputs", [5, tf.zeros, {"x": 1.0}])
def test_inputs_must_be_a_list(inputs):
    with pytest.raises(TypeError, match="^inputs must be a list, not"), scopes.ipu_scope(IPU):
        ipu_compiler.compile(lambda x: x, inputs)


def test_a_wrong_number_of_inputs():
    with pytest.raises(TypeError, match="argument"):
        compile_(lambda x, y: x, tf.constant(1.0))


# Placement


def test_results_are_on_the_ipu():
    (result,) = compile_(lambda x: x + 1.0, placeholder(2))
    assert result.device == result.op.device == IPU


def test_without_an_ipu_device_compiling_is_refused():
    with pytest.raises(Exception, match="however it was not placed on an IPU device"):
        ipu_compiler.compile(lambda x: x + 1.0, [placeholder(2)])
    with pytest.raises(Exception, match="however it was not placed on an IPU device"), tf.device("/device:CPU:0"):
        ipu_compiler.compile(lambda x: x + 1.0, [placeholder(2)])


def test_an_ipu_scope_inside_is_enough():
    def model(x):
        with scopes.ipu_scope(IPU):
            return x + 1.0

    assert run(ipu_compiler.compile(model, [tf.constant(1.0)])) == [2.0]


@pytest.mark.parametrize("device", ["/device:IPU:1", "/job:localhost/task:0/device:IPU:1"])
def test_the_second_device(device):
    configure([1, 2])

    def model(x):
        with scopes.ipu_shard(1):
            return x + 1.0

    with scopes.ipu_scope(device):
        (result,) = ipu_compiler.compile(model, [tf.constant(1.0)])
    assert tf.DeviceSpec.from_string(result.device).device_index == 1
    library = plugin.load()
    before = library.programs_run(0), library.programs_run(1)
    assert run(result) == 2.0
    assert (library.programs_run(0), library.programs_run(1)) == (before[0], before[1] + 1)


def test_variables_made_inside_are_resource_variables():
    def model(x):
        return x * v1.get_variable("w", [2], initializer=v1.ones_initializer())

    result = compile_(model, tf.constant([3.0, 4.0]))
    (variable,) = v1.global_variables()
    assert variable.handle.op.device == IPU
    assert variable.graph is v1.get_default_graph()
    assert run(result)[0].tolist() == [3.0, 4.0]


def test_variables_made_outside_on_the_cpu_are_refused_or_read():
    """As TensorFlow has it: a resource is used where it lives."""
    with tf.device("/device:CPU:0"):
        variable = v1.get_variable("w", initializer=[2.0], use_resource=True)
        value = variable.read_value()
    assert run(compile_(lambda w: w * 3.0, value))[0].tolist() == [6.0]


@pytest.mark.parametrize("use", [lambda w: w.assign([2.0]), lambda w: tf.identity(w.op.outputs[0])])
def test_reference_variables_are_refused(use):
    variable = v1.get_variable("w", initializer=[1.0], use_resource=False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="no supported kernel for IPU devices is available"):
        compile_(lambda: use(variable))


# When it is decided


def test_configured_after_the_graph_is_built_and_finalised(graph):
    def model(x):
        with scopes.ipu_shard(0):
            x = x + 1.0
        with scopes.ipu_shard(1):
            return x * 2.0

    result = compile_(model, tf.constant(1.0))
    graph.finalize()
    configure(2)
    assert run_session_of(graph, result) == [4.0]


def run_session_of(graph, result):
    with v1.Session(graph=graph) as session:
        return session.run(result)


def test_one_graph_under_two_configurations(graph):
    def model(x):
        with scopes.ipu_shard(1):
            return x * 2.0

    result = compile_(model, tf.constant([1.0, 2.0]))
    configure(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"placed on shard 1, but the device has 1 IPU \(shards"):
        run_session_of(graph, result)
    config.reset_ipu_configuration()
    configure(4)
    assert run_session_of(graph, result)[0].tolist() == [2.0, 4.0]
    config.reset_ipu_configuration()
    configure(2)
    assert run_session_of(graph, result)[0].tolist() == [2.0, 4.0]


def test_a_session_outlives_a_configuration():
    result = compile_(lambda x: x * 2.0, tf.constant([1.0]))
    configure(1)
    library = plugin.load()
    with v1.Session() as session:
        session.run(result)
        lowered = library.programs_lowered(0)
        session.run(result)
        assert library.programs_lowered(0) == lowered
        config.reset_ipu_configuration()
        configure(2)
        assert session.run(result)[0].tolist() == [2.0]
        assert library.programs_lowered(0) == lowered + 1


def test_each_shape_is_compiled_once():
    configure(1)
    fed = v1.placeholder(tf.float32, [None])
    result = compile_(lambda x: x * 2.0, fed)
    library = plugin.load()
    before = library.programs_lowered(0)
    with v1.Session() as session:
        for size in (2, 3, 2, 3):
            assert session.run(result, {fed: np.ones(size)})[0].tolist() == [2.0] * size
    assert library.programs_lowered(0) - before == 2


def test_several_sessions_and_threads_run_one_program(graph):
    configure(2)
    fed = placeholder(8, 8)

    def model(x):
        with scopes.ipu_shard(0):
            x = tf.matmul(x, x)
        with scopes.ipu_shard(1):
            return tf.reduce_sum(x)

    (result,) = compile_(model, fed)
    graph.finalize()
    found = {}

    def work(session, number):
        for _ in range(10):
            found[number] = session.run(result, {fed: np.full([8, 8], number, np.float32)})

    sessions = [v1.Session(graph=graph) for _ in range(2)]
    threads = [threading.Thread(target=work, args=(sessions[number % 2], number)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for session in sessions:
        session.close()
    assert found == {number: 8.0**3 * number**2 for number in range(6)}


def test_sessions_do_not_share_variables(graph):
    def model(x):
        counter = v1.get_variable("counter", initializer=0.0)
        with tf.control_dependencies([counter.assign_add(x).op]):
            return counter.read_value()

    (result,) = compile_(model, tf.constant(1.0))
    start = v1.global_variables_initializer()
    with v1.Session() as first, v1.Session() as second:
        first.run(start)
        second.run(start)
        assert [first.run(result) for _ in range(3)] == [1.0, 2.0, 3.0]
        assert second.run(result) == 1.0


def test_a_meta_graph_keeps_programs(graph):
    configure(2)

    def model(x):
        with scopes.ipu_shard(1):
            weight = v1.get_variable("w", initializer=[2.0, 3.0])
            return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * weight), (0, x), maximum_iterations=2)[1]

    fed = v1.placeholder(tf.float32, [2], name="fed")
    (result,) = compile_(model, fed)
    tf.identity(result, name="result")
    exported = v1.train.export_meta_graph(graph=graph)
    exported = type(exported).FromString(exported.SerializeToString())
    with tf.Graph().as_default():
        v1.train.import_meta_graph(exported)
        assert run("result:0", {"fed:0": [1.0, 1.0]}).tolist() == [4.0, 9.0]


# What goes wrong


def test_an_op_that_xla_cannot_compile_is_named():
    def model(x):
        return tf.strings.to_number(tf.strings.as_string(x))  # this line

    result = compile_(model, tf.constant([1.0]))
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(result)
    message = str(caught.value)
    assert "AsString" in message and "StringToNumber" in message
    assert f"test_compile.py:{model.__code__.co_firstlineno + 1}" in message
    assert "outside_compilation_scope" in message


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


def test_an_unfed_placeholder():
    result = compile_(lambda x: x + 1.0, placeholder(2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for placeholder"):
        run(result)


def test_a_shape_that_depends_on_values():
    result = compile_(lambda x: tf.reshape(x, tf.cast(x[:1], tf.int32)), tf.constant([2.0, 3.0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be a compile-time constant"):
        run(result)


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.int32, tf.int64, tf.uint8, tf.bool])
def test_dtypes(dtype):
    values = np.array([[1, 0], [1, 1]]).astype(dtype.as_numpy_dtype)
    fed = placeholder(2, 2, dtype=dtype)
    (result,) = compile_(lambda x: tf.reverse(tf.concat([x, x], axis=0), [0]), fed)
    given = run(result, {fed: values})
    np.testing.assert_array_equal(given, np.concatenate([values, values])[::-1])
    assert given.dtype == values.dtype


def test_tensors_of_the_graph_around():
    """A function may use what is outside of it, without being given it."""
    outside = placeholder(2)
    with tf.device("/device:CPU:0"):
        doubled = outside * 2.0
    result = compile_(lambda x: x + doubled, tf.constant([1.0, 1.0]))
    assert run(result, {outside: [3.0, 4.0]})[0].tolist() == [7.0, 9.0]


def test_tensors_of_another_graph_are_refused():
    with tf.Graph().as_default():
        foreign = placeholder(2)
    with pytest.raises((ValueError, TypeError), match="graph"):
        compile_(lambda x: x + foreign, tf.constant([1.0, 1.0]))


def test_tensors_of_the_inside_are_not_for_the_outside():
    kept = []

    def model(x):
        kept.append(x * 2.0)
        return kept[0] + 1.0

    compile_(model, tf.constant(1.0))
    with pytest.raises((ValueError, TypeError), match="graph|out of scope"):
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
        with pytest.raises((tf.errors.UnknownError, tf.errors.InvalidArgumentError), match="negative"):
            session.run(result, {fed: -1.0})
        assert session.run(result, {fed: 2.0}) == 6.0


def test_uninitialised_variables():
    result = compile_(lambda x: x + v1.get_variable("weights", initializer=1.0), tf.constant(1.0))
    with v1.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="weights"):
            session.run(result)
        session.run(v1.global_variables_initializer())
        assert session.run(result) == [2.0]


# Eagerly, and what programs are made of


def test_compile_called_eagerly():
    with context.eager_mode():
        with tf.device(IPU):
            variable = tf.Variable(1.0)
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(lambda x: x + variable.assign_add(1.0), [tf.constant(2.0)])
        assert result.numpy() == 4.0 and variable.numpy() == 2.0


def test_side_effects_in_a_function_happen_in_order():
    """As in any `tf.function`, whether or not something returned depends on them."""
    with context.eager_mode():
        with tf.device(IPU):
            variable = tf.Variable(1.0)

        def model(x):
            variable.assign_add(x)
            value = variable * 10.0
            variable.assign(value + 1.0)
            return value

        function = tf.function(lambda x: compile_(model, x), autograph=False)
        assert function(tf.constant(2.0))[0].numpy() == 30.0 and variable.numpy() == 31.0
        assert function(tf.constant(2.0))[0].numpy() == 330.0 and variable.numpy() == 331.0


def test_a_device_that_is_not_there_is_refused_in_functions():
    """TensorFlow 2 would put the op elsewhere."""
    configure(1)

    @tf.function(autograph=False)
    def function(x):
        with scopes.ipu_scope("/device:IPU:7"):
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


def test_two_programs_in_a_row():
    (first,) = compile_(lambda x: x + 1.0, tf.constant(1.0))
    (second,) = compile_(lambda x: x * 10.0, first)
    assert first.op.name != second.op.name
    assert run(second) == 20.0


def test_collections_reach_the_graph_around():
    def model(x):
        layer = v1.get_variable("w", [2], regularizer=lambda w: 0.5 * tf.reduce_sum(w * w))
        return x + layer

    compile_(model, tf.constant([1.0, 2.0]))
    assert [variable.name for variable in v1.trainable_variables()] == ["w:0"]


def test_variables_are_shared_by_scope_reuse():
    def model(x):
        with v1.variable_scope("shared", reuse=v1.AUTO_REUSE):
            return x * v1.get_variable("w", initializer=2.0)

    results = [compile_(model, tf.constant(float(number)))[0] for number in (1, 2)]
    assert len(v1.global_variables()) == 1
    assert run(results) == [2.0, 4.0]


@pytest.mark.parametrize("name", ["aa_first_by_name", "zz_last_by_name"])
def test_a_value_read_before_a_write_stays(name):
    """The weight is read in a first program of IPU 0, used in a second one too, and written there."""
    configure(2)

    def model(x):
        weight = v1.get_variable("w", initializer=[[2.0, 3.0], [4.0, 5.0]])
        read = weight.read_value()
        with scopes.ipu_shard(0):
            first = tf.matmul(x, read)
        with scopes.ipu_shard(1):
            second = first * 10.0
        with scopes.ipu_shard(0):
            return tf.matmul(second, read, transpose_b=True), weight.assign_add(second, name=name).op

    result = compile_(model, tf.eye(2))
    weight = np.array([[2.0, 3.0], [4.0, 5.0]])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            np.testing.assert_allclose(session.run(result)[0], 10 * weight @ weight.T)
            weight = 11 * weight


def test_an_optimizer_of_a_sharded_model():
    configure(2)
    inputs = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)

    def model(parts, x):
        with parts.shard(0):
            hidden = tf.nn.relu(tf.matmul(x, parts.variable("first", np.linspace(-1, 1, 20).reshape(4, 5))))
        with parts.shard(1):
            out = tf.matmul(hidden, parts.variable("second", np.linspace(-1, 1, 10).reshape(5, 2)))
            loss = tf.reduce_mean(tf.square(out - 1.0))
        return loss, v1.train.AdamOptimizer(0.05).minimize(loss)

    made = check_session(model, [inputs], steps=3)
    assert made.steps[2][0] < made.steps[0][0]
