"""The IPU as a TensorFlow device: plain ops on it, its memory, and what is counted on the way to it and from it."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, scopes

from tf_ipu_shim import plugin

v1 = tf.compat.v1
IPU = "/device:IPU:0"


@pytest.fixture(autouse=True)
def library(ipus):
    """The plugin; there are two TensorFlow devices, the first with two IPUs."""
    ipus([2, 1])
    return plugin.load()


def run_session(build, feed=None):
    """Builds on the IPU in a graph of its own, runs it once in a session."""
    with tf.Graph().as_default():
        fed = v1.placeholder(feed.dtype, feed.shape) if feed is not None else None
        with tf.device(IPU):
            built = build(fed) if feed is not None else build()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            return session.run(built, {fed: feed} if feed is not None else None)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int32", "int64", "uint8", "complex64"])
@pytest.mark.parametrize("how", ["eager", "function", "session"])
def test_plain_ops(kind, how):
    values = np.arange(1, 7).reshape(2, 3).astype(kind)

    def compute(x):
        return tf.concat([x + x, tf.reverse(x, [1]) * x], axis=0)

    if how == "session":
        result = run_session(compute, values)
    else:
        with tf.device(IPU):
            made = (tf.function(compute) if how == "function" else compute)(tf.constant(values))
        assert made.device.endswith("device:IPU:0")
        result = made.numpy()
    np.testing.assert_array_equal(result, np.concatenate([values + values, values[:, ::-1] * values]))
    assert result.dtype == values.dtype


def test_comparisons_and_logic():
    with tf.device(IPU):
        x = tf.constant([1, 5, 3])
        both = tf.logical_and(x > 1, tf.logical_not(tf.equal(x, 3)))
        assert both.device.endswith("IPU:0") and both.dtype == tf.bool
        assert both.numpy().tolist() == [False, True, False]
        assert tf.where(both).numpy().tolist() == [[1]]


@pytest.mark.parametrize("how", ["eager", "session"])
def test_strings(how):
    def join():
        return tf.strings.join([tf.constant(["a", "b"]), tf.constant(["x" * 100, "ä"])], separator="-")

    with tf.device(IPU):
        result = run_session(join) if how == "session" else join().numpy()
    assert [text.decode() for text in result] == ["a-" + "x" * 100, "b-ä"]


@pytest.mark.parametrize("kind", [tf.int32, tf.int64])
def test_shapes_asked_for_eagerly(kind):
    with tf.device("/device:IPU:0"):
        value = tf.ones([2, 3])
        shape = tf.shape(value, out_type=kind)
        image, kernel = tf.random.uniform([1, 8, 8, 2]), tf.random.uniform([3, 3, 2, 1])
        dilated = tf.nn.depthwise_conv2d(image, kernel, [1, 1, 1, 1], "SAME", dilations=[2, 2])
    assert shape.dtype == kind
    assert shape.numpy().tolist() == [2, 3]
    assert "IPU" in shape.device
    with tf.device("/device:CPU:0"):
        expected = tf.nn.depthwise_conv2d(image, kernel, [1, 1, 1, 1], "SAME", dilations=[2, 2])
    np.testing.assert_allclose(dilated, expected, rtol=1e-5)


def test_tensor_lists():
    @tf.function
    def squares(n):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2])
        for i in tf.range(n):
            array = array.write(i, tf.fill([2], tf.cast(i * i, tf.float32)))
        return array.stack()

    with tf.device(IPU):
        assert squares(tf.constant(3)).numpy().tolist() == [[0, 0], [1, 1], [4, 4]]
        handle = tf.raw_ops.TensorListFromTensor(tensor=tf.eye(2), element_shape=[2])
        assert tf.raw_ops.TensorListLength(input_handle=handle).numpy() == 2


def test_resource_variables():
    with tf.device(IPU):
        variable = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        assert variable.device.endswith("device:IPU:0")
        variable.assign_add(tf.ones([2, 2]))
        variable.scatter_nd_update([[0, 1]], [10.0])
        assert tf.gather(variable, [0]).numpy().tolist() == [[2.0, 10.0]]
    assert variable.numpy().tolist() == [[2.0, 10.0], [4.0, 5.0]]


def test_loops_and_branches_in_functions():
    @tf.function
    def collatz(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    with tf.device(IPU):
        assert collatz(tf.constant(27)).numpy() == 111


def test_two_devices(library):
    """What goes from one TensorFlow device to another passes through the host."""
    value = np.arange(10.0, dtype=np.float32)
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, value.shape)
        with tf.device(IPU):
            first = fed * 2.0
        with tf.device("/device:IPU:1"):
            second = first + 1.0
        with v1.Session() as session:
            library.reset_counters(0)
            library.reset_counters(1)
            np.testing.assert_array_equal(session.run(second, {fed: value}), value * 2 + 1)
    for ordinal in range(2):
        for way in (library.host_to_device(ordinal), library.device_to_host(ordinal)):
            assert (way.bytes, way.transfers) == (value.nbytes, 1)


def test_devices_of_eager_tensors():
    with tf.device(IPU):
        first = tf.constant([1.0, 2.0]) * 2.0
    with tf.device("/device:IPU:1"):
        second = tf.identity(first) + 1.0
    with tf.device("/device:CPU:0"):
        third = second + 1.0
    places = [tensor.device.split("device:")[-1] for tensor in (first, second, third)]
    assert places == ["IPU:0", "IPU:1", "CPU:0"]
    assert third.numpy().tolist() == [4.0, 6.0]


def test_eager_transfers(library):
    value = np.arange(1000.0, dtype=np.float32)
    for ordinal in range(2):
        library.reset_counters(ordinal)
    before = library.live_bytes(0, 0), library.live_bytes(1, 0)
    with tf.device(IPU):
        first = tf.constant(value)
    with tf.device("/device:IPU:1"):
        second = tf.identity(first)
    np.testing.assert_array_equal(second.numpy(), value)
    for way in (library.host_to_device(0), library.device_to_host(0), library.host_to_device(1)):
        assert (way.bytes, way.transfers) == (value.nbytes, 1)
    assert library.live_bytes(0, 0) - before[0] == library.live_bytes(1, 0) - before[1] == value.nbytes
    del first, second
    assert (library.live_bytes(0, 0), library.live_bytes(1, 0)) == before


@pytest.mark.parametrize("kind", ["float32", "float64", "int32", "int64", "bool", "complex128"])
def test_host_transfers_count_bytes(library, kind):
    value = np.ones([3, 5], kind)
    library.reset_counters(0)
    np.testing.assert_array_equal(run_session(tf.identity, value), value)
    into, out_of = library.host_to_device(0), library.device_to_host(0)
    assert (into.bytes, into.transfers) == (out_of.bytes, out_of.transfers) == (value.nbytes, 1)


def test_eager_transfers_count_bytes(library):
    value = np.arange(1000, dtype=np.float32)
    library.reset_counters(0)
    before = library.live_bytes(0, 0)
    with tf.device(IPU):
        there = tf.constant(value)
    assert library.host_to_device(0).bytes == library.live_bytes(0, 0) - before == value.nbytes
    np.testing.assert_array_equal(there.numpy(), value)
    assert library.device_to_host(0).bytes == value.nbytes


def test_live_bytes_return(library):
    before = library.live_bytes(0, 0)
    with tf.device(IPU):
        shape = tf.constant([100, 10])
        with_shape = library.live_bytes(0, 0)
        kept = tf.fill(shape, tf.constant(1.5, tf.float64))
        size = np.zeros([100, 10]).nbytes
        # The number itself, and a copy of the shape, may be kept: eight bytes each.
        assert library.live_bytes(0, 0) - with_shape in (size, size + 8, size + 16)
        assert library.peak_bytes(0, 0) >= with_shape + size
    del kept, shape
    assert library.live_bytes(0, 0) - before <= 8


def test_variables_are_freed(library):
    before = library.live_bytes(0, 0)
    with tf.device(IPU):
        variable = tf.Variable(tf.zeros([1000]))
    assert library.live_bytes(0, 0) - before == np.zeros(1000, np.float32).nbytes
    del variable
    assert library.live_bytes(0, 0) == before


def test_a_session_frees_what_it_held(library):
    before = library.live_bytes(0, 0)
    with tf.Graph().as_default(), scopes.ipu_scope(IPU):
        variable = v1.get_variable("v", shape=[50, 20], initializer=v1.zeros_initializer())
        with v1.Session() as session:
            session.run(variable.initializer)
            assert library.live_bytes(0, 0) - before >= np.zeros([50, 20], np.float32).nbytes
    del session
    assert library.live_bytes(0, 0) == before


def test_transfers_of_a_compiled_program(library):
    left, right = np.ones([4, 8], np.float32), np.ones([8, 2], np.float32)
    with tf.Graph().as_default():
        fed = [v1.placeholder(tf.float32, value.shape) for value in (left, right)]
        with scopes.ipu_scope(IPU):
            (product,) = ipu_compiler.compile(tf.matmul, fed)
        with v1.Session() as session:
            for _ in range(3):
                library.reset_counters(0)
                result = session.run(product, dict(zip(fed, (left, right))))
                into, out_of = library.host_to_device(0), library.device_to_host(0)
                assert (into.bytes, into.transfers) == (left.nbytes + right.nbytes, 2)
                assert (out_of.bytes, out_of.transfers) == (result.nbytes, 1)
                assert library.programs_run(0) == 1


def test_exchanges_of_a_compiled_program(library):
    value = np.ones([16, 4], np.float32)

    def model(x):
        with scopes.ipu_shard(0):
            hidden = x * 2.0  # used twice on IPU 1: goes there once
        with scopes.ipu_shard(1):
            both = tf.matmul(hidden, hidden, transpose_a=True) + tf.reduce_sum(hidden)
        with scopes.ipu_shard(0):
            return both - 1.0

    library.reset_counters(0)
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, value.shape)
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(model, [fed])
        with v1.Session() as session:
            given = session.run(result, {fed: value})
    np.testing.assert_allclose(given, np.full([4, 4], 16 * 4.0 + 16 * 4 * 2.0 - 1.0))
    there, back = library.exchange(0, 0, 1), library.exchange(0, 1, 0)
    assert (there.bytes, there.transfers) == (value.nbytes, 1)
    assert (back.bytes, back.transfers) == (given.nbytes, 1)


def test_shards_hold_their_own_memory(library):
    weights = np.ones([128, 64], np.float32)

    def model(x):
        with scopes.ipu_shard(1):
            return tf.matmul(x, v1.get_variable("w", initializer=weights))

    with tf.Graph().as_default(), scopes.ipu_scope(IPU):
        (result,) = ipu_compiler.compile(model, [tf.ones([2, 128])])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            before = library.live_bytes(0, 1)
            np.testing.assert_allclose(session.run(result), np.full([2, 64], 128.0))
            assert library.live_bytes(0, 1) - before == weights.nbytes


def test_reference_variables_are_refused():
    with tf.Graph().as_default():
        with tf.device(IPU):
            variable = v1.get_variable("v", initializer=tf.zeros([2]), use_resource=False)
        with v1.Session() as session:
            with pytest.raises(
                tf.errors.InvalidArgumentError, match="no supported kernel for IPU devices is available"
            ):
                session.run(variable.initializer)


def test_a_device_that_is_not_there():
    with tf.Graph().as_default(), scopes.ipu_scope("/device:IPU:7"):
        one = tf.constant(1.0) + 1.0
        with v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="IPU:7"):
            session.run(one)


def test_a_live_context_gets_devices(ipus):
    with tf.device("/device:CPU:0"):
        assert (tf.constant(1) + 1).numpy() == 2
    ipus([1, 1, 1])
    names = [device.name for device in tf.config.list_logical_devices("IPU")]
    assert "/device:IPU:2" in names
    with tf.device("/device:IPU:2"):
        assert (tf.constant([1]) + 1).device.endswith("IPU:2")


def test_devices_of_an_earlier_configuration_are_not_listed(ipus):
    """A context keeps them; what the next test counts must not depend on the one before it."""
    for counts in ([1, 1, 1], [2], [1, 1]):
        ipus(counts)
        names = [device.name for device in tf.config.list_logical_devices("IPU")]
        assert names == [f"/device:IPU:{ordinal}" for ordinal in range(len(counts))]
        for name in names:
            with tf.device(name):
                assert (tf.constant([1]) + 1).device.endswith(name)


@pytest.mark.parametrize("how", ["eager", "session"])
def test_an_error_leaves_the_device_usable(library, how):
    def fail(x):
        return tf.reshape(x, tf.constant([7]) + tf.cast(x[0], tf.int32))

    value = np.zeros(4, np.float32)
    before = library.live_bytes(0, 0)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="4 values"), tf.device(IPU):
            run_session(fail, value) if how == "session" else fail(tf.constant(value))
    with tf.device(IPU):
        assert (tf.constant(value) + 1.0).numpy().tolist() == [1, 1, 1, 1]
    assert library.live_bytes(0, 0) - before <= 4


def test_many_threads():
    def work(seed, found):
        with tf.device(IPU):
            matrix = tf.constant(np.full([20, 20], seed, np.float32))
            for _ in range(20):
                found[seed] = tf.reduce_sum(tf.matmul(matrix, matrix)).numpy()

    found = {}
    threads = [threading.Thread(target=work, args=(seed, found)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {seed: 20.0**3 * seed * seed for seed in range(4)}


@pytest.mark.parametrize("order", ["variable", "both"])
def test_variables_made_outside_the_scope(order):
    step = tf.Variable([1.0, 2.0])
    assert "CPU" in step.device
    with tf.device(IPU):
        own = tf.Variable([10.0, 10.0])

    @tf.function(jit_compile=True)
    def program(x):
        step.assign_add(x)
        return step * own if order == "both" else step + 0.0

    for run in (1, 2, 3):
        with tf.device(IPU):
            result = program(tf.constant([1.0, 1.0]))
        np.testing.assert_array_equal(step.numpy(), [1 + run, 2 + run])
        np.testing.assert_array_equal(result, step.numpy() * (10 if order == "both" else 1))
    step.assign([5.0, 5.0])
    with tf.device(IPU):
        program(tf.constant([1.0, 1.0]))
    np.testing.assert_array_equal(step.numpy(), [6, 6])
