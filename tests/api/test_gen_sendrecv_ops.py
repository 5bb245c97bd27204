"""`gen_sendrecv_ops`: tensors that programs hand to the host's part of the same step."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
import tensorflow.compat.v1 as v1
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, loops
from tf_ipu_shim.ipu.config import IPUConfig
from tf_ipu_shim.ipu.ops import cross_replica_ops
from tf_ipu_shim.ipu.scopes import ipu_scope, outside_compilation_scope
from tf_ipu_shim.poplar.ops import gen_sendrecv_ops

pytestmark = pytest.mark.one_version

IPU, CPU = "/device:IPU:0", "/device:CPU:0"


@pytest.fixture(autouse=True)
def one_ipu():
    configure(1)


def configure(ipus):
    config = IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()


def send(x, name="x"):
    return gen_sendrecv_ops.ipu_send_to_host(x, name, IPU, 0, CPU)


def receive(dtype=tf.float32, name="x"):
    with tf.device(CPU):
        return gen_sendrecv_ops.ipu_recv_at_host(dtype, name, IPU, 0, CPU)


def compiled(function, *inputs):
    with ipu_scope(IPU):
        return ipu_compiler.compile(function, inputs=list(inputs))


def test_arguments():
    assert list(inspect.signature(gen_sendrecv_ops.ipu_send_to_host).parameters) == (
        "tensor tensor_name send_device send_device_incarnation recv_device name".split()
    )
    assert list(inspect.signature(gen_sendrecv_ops.ipu_recv_at_host).parameters) == (
        "T tensor_name send_device send_device_incarnation recv_device device_ordinal name".split()
    )


@pytest.mark.parametrize(
    ("dtype", "execution_mode"), [(np.float16, "xla"), (np.float32, "kernels"), (np.int32, "auto")]
)
def test_what_is_sent_between_products_and_what_is_returned(monkeypatch, dtype, execution_mode):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(dtype, [2, 2])

        def squares(x):
            for step in range(2):
                x = tf.matmul(x, x)
                send(x, f"square;{step}%")
            return x + 1

        (result,) = compiled(squares, x)
        received = [receive(dtype, f"square;{step}%") for step in range(2)]
        value = np.array([[1, 2], [0, 1]], dtype)
        for factor in (1, 2):  # the channel can be used again
            first, second = session.run([result, received], {x: value * factor})
            square = (value * factor) @ (value * factor)
            np.testing.assert_array_equal(second[0], square)
            np.testing.assert_array_equal(second[1], square @ square)
            np.testing.assert_array_equal(first, square @ square + 1)
            assert second[0].dtype == dtype


def test_what_was_not_received_is_gone():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [])
        sent, received = compiled(send, x), receive()
        assert session.run(sent, {x: 1.0}) is None
        assert session.run([sent, received], {x: 2.0}) == [None, 2.0]


def test_the_values_of_a_loop_come_in_order():
    with tf.Graph().as_default(), v1.Session() as session:

        def net(x):
            def body(x):
                with tf.control_dependencies([send(x)]):
                    return x + 1

            return loops.repeat(3, body, [x])

        (result,) = compiled(net, tf.constant(5.0))
        received = []
        for _ in range(3):
            with tf.control_dependencies(received[-1:]):
                received.append(receive())
        assert session.run([result, received]) == [8.0, [5.0, 6.0, 7.0]]


def test_nobody_sends(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_COLLECTIVE_TIMEOUT", "0.05")
    with tf.Graph().as_default(), v1.Session() as session:
        with pytest.raises(tf.errors.DeadlineExceededError, match="the tensor nothing was not sent within 0.05 s"):
            session.run(receive(name="nothing"))


def test_another_type():
    with tf.Graph().as_default(), v1.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="was sent as int32 and is received as float"):
            session.run([compiled(send, tf.constant(1)), receive()])


def test_the_sender_fails():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, None)
        sent = compiled(lambda x: send(tf.matmul(x, x)), x)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run([sent, receive()], {x: np.ones([2, 3])})


def test_refused_eagerly():
    with pytest.raises(RuntimeError, match="ipu_send_to_host was called eagerly.*IPUOutfeedQueue"):
        send(tf.constant(1.0))
    with pytest.raises(RuntimeError, match="ipu_recv_at_host was called eagerly"):
        receive()


def test_refused_in_replicas():
    configure(2)
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(1.0)
        total = compiled(lambda x: send(cross_replica_ops.cross_replica_sum(x)), x)
        with pytest.raises(tf.errors.UnimplementedError, match="program of 2 replicas, each of which.*IPUOutfeedQueue"):
            session.run(total)


def test_refused_with_parts_on_the_host():
    def net(x):
        with outside_compilation_scope():
            y = tf.sqrt(x)
        return send(y + x)

    with tf.Graph().as_default(), v1.Session() as session:
        with pytest.raises(tf.errors.UnimplementedError, match="in a program that runs Sqrt on the host"):
            session.run(compiled(net, tf.constant(4.0)))


def test_with_an_infeed():
    with tf.Graph().as_default(), v1.Session() as session:
        queue = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).repeat())

        def net():
            def body(total, x):
                return total + x

            return send(loops.repeat(3, body, [tf.constant(0.0)], queue))

        sent = compiled(net)
        session.run(queue.initializer)
        assert session.run([sent, receive()]) == [None, 6.0]
