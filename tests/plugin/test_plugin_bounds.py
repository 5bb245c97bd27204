"""Numbers and attributes that make no sense are errors of the ops and calls that get them, and end no process."""

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim import plugin

TOO_MANY = 2**40


@pytest.fixture
def library():
    return plugin.load()


@pytest.mark.parametrize("number", [128, -1, 10**6, 2**40])
@pytest.mark.parametrize(
    "call",
    [
        lambda library, number: library.live_bytes(number, 0),
        lambda library, number: library.peak_bytes(number, 0),
        lambda library, number: library.host_to_device(number),
        lambda library, number: library.device_to_host(number),
        lambda library, number: library.exchange(number, 0, 0),
        lambda library, number: library.programs_lowered(number),
        lambda library, number: library.programs_compiled(number),
        lambda library, number: library.programs_run(number),
        lambda library, number: library.reset_counters(number),
        lambda library, number: library.set_seed(number, 1),
        lambda library, number: library.set_float_checks(number, 1),
        lambda library, number: library.set_rounding(number, 1),
        lambda library, number: library.set_plain_op_events(number, b""),
    ],
)
def test_devices_that_there_are_none_of(library, call, number):
    with pytest.raises(ValueError, match=f"There is no /device:IPU:{number}"):
        call(library, number)


@pytest.mark.parametrize("number", [256, -1, 10**6])
def test_chips_that_there_are_none_of(library, number):
    for call in (
        lambda: library.live_bytes(0, number),
        lambda: library.peak_bytes(0, number),
        lambda: library.exchange(0, number, 0),
        lambda: library.exchange(0, 0, number),
    ):
        with pytest.raises(ValueError, match=f"/device:IPU:0 has no IPU {number}"):
            call()


def one():
    return [tf.constant([1.0])]


@pytest.mark.parametrize(
    "call",
    [
        lambda ops: ops.pop_datastream_outfeed_dequeue(output_types=[tf.float32] * 2, output_shapes=[], feed_id="x"),
        lambda ops: ops.pop_datastream_outfeed_enqueue(
            one(), output_shapes=[], feed_id="x", replica=0, replicas=TOO_MANY
        ),
        lambda ops: ops.pop_datastream_outfeed_enqueue(one(), output_shapes=[], feed_id="x", replica=3, replicas=2),
        lambda ops: ops.ipu_outfeed_enqueue_chunk(1, [tf.constant(1.0)], feed_id="x"),
        lambda ops: ops.ipu_outfeed_enqueue_chunk(1, [tf.zeros([0, 2])], feed_id="x"),
        lambda ops: ops.ipu_outfeed_enqueue_chunk(-1, [tf.zeros([1, 2])], feed_id="x"),
        lambda ops: ops.ipu_outfeed_enqueue_chunk([1, 1], [tf.zeros([1, 2])], feed_id="x"),
        lambda ops: ops.ipu_chunk_begin([0, 1], 4, [], output_types=[], output_shapes=[], chunk=2),
        lambda ops: ops.ipu_chunk_begin(0, [4, 4], [], output_types=[], output_shapes=[], chunk=2),
        lambda ops: ops.ipu_chunk_begin(4, 4, [], output_types=[], output_shapes=[], chunk=2),
        lambda ops: ops.ipu_chunk_begin(-1, 4, [], output_types=[], output_shapes=[], chunk=2),
        lambda ops: ops.ipu_chunk_begin(0, TOO_MANY, [], output_types=[], output_shapes=[], chunk=TOO_MANY),
        lambda ops: ops.ipu_chunk_begin(0, 4, [], output_types=[tf.int32] * 2, output_shapes=[], chunk=2),
        lambda ops: ops.ipu_loop_total([[0, 0]], [4]),
        lambda ops: ops.ipu_loop_total([0], [[4, 4]]),
        lambda ops: ops.ipu_chunk_begin(
            0, 2**21, [], output_types=[tf.int8], output_shapes=[[2**31, 2**31]], chunk=2**20
        ),
        lambda ops: ops.ipu_infeed_dequeue(
            [], output_types=[tf.int8], output_shapes=[[]], shared_name="none", replica=0, replicas=TOO_MANY
        ),
        lambda ops: ops.ipu_infeed_dequeue(
            [], output_types=[tf.int8], output_shapes=[[]], shared_name="none", chip=256
        ),
        lambda ops: ops.ipu_random_seed(ordinal=10**6),
        lambda ops: ops.ipu_random_seed(ordinal=0, replica=256),
    ],
)
def test_attributes_that_make_no_sense(library, call):
    with tf.device("/device:CPU:0"), pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        call(library.ops)


def test_a_gather_of_the_most_axes(library):
    with tf.device("/device:CPU:0"):
        np.testing.assert_array_equal(
            library.ops.ipu_replica_gather(tf.ones([2]), replication_factor=1), np.ones([1, 2])
        )
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
            library.ops.ipu_replica_gather(tf.zeros([1] * 254), replication_factor=1)


@pytest.mark.parametrize("kind", [tf.float64, tf.string])
def test_elements_of_another_type_than_is_taken(library, kind):
    """TensorFlow aborts the process where an op's result is of another type than it says."""
    dataset = tf.data.Dataset.from_tensors(tf.cast(1, tf.float64) if kind is tf.float64 else "text")
    iterator = iter(dataset)
    with tf.device("/device:CPU:0"), pytest.raises(tf.errors.InvalidArgumentError, match="takes elements of .*float"):
        library.ops.ipu_infeed_dequeue([iterator._iterator_resource], output_types=[tf.float32], output_shapes=[[]])
