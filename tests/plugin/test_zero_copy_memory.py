"""What the host gives an IPU stays in the host's memory: neither side sees what the other does to it afterwards."""

import gc

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, scopes

from tf_ipu_shim import plugin

v1 = tf.compat.v1
CPU, IPU = "/device:CPU:0", "/device:IPU:0"
VALUE = np.random.default_rng(0).standard_normal([64, 128]).astype(np.float32)


@pytest.fixture(autouse=True)
def library(ipus):
    """The plugin, for one IPU, on which nothing is left that an earlier test may still let go of."""
    ipus(1)
    gc.collect()
    return plugin.load()


def test_a_tensor_on_an_ipu_counts_once(library):
    with tf.device(CPU):
        host = tf.constant(VALUE)
    library.reset_counters(0)
    before = library.live_bytes(0, 0)
    with tf.device(IPU):
        there = tf.identity(host)
    assert library.live_bytes(0, 0) - before == library.peak_bytes(0, 0) - before == VALUE.nbytes
    assert library.host_to_device(0).bytes == VALUE.nbytes
    del host
    np.testing.assert_array_equal(there.numpy(), VALUE)
    del there
    gc.collect()
    assert library.live_bytes(0, 0) == before


def test_neither_side_writes_into_what_both_have():
    """Each op would take its operand's memory for its result, had that no other user."""

    @tf.function(autograph=False)
    def both(x):
        with tf.device(CPU):
            shared = x * 2.0
        with tf.device(IPU):
            ours = tf.nn.relu(tf.negative(shared)) * 3.0
        with tf.device(CPU):
            theirs = tf.exp(tf.nn.relu(shared))
        return ours, theirs

    for _ in range(20):
        ours, theirs = both(tf.constant(VALUE))
        np.testing.assert_allclose(ours, np.maximum(-2.0 * VALUE, 0.0) * 3.0, rtol=1e-6)
        np.testing.assert_allclose(theirs, np.exp(np.maximum(2.0 * VALUE, 0.0)), rtol=1e-5)


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "let go"])
def test_a_variable_that_took_a_hosts_value_is_its_own(kept):
    with tf.device(CPU):
        host = tf.constant(VALUE) + 0.0
    with tf.device(IPU):
        variable = tf.Variable(tf.zeros_like(VALUE))
        variable.assign(host)
    held = host if kept else None
    del host
    with tf.device(IPU):
        variable.assign_add(tf.ones_like(VALUE))
    np.testing.assert_array_equal(variable.numpy(), VALUE + np.float32(1.0))
    if held is not None:
        np.testing.assert_array_equal(held.numpy(), VALUE)


def test_a_part_of_a_tensor_is_copied():
    """TensorFlow's slices of rows are in the memory of the whole."""

    @tf.function(autograph=False)
    def parts(x):
        with tf.device(CPU):
            whole = x * 2.0
            rows = whole[16:48]
        with tf.device(IPU):
            ours = tf.negative(rows)
        with tf.device(CPU), tf.control_dependencies([ours]):
            return ours, tf.identity(whole)

    for _ in range(5):
        ours, whole = parts(tf.constant(VALUE))
        np.testing.assert_array_equal(ours, -2.0 * VALUE[16:48])
        np.testing.assert_array_equal(whole, 2.0 * VALUE)


def test_numpys_memory_is_copied():
    """TensorFlow takes arrays that are aligned as they are, and a script may write to them after the run."""
    raw = np.zeros(VALUE.nbytes + 64, np.uint8)
    at = -raw.ctypes.data % 64
    aligned = raw[at : at + VALUE.nbytes].view(np.float32).reshape(VALUE.shape)
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, VALUE.shape)
        with tf.device(IPU):
            variable = v1.get_variable("variable", VALUE.shape, use_resource=True)
            assigned = variable.assign(fed)
        aligned[:] = VALUE
        session.run(assigned.op, {fed: aligned})
        aligned[:] = 0.0
        np.testing.assert_array_equal(session.run(variable.read_value()), VALUE)


@pytest.mark.parametrize("execution_mode", ["kernels", "xla"])
def test_elements_of_an_infeed_are_left_as_they_are(monkeypatch, execution_mode):
    """One tensor is every element of this dataset, which a program's ops would write into."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = tf.data.Dataset.from_tensors(tf.constant(VALUE)).repeat()
        infeed = ipu_infeed_queue.IPUInfeedQueue(dataset)
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope(IPU):
            run = ipu_compiler.compile(
                lambda: loops.repeat(4, lambda x: outfeed.enqueue(tf.negative(x) * 3.0), [], infeed)
            )
        session.run(infeed.initializer)
        session.run(run)
        found = session.run(outfeed.dequeue())
    np.testing.assert_array_equal(found, np.stack([VALUE * -3.0] * 4))
