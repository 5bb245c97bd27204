"""`IPUConfig.selection_order`: on which IPUs of a device shards, their variables and their exchanges are."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, scopes
from tf_ipu_shim.ipu.config import IPUConfig, SelectionOrder
from tf_ipu_shim.ipu.ops import pipelining_ops

import tf_ipu_shim
from tf_ipu_shim.runtime import devices

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
# Shard s has a variable of s + 1 floats, so that each IPU's variables tell whose they are.
SHARDS = 4


def configured(ipus, order=SelectionOrder.AUTO):
    config = IPUConfig()
    config.auto_select_ipus = ipus
    config.selection_order = order
    config.configure_ipu_system()
    devices.load_library().reset_counters(0)


def stage(shard, value):
    weights = v1.get_variable(f"w{shard}", [shard + 1], initializer=v1.ones_initializer(), use_resource=True)
    return value * 2.0 + tf.reduce_sum(weights)


def chain(value):
    """(((x * 2 + 1) * 2 + 2) * 2 + 3) * 2 + 4 = 16 x + 26, a term a shard."""
    for shard in range(SHARDS):
        with scopes.ipu_shard(shard):
            value = stage(shard, value)
    return value


def run_chain():
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [3])
        with scopes.ipu_scope(IPU):
            (result,) = ipu_compiler.compile(chain, [fed])
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(result, {fed: [0, 1, 2]}), [26, 42, 58])
        return tf_ipu_shim.memory_report()


def used(report):
    """The IPU of each shard by its variable, and the exchanges in the order of the chain."""
    (device,) = report.devices
    (plan,) = device.programs
    homes = {name: ipu for ipu, name in plan.variables}
    return [homes[f"w{shard}"] for shard in range(SHARDS)], set(device.exchange), set(plan.exchanges)


@pytest.mark.parametrize(
    ("order", "places"),
    [
        (SelectionOrder.AUTO, [0, 1, 2, 3]),
        (SelectionOrder.ZIGZAG, [0, 1, 2, 3]),
        (SelectionOrder.SNAKE, [0, 1, 3, 2]),
        (SelectionOrder.HOOF, [0, 2, 3, 1]),
    ],
)
def test_shards_sit_on_the_ipus_the_order_says(order, places):
    configured(4, order)
    homes, measured, modelled = used(run_chain())
    assert homes == places
    assert measured == modelled == set(zip(places, places[1:]))


def test_the_report_names_physical_ipus():
    configured(4, SelectionOrder.HOOF)
    report = run_chain()
    # Poplar device 24 of the default system is made of IPUs 5, 7, 4 and 6.
    assert [ipu.physical for ipu in report.devices[0].ipus] == [5, 7, 4, 6]
    text = report.to_text()
    assert "IPUs 0 to 3 here are the system's IPUs 5, 7, 4, 6." in text
    assert "are on IPUs 0, 2, 3, 1." in text


def test_ipus_that_no_shard_needs_stay_free():
    configured(8, SelectionOrder.HOOF)
    homes, measured, _ = used(run_chain())
    assert homes == [0, 2, 3, 1]
    assert measured == {(0, 2), (2, 3), (3, 1)}


def test_each_replica_has_its_own_ipus_in_that_order():
    configured(8, SelectionOrder.SNAKE)
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32)))
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def program():
            return loops.repeat(2, lambda value: outfeed.enqueue(chain(value)), infeed_queue=infeed)

        with scopes.ipu_scope(IPU):
            run = ipu_compiler.compile(program)
        taken = outfeed.dequeue()
        session.run([infeed.initializer, v1.global_variables_initializer()])
        session.run(run)
        np.testing.assert_array_equal(session.run(taken), [[26, 42], [58, 74]])
        report = tf_ipu_shim.memory_report()
    exchanged = {(0, 1), (1, 3), (3, 2)}
    assert set(report.devices[0].exchange) == exchanged | {(a + 4, b + 4) for a, b in exchanged}
    assert report.devices[0].programs[-1].shard_ipus == ((0, 1, 3, 2), (4, 5, 7, 6))


@pytest.mark.parametrize(
    ("mapping", "order", "places"),
    [
        (None, SelectionOrder.AUTO, [0, 1, 3, 2]),
        ([3, 2, 1, 0], SelectionOrder.AUTO, [0, 1, 2, 3]),
        (None, SelectionOrder.ZIGZAG, [0, 1, 2, 3]),
        (None, SelectionOrder.HOOF, [0, 2, 3, 1]),
    ],
)
def test_a_pipeline_walks_the_ladder_like_a_snake(mapping, order, places):
    configured(4, order)
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.float32(1)).repeat())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        stages = [lambda value, shard=shard: stage(shard, value) for shard in range(SHARDS)]

        def program():
            return pipelining_ops.pipeline(
                stages, 8, infeed_queue=infeed, outfeed_queue=outfeed, device_mapping=mapping
            )

        with scopes.ipu_scope(IPU):
            run = ipu_compiler.compile(program)
        taken = outfeed.dequeue()
        session.run([infeed.initializer, v1.global_variables_initializer()])
        session.run(run)
        np.testing.assert_array_equal(np.ravel(session.run(taken)), [42.0] * 8)
        device = tf_ipu_shim.memory_report().devices[0]
    stages_on = [places[shard] for shard in mapping or range(SHARDS)]
    assert set(device.exchange) >= set(zip(stages_on, stages_on[1:]))
    homes = {name: ipu for plan in device.programs for ipu, name in plan.variables}
    assert [homes[f"w{shard}"] for shard in range(SHARDS)] == stages_on
