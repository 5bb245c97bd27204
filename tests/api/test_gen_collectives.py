"""Generated wrappers of collectives and of feeds, in programs with replicas and shards."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import ipu_compiler, loops, scopes
from tf_ipu_shim.ipu.ops import cross_replica_ops, functional_ops, within_replica_ops
from tf_ipu_shim.poplar.ops import (
    gen_functional_ops,
    gen_grad_util_ops,
    gen_pop_datastream_ops,
    gen_popops_ops,
    gen_poputil_ops,
)

from tf_ipu_shim import errors, ipu

pytestmark = [pytest.mark.one_version, pytest.mark.usefixtures("graph")]

v1 = tf.compat.v1
REPLICAS = 4


def collect(x):
    gathered = gen_popops_ops.ipu_all_gather([x, 2 * x], REPLICAS)
    scattered = gen_popops_ops.ipu_reduce_scatter([x, -x], "COLLECTIVE_OP_ADD", REPLICAS)
    return {
        "index": gen_poputil_ops.replication_index(),
        "factor": gen_poputil_ops.ipu_replication_factor(),
        "normalised": gen_poputil_ops.ipu_replication_normalise(x),
        "assumed": gen_poputil_ops.ipu_assume_equal_across_replicas(x),
        "sum": gen_popops_ops.ipu_cross_replica_sum(x),
        "pairs": gen_popops_ops.ipu_cross_replica_sum(x, 2),
        "mean": gen_popops_ops.ipu_cross_replica_mean(x),
        "gathered": gathered[0],
        "gathered_twice": gathered[1],
        "scattered": scattered[0],
        "scattered_less": scattered[1],
        "exchanged": gen_popops_ops.ipu_all_to_all(x, 0, 0, REPLICAS),
    }


def test_between_replicas_through_raw_feeds():
    configure(REPLICAS)
    values = np.arange(16, dtype=np.float32).reshape(REPLICAS, 4)
    types, shapes = [tf.float32], [tf.TensorShape([4])]
    structure = []

    def step():
        (x,) = gen_pop_datastream_ops.pop_datastream_infeed_dequeue("in", types, shapes)
        made = collect(x)
        structure.append(made)
        flat = tf.nest.flatten(made)
        return gen_pop_datastream_ops.pop_datastream_outfeed_enqueue(flat, [t.shape for t in flat], "out")

    with tf.device("cpu"):
        dataset = tf.data.Dataset.from_tensor_slices(values).repeat()
        started = gen_pop_datastream_ops.ipu_create_dataset_iterator(dataset._variant_tensor, "in", types, shapes)
    with scopes.ipu_scope(IPU):
        program = ipu_compiler.compile(lambda: loops.repeat(1, step), [])
    flat = tf.nest.flatten(structure[0])
    dequeued = gen_pop_datastream_ops.pop_datastream_outfeed_dequeue(
        [t.dtype for t in flat], [t.shape for t in flat], "out"
    )
    with v1.Session() as session:
        session.run(started)
        session.run(program)
        fetched = [array[0] for array in session.run(dequeued)]
        session.run(gen_pop_datastream_ops.ipu_delete_outfeed("out"))
        session.run(gen_pop_datastream_ops.ipu_delete_dataset_iterator("in"))
    result = tf.nest.pack_sequence_as(structure[0], fetched)
    total = values.sum(0)
    expected = {
        "index": np.arange(REPLICAS),
        "factor": [REPLICAS] * REPLICAS,
        "normalised": values / REPLICAS,
        "assumed": values,
        "sum": [total] * REPLICAS,
        "pairs": values.reshape(2, 2, 4).sum(1).repeat(2, 0),
        "mean": [total / REPLICAS] * REPLICAS,
        "gathered": [values] * REPLICAS,
        "gathered_twice": [2 * values] * REPLICAS,
        "scattered": total.reshape(REPLICAS, 1),
        "scattered_less": -total.reshape(REPLICAS, 1),
        "exchanged": values.T,
    }
    for name, value in expected.items():
        np.testing.assert_allclose(result[name], value, err_msg=name)


def test_one_tensor_instead_of_a_list():
    """Up to SDK 2.4 the ops have one input."""
    configure(REPLICAS)
    values = np.arange(8, dtype=np.float32)

    def step(x):
        x += tf.cast(gen_poputil_ops.replication_index(), tf.float32)
        matrix = gen_popops_ops.ipu_all_gather(tf.reshape(x, [2, 4]), replication_factor=REPLICAS)
        part = gen_popops_ops.ipu_reduce_scatter(x, op="COLLECTIVE_OP_ADD", replication_factor=REPLICAS)
        assert (matrix.shape, part.shape) == ([REPLICAS, 2, 4], [2])
        return matrix, gen_popops_ops.ipu_all_gather(part, REPLICAS)

    with scopes.ipu_scope(IPU):
        program = ipu_compiler.compile(step, [tf.constant(values)])
    with v1.Session() as session:
        matrix, parts = session.run(program)
    replicas = values + np.arange(REPLICAS)[:, np.newaxis]
    np.testing.assert_array_equal(matrix, replicas.reshape(REPLICAS, 2, 4))
    np.testing.assert_array_equal(parts, replicas.sum(0).reshape(REPLICAS, 2))


def test_within_a_replica():
    configure(2)

    def shards():
        with scopes.ipu_shard(0):
            first = tf.constant([1.0, 2.0, 3.0, 4.0])
        with scopes.ipu_shard(1):
            second = tf.constant([10.0, 20.0, 30.0, 40.0])
        pair = [first, second]
        return [
            *gen_popops_ops.ipu_all_gather_within_replica(pair),
            *gen_popops_ops.ipu_all_reduce_within_replica(pair, "COLLECTIVE_OP_MAX"),
            *gen_popops_ops.ipu_reduce_scatter_within_replica(pair, "COLLECTIVE_OP_ADD"),
        ]

    with scopes.ipu_scope(IPU):
        program = ipu_compiler.compile(shards, [])
    with v1.Session() as session:
        gathered, same, most, too, low, high = session.run(program)
    np.testing.assert_array_equal(gathered, [1, 2, 3, 4, 10, 20, 30, 40])
    np.testing.assert_array_equal(same, gathered)
    np.testing.assert_array_equal(most, [10, 20, 30, 40])
    np.testing.assert_array_equal(too, most)
    np.testing.assert_array_equal(low, [11, 22])
    np.testing.assert_array_equal(high, [33, 44])


@pytest.mark.parametrize(
    "second, message",
    [
        (None, "should not contain any duplicate entries"),
        ([[1, 2]], "Expected tensors to all be of the same type"),
        ([1.0, 2.0], "Expected tensors to all be of the same rank"),
        ([[1.0, 2.0, 3.0]], "Expecting tensor dimensions to all have the same size"),
    ],
)
def test_shards_that_do_not_fit_together(second, message):
    first = tf.constant([[1.0, 2.0]])
    shards = [first, first if second is None else tf.constant(second)]
    with pytest.raises(ValueError, match=message):
        within_replica_ops.all_gather(shards)
    assert within_replica_ops.all_gather([first, tf.constant([[1.0], [2.0]])[:1]], axis=-1)[0].shape == [1, 3]
    reductions = [within_replica_ops.all_reduce, within_replica_ops.reduce_scatter]
    for reduce in reductions if "dimensions" not in message else []:
        with pytest.raises(ValueError, match=message):
            reduce(shards, "COLLECTIVE_OP_ADD")


def test_a_name_in_the_place_of_the_group_size():
    assert cross_replica_ops.cross_replica_sum(tf.constant(1.0), "total").op.name == "total"


def test_marked_values_are_handed_on():
    first, second = gen_grad_util_ops.capture_upstream_gradients_fwd_no_op([tf.constant(1.0), tf.constant([2.0])], "a")
    with v1.Session() as session:
        assert session.run(first) == 1 and session.run(second).tolist() == [2]


def test_checkpoints_keep_values():
    with v1.Session() as session:
        assert session.run(gen_functional_ops.recomputation_checkpoint(tf.constant([1.0, 2.0]))).tolist() == [1, 2]


def test_what_graphcores_compiler_alone_knows_is_refused_by_name():
    with pytest.raises(errors.MissingAttributeError, match="gen_poputil_ops.execution_counter exists in SDK"):
        gen_poputil_ops.execution_counter  # noqa: B018
    with pytest.raises(errors.MissingAttributeError, match="gen_functional_ops.pipeline_stage exists in SDK"):
        gen_functional_ops.pipeline_stage  # noqa: B018
    with pytest.raises(errors.MissingModuleError, match="gen_host_compute_ops exists in SDK"):
        importlib.import_module("tensorflow.compiler.plugin.poplar.ops.gen_host_compute_ops")


def test_modules_of_gradients_are_there_under_all_their_names():
    assert ipu.functional_ops_grad is ipu.ops.functional_ops_grad
    assert importlib.import_module("tensorflow.python.ipu.ops.functional_ops_grad") is ipu.functional_ops_grad
    assert ipu.functional_ops_grad.functional_ops is functional_ops
