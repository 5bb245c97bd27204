"""Replicas against NumPy and against the same training on the CPU."""

import numpy as np
import pytest
import tensorflow as tf
from replicated import START, compiled, configure, model, random, sent, summed_on
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue, scopes
from tf_ipu_shim.ipu.ops import (
    all_to_all_op,
    cross_replica_ops,
    pipelining_ops,
    reduce_scatter_op,
    replication_ops,
    within_replica_ops,
)
from tf_ipu_shim.ipu.ops.pipelining_ops import OptimizerFunctionOutput

from tf_ipu_shim import ipu, memory_report, plugin

v1 = tf.compat.v1

FEATURES = random.rand(48, 4, 5).astype("f")

TARGETS = random.rand(48, 4, 2).astype("f")


@pytest.fixture(autouse=True)
def graph():
    plugin.load().reset_counters(0)
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("ipus", [2, 4])
def test_collectives(ipus):
    def collect(x):
        return {
            "index": replication_ops.replication_index(),
            "sum": cross_replica_ops.cross_replica_sum(x),
            "mean": cross_replica_ops.cross_replica_mean(x),
            "pairs": cross_replica_ops.cross_replica_sum(x, replica_group_size=2),
            "sum of group 0": cross_replica_ops.cross_replica_sum(x, replica_group_size=0),
            "mean of group 0": cross_replica_ops.cross_replica_mean(x, replica_group_size=0),
            "whole": cross_replica_ops.cross_replica_sum(tf.cast(x, tf.int32)),
            "half": cross_replica_ops.cross_replica_sum(tf.cast(x, tf.float16)),
            "gathered": all_to_all_op.all_gather(x, ipus),
            "exchanged": all_to_all_op.all_to_all(x, 0, 0, ipus),
            "assumed": cross_replica_ops.assume_equal_across_replicas(x),
        }

    result, values = sent(collect, ipus)
    total = values.sum(0)
    assert result["index"].tolist() == list(range(ipus))
    for name in ("sum", "sum of group 0"):
        np.testing.assert_allclose(result[name], [total] * ipus)
    for name in ("mean", "mean of group 0"):
        np.testing.assert_allclose(result[name], [total / ipus] * ipus)
    pairs = values.reshape(-1, 2, 4).sum(1).repeat(2, 0)
    np.testing.assert_allclose(result["pairs"], pairs)
    assert result["whole"].dtype == np.int32 and result["whole"].tolist() == [total.tolist()] * ipus
    assert result["half"].dtype == np.float16
    np.testing.assert_allclose(result["half"], [total] * ipus)
    np.testing.assert_allclose(result["gathered"], [values] * ipus)
    parts = values.reshape(ipus, ipus, 4 // ipus)
    np.testing.assert_allclose(result["exchanged"], parts.swapaxes(0, 1).reshape(ipus, 4))
    np.testing.assert_allclose(result["assumed"], values)


def test_a_float16_sum_that_overflows_is_clipped():
    """80,000 is beyond the largest number, 60,000 is not."""

    def collect(x):
        index = tf.cast(replication_ops.replication_index(), tf.float16)
        value = tf.stack([40000.0 + 0 * index, -40000.0 + 0 * index, 40000.0 - 20000.0 * index])
        return {"sum": cross_replica_ops.cross_replica_sum(value)}

    result, _ = sent(collect, 2)
    assert result["sum"].tolist() == [[65504, -65504, 60000]] * 2


@pytest.mark.parametrize("execution_mode", ["kernels", "xla"])
@pytest.mark.parametrize("ipus", [2, 4])
def test_sums_and_what_is_made_of_them_are_each_replicas_own(ipus, execution_mode, monkeypatch):
    """A sum may be in the place of what a replica brings, which ops behind it work on, where nobody else needs that."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)

    def summed(x):
        own = 1.0 + tf.cast(replication_ops.replication_index(), tf.float32)
        brought, kept = 2 * x, 3 * x
        doubled = own * cross_replica_ops.cross_replica_sum(brought)
        return {"only": doubled - 1, "beside": cross_replica_ops.cross_replica_sum(kept) * own + kept, "kept": kept}

    values = np.random.default_rng(5).integers(-99, 99, [ipus, 50_001]).astype("f")
    result, _ = sent(summed, ipus, values)
    total, own = values.sum(0), np.arange(1, ipus + 1)[:, None]
    np.testing.assert_array_equal(result["only"], 2 * total * own - 1)
    np.testing.assert_array_equal(result["beside"], 3 * total * own + 3 * values)
    np.testing.assert_array_equal(result["kept"], 3 * values)


def test_all_to_all_of_matrices():
    values = np.arange(2 * 2 * 6, dtype="f").reshape(2, 2, 6)
    result, _ = sent(lambda x: all_to_all_op.all_to_all(x, 1, 0, 2), 2, values)
    expected = [np.concatenate([one[:, 3 * r : 3 * r + 3] for one in values], 0) for r in range(2)]
    np.testing.assert_allclose(result, expected)


@pytest.mark.parametrize(
    ("op", "reduce"),
    [
        ("COLLECTIVE_OP_ADD", lambda v: v.sum(0)),
        ("COLLECTIVE_OP_MUL", lambda v: v.prod(0)),
        ("COLLECTIVE_OP_MIN", lambda v: v.min(0)),
        ("COLLECTIVE_OP_MAX", lambda v: v.max(0)),
        ("COLLECTIVE_OP_SQUARE_ADD", lambda v: (v * v).sum(0)),
    ],
)
def test_reduce_scatter(op, reduce):
    values = random.rand(2, 5).astype("f")
    result, _ = sent(lambda x: reduce_scatter_op.reduce_scatter(x, 2, op), 2, values)
    expected = np.pad(reduce(values), (0, 1)).reshape(2, 3)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_a_replica_scatters_its_own():
    values = random.rand(2, 4).astype("f")
    result, _ = sent(lambda x: reduce_scatter_op.reduce_scatter(x, 2, "COLLECTIVE_OP_LOCAL"), 2, values)
    np.testing.assert_allclose(result, [values[0, :2], values[1, 2:]])


def test_one_replica_is_alone():
    result, values = sent(
        lambda x: [
            cross_replica_ops.cross_replica_sum(x),
            cross_replica_ops.cross_replica_mean(x),
            all_to_all_op.all_gather(x, 1),
            replication_ops.replication_index(),
        ],
        1,
    )
    np.testing.assert_allclose(result[0], values[0])
    np.testing.assert_allclose(result[1], values[0])
    np.testing.assert_allclose(result[2], values)
    assert result[3] == 0


def test_within_a_replica():
    configure(4)
    values = random.rand(4, 6).astype("f")

    def collect(x):
        shards = []
        for index in range(4):
            with scopes.ipu_shard(index):
                shards.append(x[index] * 1.0)
        return (
            within_replica_ops.all_gather(shards)
            + within_replica_ops.all_reduce(shards, "COLLECTIVE_OP_ADD")
            + within_replica_ops.reduce_scatter(shards, "COLLECTIVE_OP_MAX")
        )

    program = compiled(collect, [tf.constant(values)])
    with v1.Session() as session:
        result = session.run(program)
    np.testing.assert_allclose(result[:4], [values.reshape(-1)] * 4)
    np.testing.assert_allclose(result[4:8], [values.sum(0)] * 4, rtol=1e-6)
    np.testing.assert_allclose(np.stack(result[8:]), np.pad(values.max(0), (0, 2)).reshape(4, 2))


def test_gradients_of_collectives():
    weight = np.float32(3)

    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            scale = tf.cast(replication_ops.replication_index() + 1, tf.float32)
            everyones = all_to_all_op.all_gather(x, 2)
            loss = tf.reduce_sum(cross_replica_ops.cross_replica_sum(x * scale) * weight)
            loss += scale * tf.reduce_sum(everyones[0] * 5.0)
        return tape.gradient(loss, x)

    result, _ = sent(gradients, 2)
    # x_r reaches both replicas' losses, with factor r + 1; x_0 also through the gathers, with factors 1 and 2.
    np.testing.assert_allclose(result[0], np.full(4, 2 * 3 * 1 + 5 * (1 + 2)))
    np.testing.assert_allclose(result[1], np.full(4, 2 * 3 * 2))


def trained_on_cpu(steps, replicas, rate=0.1):
    """Losses [step, replica] and the weight, with gradients averaged over the replicas' batches."""
    weight, losses = START.astype("d"), []
    for step in range(steps):
        gradients, row = [], []
        for replica in range(replicas):
            x, y = FEATURES[step * replicas + replica], TARGETS[step * replicas + replica]
            error = x @ weight - y
            row.append((error**2).mean())
            gradients.append(2 * x.T @ error / error.size)
        losses.append(row)
        weight = weight - rate * np.mean(gradients, 0)
    return np.array(losses), weight


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_training(replicas):
    configure(replicas)
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, TARGETS))
    infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(dataset), ipu_outfeed_queue.IPUOutfeedQueue()

    def step(x, y):
        loss, weight = model(x, y)
        (gradient,) = tf.gradients(loss, [weight])
        gradient = cross_replica_ops.cross_replica_mean(gradient)
        update = v1.train.GradientDescentOptimizer(0.1).apply_gradients([(gradient, weight)])
        with tf.control_dependencies([update]):
            return outfeed.enqueue(loss)

    program = compiled(lambda: ipu.loops.repeat(3, step, [], infeed))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        for _ in range(2):
            session.run(program)
        losses, weight = session.run(dequeued), session.run(v1.trainable_variables()[0])
    expected, expected_weight = trained_on_cpu(6, replicas)
    np.testing.assert_allclose(losses.reshape(6, replicas), expected, rtol=1e-5)
    np.testing.assert_allclose(weight, expected_weight, rtol=1e-5)
    assert plugin.load().programs_lowered(0) == 1
    (device,) = memory_report().devices
    (used,) = device.programs
    assert [plan.ipu for plan in used.ipus] == list(range(replicas))
    assert {plan.always_live_bytes for plan in used.ipus} == {used.ipus[0].always_live_bytes}
    assert all(used.variables[replica, "w"] == START.nbytes for replica in range(replicas))


def test_replicas_without_a_sum_diverge_until_the_host_writes():
    configure(2)
    values = np.array([[1.0], [10.0]], "f")
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(values).repeat())
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

    def step(x):
        total = v1.get_variable("total", [1], initializer=v1.zeros_initializer(), use_resource=True)
        return outfeed.enqueue(total.assign_add(x))

    program = compiled(lambda: ipu.loops.repeat(2, step, [], infeed))
    dequeued = outfeed.dequeue()
    (total,) = v1.global_variables()
    written = total.assign([100.0])
    with v1.Session() as session:
        session.run([total.initializer, infeed.initializer])
        session.run(program)
        assert session.run(dequeued)[..., 0].tolist() == [[1, 10], [2, 20]]
        assert session.run(total) == [2]
        session.run(program)
        assert session.run(dequeued)[..., 0].tolist() == [[3, 30], [4, 40]]
        session.run(written)
        session.run(program)
        assert session.run(dequeued)[..., 0].tolist() == [[101, 110], [102, 120]]


@pytest.mark.parametrize("mode", [pipelining_ops.PipelineSchedule.Grouped, pipelining_ops.PipelineSchedule.Sequential])
def test_replicated_pipelines(mode):
    configure(4)
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, TARGETS))
    infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(dataset), ipu_outfeed_queue.IPUOutfeedQueue()

    def multiply(x, y):
        weight = v1.get_variable("w", START.shape, initializer=v1.constant_initializer(START), use_resource=True)
        return tf.matmul(x, weight), y

    def optimizer(loss):
        class Averaging(v1.train.GradientDescentOptimizer):
            def apply_gradients(self, pairs, *arguments, **keywords):
                pairs = [(cross_replica_ops.cross_replica_mean(gradient) / 4, variable) for gradient, variable in pairs]
                return super().apply_gradients(pairs, *arguments, **keywords)

        return OptimizerFunctionOutput(Averaging(0.1), loss)

    program = compiled(
        lambda: pipelining_ops.pipeline(
            [multiply, lambda x, y: tf.reduce_mean(tf.square(x - y))],
            4,
            repeat_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer,
            pipeline_schedule=mode,
        )
    )
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
        losses, weight = session.run(dequeued), session.run(v1.trainable_variables()[0])
    # Four mini-batches of two replicas before each update are as eight replicas.
    expected, expected_weight = trained_on_cpu(2, 8)
    np.testing.assert_allclose(np.reshape(losses, [2, 8]), expected, rtol=1e-5)
    np.testing.assert_allclose(weight, expected_weight, rtol=1e-5)


def test_random_numbers_differ_and_can_be_repeated():
    configure(2)
    dataset = tf.data.Dataset.from_tensors(np.float32(0)).repeat()
    infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(dataset), ipu_outfeed_queue.IPUOutfeedQueue()
    program = compiled(lambda: ipu.loops.repeat(2, lambda x: outfeed.enqueue(x + tf.random.uniform([3])), [], infeed))
    dequeued = outfeed.dequeue()
    drawn = []
    with v1.Session() as session:
        session.run(infeed.initializer)
        for identical in (False, False, True):
            ipu.utils.reset_ipu_seed(7, experimental_identical_replicas=identical)
            session.run(program)
            drawn.append(session.run(dequeued))
    assert (drawn[0][:, 0] != drawn[0][:, 1]).all()
    np.testing.assert_array_equal(drawn[0], drawn[1])
    np.testing.assert_array_equal(drawn[2][:, 0], drawn[2][:, 1])


def test_the_last_element_of_each_replica():
    configure(2)
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(np.arange(100, dtype=np.int32)))
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue(ipu_outfeed_queue.IPUOutfeedMode.LAST)
    program = compiled(lambda: ipu.loops.repeat(3, lambda x: outfeed.enqueue(x), [], infeed))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(program)
        assert session.run(dequeued).tolist() == [4, 5]


def test_the_end_of_the_data_ends_all_replicas():
    configure(2)
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(5, dtype="f"))
    infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(dataset), ipu_outfeed_queue.IPUOutfeedQueue()

    def step(x):
        return outfeed.enqueue(cross_replica_ops.cross_replica_sum(x))

    program = compiled(lambda: ipu.loops.repeat(2, step, [], infeed))
    dequeued, start = outfeed.dequeue(), infeed.initializer
    with v1.Session() as session:
        session.run(start)
        session.run(program)
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence: the dataset of infeed .*repeat"):
            session.run(program)
        assert session.run(dequeued).tolist() == [[1, 1], [5, 5]]
        session.run(start)
        session.run(program)
        assert session.run(dequeued).tolist() == [[1, 1], [5, 5]]


def test_a_replica_takes_a_power_of_two_of_ipus():
    results, values = sent(summed_on(3), 8, np.arange(8, dtype="f").reshape(2, 4))
    np.testing.assert_array_equal(results, np.tile(32 * values.sum(0), (2, 1)))
    assert [plan.ipu for plan in memory_report().devices[0].programs[-1].ipus] == [0, 1, 2, 4, 5, 6]
