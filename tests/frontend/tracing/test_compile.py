"""`ipu_compiler.compile`: what it takes and gives back, and where things are."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from compiling import IPU, compile_, placeholder, run
from harness import configure
from tensorflow.python.framework import function
from tf_ipu_shim.ipu import ipu_compiler, loops, scopes

from tf_ipu_shim import plugin
from tf_ipu_shim.runtime import devices

v1 = tf.compat.v1
pytestmark = pytest.mark.usefixtures("graph")
Pair = collections.namedtuple("Pair", ["first", "second"])


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
        return [first, second] if several else first  # a program leaves out no write

    result = compile_(model, tf.constant(5.0))
    assert isinstance(result, tf.Operation)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(result) is None
        assert session.run(v1.global_variables()) == [5.0, 10.0]


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


def test_results_are_on_the_ipu():
    (result,) = compile_(lambda x: x + 1.0, placeholder(2))
    assert result.device == result.op.device == IPU


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


def test_a_device_named_by_a_graph_beside_configured_ones():
    with tf.device("/device:IPU:1"):
        weight = v1.get_variable("weight", initializer=np.float32(3.0), use_resource=True)
        product = weight * 2.0
    configure(2)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(product) == 6.0
        assert [device.num_ipus for device in devices.active()] == [2, 1]
    with tf.Graph().as_default(), v1.Session() as session, tf.device("/device:IPU:2"):
        late = tf.constant(1.0) + 1.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot assign a device"):
            session.run(late)


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


@pytest.mark.parametrize("nested", [False, True])
def test_variables_of_the_host_that_a_loop_reads_stay_there(nested):
    """Each run is given what they hold when it begins. The loop needs the gradient as well as the value."""
    with tf.device("/device:CPU:0"):
        variable = v1.get_variable("w", initializer=[2.0], use_resource=True)
        doubled = variable.assign(variable * 2.0)

    def body(total):
        loss = tf.reduce_sum(variable * variable * 3.0)
        return total + loss + tf.gradients(loss, variable)[0][0]

    def model(x):
        return loops.repeat(2, (lambda y: loops.repeat(3, body, [y])) if nested else body, [x])

    result = compile_(model, tf.constant(1.0))
    with v1.Session(config=v1.ConfigProto(allow_soft_placement=False)) as session:
        session.run(v1.global_variables_initializer())
        for value in (2.0, 4.0):
            assert session.run(result) == [1.0 + (6 if nested else 2) * (3 * value**2 + 6 * value)]
            session.run(doubled)


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


def test_the_device_may_be_named_in_a_loop_alone():
    def body(total, x):
        with scopes.ipu_scope("/device:IPU:0"):
            return total + x, x * 2.0

    result = ipu_compiler.compile(lambda x: loops.repeat(3, body, [0.0, x]), [tf.constant(1.0)])
    assert run(result) == [7.0, 8.0]


def test_tensorflows_own_compile_is_for_the_ipu_under_a_scope():
    def total():
        return tf.reduce_sum(tf.ones([3]))

    stock = v1.xla.experimental.compile
    with tf.Graph().as_default() as graph:
        with scopes.ipu_scope(IPU):
            (ours,) = stock(total)
            with tf.device("/device:CPU:0"):
                stock(total)
        stock(total)
        assert [op.type for op in graph.get_operations()].count("IpuProgram") == 1
        assert run(ours) == 3.0


def test_functions_that_tensorflow_1_calls_by_ops_of_their_name():
    @function.Defun(tf.float32, tf.float32, func_name="sum_and_product")
    def both(x, y):
        return x + y, x * y

    def model(x):
        total, product = both(x, x + 1.0)
        return both(product, total)[1], total

    result = compile_(model, tf.constant([2.0, 3.0]))
    np.testing.assert_array_equal(run(result), [[6 * 5, 12 * 7], [5, 7]])


@pytest.mark.parametrize("execution_mode", ["xla", "kernels"])
def test_a_write_after_such_a_call_comes_after_a_read_in_it(own_environment, monkeypatch, execution_mode):
    """The read takes long to come; the write has nothing else to wait for."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)

    @function.Defun(tf.float32, tf.resource, func_name="read_late")
    def read_late(x, handle):
        added = tf.raw_ops.AssignAddVariableOp(resource=handle, value=100.0)
        matrix = product = tf.ones([400, 400]) * x
        for _ in range(10):
            product = tf.matmul(product, matrix) * 0.001
        with tf.control_dependencies([product, added]):
            return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

    with tf.Graph().as_default():
        with tf.device(IPU):
            variable = v1.get_variable("variable", initializer=1.0, use_resource=True)

        def model():
            before = read_late(0.5, variable.handle)
            with tf.control_dependencies([before]):
                with tf.control_dependencies([variable.assign(7.0)]):
                    return before, variable.read_value()

        with scopes.ipu_scope(IPU):
            results = ipu_compiler.compile(model)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(results) == [101.0, 7.0]
            assert session.run(results) == [107.0, 7.0]


def test_a_function_of_such_functions_that_xla_cannot_compile():
    """`ctc_loss` has loops of them; in TensorFlow 2.15 with ops that change tensors in place, which XLA has not."""

    def loss(x):
        return tf.nn.ctc_loss([[1, 2], [3, 3]], x, [2, 1], [6, 5], blank_index=0)

    logits = np.random.RandomState(0).rand(6, 2, 5).astype(np.float32)
    result = compile_(loss, tf.constant(logits))
    if tf.__version__.startswith("2.15"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="No registered 'Inplace(Add|Update)' OpKernel"):
            run(result)
        return
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        expected = session.run(loss(tf.constant(logits)))
    np.testing.assert_allclose(run(result)[0], expected, rtol=1e-5)
