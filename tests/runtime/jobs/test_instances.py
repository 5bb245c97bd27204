"""Replicas of one program that several instances of a job run: collectives in it go over those of all instances."""

import json
import re

import numpy as np
import pytest

from tf_ipu_shim.messages import config_pb2
from tf_ipu_shim.runtime.jobs import instances

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

COLLECTIVES = """
import json
import numpy as np
import popdist, popdist.tensorflow
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
popdist.tensorflow.set_ipu_config(config, ipus_per_replica=1)
config.configure_ipu_system()
here, local, total = popdist.getReplicaIndexOffset(), popdist.getNumLocalReplicas(), popdist.getNumTotalReplicas()
# What each replica of all instances brings; an instance feeds its own.
given = np.random.RandomState(0).randn(3, total, 4, 2).astype("f")
mine = given[:, here : here + local].reshape(3 * local, 4, 2)
strategy = ipu.ipu_strategy.IPUStrategyV1()
ops = ipu.ops
with strategy.scope():
    infeed = iter(tf.data.Dataset.from_tensor_slices(mine))
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    weight = tf.Variable([[1.0, 2.0]])

    @tf.function(jit_compile=True)
    def step(iterator):
        for _ in tf.range(3):
            x = next(iterator)
            found = {
                "index": ops.replication_ops.replication_index(),
                "sum": ops.cross_replica_ops.cross_replica_sum(x),
                "mean": ops.cross_replica_ops.cross_replica_mean(x),
                "pairs": ops.cross_replica_ops.cross_replica_sum(x, replica_group_size=2),
                "half": ops.cross_replica_ops.cross_replica_sum(tf.cast(x, tf.float16)),
                "bfloat16": tf.cast(ops.cross_replica_ops.cross_replica_sum(tf.cast(x, tf.bfloat16)), tf.float32),
                "integers": ops.cross_replica_ops.cross_replica_sum(tf.cast(x * 100.0, tf.int32)),
                "gathered": ops.all_to_all_op.all_gather(x, total),
                "exchanged": ops.all_to_all_op.all_to_all(x, 0, 0, total),
                "scattered": ops.reduce_scatter_op.reduce_scatter(tf.reshape(x, [8]), total),
                "empty": tf.reduce_sum(ops.cross_replica_ops.cross_replica_sum(x[:0])),
            }
            with tf.GradientTape() as tape:
                # The loss of every replica depends on the product of every other.
                loss = tf.reduce_sum(ops.cross_replica_ops.cross_replica_sum(x * weight) ** 2)
            gradient = ops.cross_replica_ops.cross_replica_mean(tape.gradient(loss, weight))
            found["gradient"] = gradient
            weight.assign_sub(0.01 * gradient)
            found["weight"] = weight.read_value()
            outfeed.enqueue(found)

    strategy.run(step, args=[infeed])
values = outfeed.dequeue()
print(json.dumps({name: value.numpy().tolist() for name, value in values.items()}))
"""
MISTAKEN = """
import json
import popdist, popdist.tensorflow
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
popdist.tensorflow.set_ipu_config(config, ipus_per_replica=1)
config.configure_ipu_system()
rank = popdist.getInstanceIndex()
strategy = ipu.ipu_strategy.IPUStrategyV1()
with strategy.scope():

    @tf.function(jit_compile=True)
    def step(x):
        return ipu.ops.cross_replica_ops.cross_replica_sum(x, name="mine")

    try:
        strategy.run(step, args=[tf.ones([2 + rank])])
    except tf.errors.OpError as error:
        print(json.dumps({"error": error.message}))
"""
MODEL = """
import json
import popdist, popdist.tensorflow
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.distributed import popdist_strategy

config = ipu.config.IPUConfig()
popdist.tensorflow.set_ipu_config(config, ipus_per_replica=1)
config.configure_ipu_system()
strategy = popdist_strategy.PopDistStrategy()
with strategy.scope():

    @tf.function
    def reduced(x):
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, x)

    found = {"mean": float(strategy.run(reduced, args=[tf.constant(1.0 + popdist.getInstanceIndex())]))}
    try:
        strategy.run(tf.function(lambda: ipu.ops.cross_replica_ops.cross_replica_sum(tf.constant(1.0))))
    except tf.errors.FailedPreconditionError as error:
        found["error"] = error.message
print(json.dumps(found))
"""
SEPARATE = """
import json
import popdist
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.distributed import popdist_strategy

strategy = popdist_strategy.PopDistStrategy()
total = tf.distribute.ReduceOp.SUM
config = ipu.config.IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()
with strategy.scope(), tf.Graph().as_default():
    part = tf.constant(1.0 + popdist.getInstanceIndex())
    def reduced(x):
        return tf.distribute.get_replica_context().all_reduce(total, x)

    with ipu.scopes.ipu_scope("/device:IPU:0"):
        (inside,) = ipu.ipu_compiler.compile(lambda: strategy.experimental_run_v2(reduced, [part]))
    outside = strategy.reduce(total, part)
    with tf.compat.v1.Session() as session:
        print(json.dumps(dict(zip(("inside", "outside"), map(float, session.run([inside, outside]))))))
"""
ALONE = """
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.experimental.multi_replica_distribution.process_count = 2
config.experimental.multi_replica_distribution.process_index = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategyV1()
with strategy.scope():
    print(float(strategy.run(tf.function(lambda: tf.constant(1.0) + 1.0))))
    try:
        strategy.run(tf.function(lambda: ipu.ops.cross_replica_ops.cross_replica_sum(tf.constant(1.0))))
    except tf.errors.FailedPreconditionError as error:
        print(error.message)
"""


def run_instances(python, interpreter, script, *options):
    ran = python("-m", "tf_ipu_shim.cli", "poprun", *options, interpreter, "-m", "tf_ipu_shim", python.script(script))
    assert ran.returncode == 0, ran.stderr
    return ran


def poprun(python, interpreter, script, *options):
    return results_of(run_instances(python, interpreter, script, *options))


def results_of(ran):
    found = {}
    for line in ran.stdout.splitlines():
        tag, _, text = line.partition("<stdout>:")
        if text.startswith("{"):
            found[int(tag.strip("[]").split(",")[1])] = json.loads(text)
    return [found[rank] for rank in sorted(found)]


def trained(given):
    """The weight after each step, and the gradients, all replicas as one sum."""
    weight, gradients, weights = np.float64([[1, 2]]), [], []
    for batch in given.astype(np.float64):
        # d/dw sum((sum_r x_r * w) ** 2), which the gradient of a sum over replicas counts once for each of them.
        total = batch.sum(0)
        each = [2 * len(batch) * (total * weight * x).sum(0, keepdims=True) for x in batch]
        gradients.append(np.mean(each, axis=0))
        weight = weight - 0.01 * gradients[-1]
        weights.append(weight)
    return np.array(gradients), np.array(weights)


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_collectives_go_over_the_replicas_of_all_instances(python, interpreter, count):
    total, local = 4, 4 // count
    given = np.random.RandomState(0).randn(3, total, 4, 2).astype("f")
    found = poprun(python, interpreter, COLLECTIVES, f"--num-replicas={total}", f"--num-instances={count}")
    assert len(found) == count
    # With one replica an outfeed gives [steps, ...], with several [steps, replicas, ...].
    by_replica = {
        name: np.concatenate([np.reshape(one[name], [3, local, *np.shape(one[name])[2 if local > 1 else 1 :]])
                              for one in found], axis=1)
        for name in found[0]
    }  # fmt: skip
    sums = given.sum(1, keepdims=True)
    pairs = given.reshape(3, 2, 2, 4, 2).sum(2, keepdims=True).repeat(2, 2).reshape(3, 4, 4, 2)
    gradients, weights = trained(given)
    expected = {
        "index": np.arange(total) + np.zeros([3, 1]),
        "sum": sums,
        "mean": given.mean(1, keepdims=True),
        "pairs": pairs,
        "integers": np.trunc(given * np.float32(100)).astype(int).sum(1, keepdims=True),
        "gathered": given[:, None],
        "exchanged": given.transpose(0, 2, 1, 3),
        "scattered": given.reshape(3, total, total, 2).sum(1),
        "empty": np.zeros([3, 1]),
        "gradient": gradients[:, None],
        "weight": weights[:, None],
    }
    for name, value in expected.items():
        got = by_replica[name]
        np.testing.assert_allclose(got, np.broadcast_to(value, got.shape), rtol=2e-5, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(by_replica["half"], np.broadcast_to(sums, [3, 4, 4, 2]), atol=2e-2)
    np.testing.assert_allclose(by_replica["bfloat16"], np.broadcast_to(sums, [3, 4, 4, 2]), atol=2e-1)
    # All have the same bits, and those of a program with as many replicas in one process.
    (alone,) = poprun(python, interpreter, COLLECTIVES, f"--num-replicas={total}", "--num-instances=1")
    for name, values in by_replica.items():
        np.testing.assert_array_equal(values, alone[name], err_msg=name)


@pytest.mark.slow
def test_instances_that_bring_other_shapes_all_get_an_error(python, interpreter):
    found = poprun(python, interpreter, MISTAKEN, "--num-replicas=2", "--num-instances=2")
    for one in found:
        assert "Tensor layouts did not match on all instances" in one["error"]
        assert "Rank 0" in one["error"] and "rank 1" in one["error"] and "mine" in one["error"]


def test_programs_on_the_model_say_why_instances_cannot_exchange(monkeypatch):
    for name, value in {"TF_IPU_SHIM_SIZE": "2", "TF_IPU_SHIM_RANK": "1", instances.TOTAL_REPLICAS: "4"}.items():
        monkeypatch.setenv(name, value)
    for flags, words in ("", ""), ("--use_ipu_model", "cannot exchange data on the IPU model"):
        monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
        share = instances.share_of_programs(config_pb2.IpuOptions())
        assert share.instances == 1 and words in share.problem and bool(share.problem) == bool(words)


@pytest.mark.slow
def test_instances_whose_programs_differ_name_both_collectives(python, interpreter, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_COLLECTIVE_TIMEOUT", "5")
    script = MISTAKEN.replace('name="mine"', 'name=["mine", "other"][rank]').replace("[2 + rank]", "[2]")
    first, second = poprun(python, interpreter, script, "--num-replicas=2", "--num-instances=2")
    line = next(number for number, text in enumerate(script.splitlines(), 1) if "strategy.run" in text)
    for error, own, others in (first["error"], "mine", "other"), (second["error"], "other", "mine"):
        said, _, told = error.partition("not all 2 processes came to it within 5 s")
        assert re.search(rf"'collective \d+ {own}' between replicas of a program", said)
        place = rf"at {re.escape(str(python.directory / 'script.py'))}:{line}, in <module>"
        assert re.search(rf"in 'collective \d+ {others}' between replicas of a program {place}\.", told)


@pytest.mark.slow
def test_the_model_has_no_replicas_of_several_instances(python, interpreter, monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    for one in poprun(python, interpreter, MODEL, "--num-replicas=4", "--num-instances=2"):
        assert one["mean"] == 1.5
        assert "cannot exchange data on the IPU model" in one["error"] and "PopDistStrategy" in one["error"]


def test_programs_reduce_over_the_replicas_that_are_configured(python, interpreter):
    """Instances that the configuration does not join have programs of their own; the host reduces over all of them."""
    ran = run_instances(python, interpreter, SEPARATE, "--num-replicas=4", "--num-instances=2")
    found = results_of(ran)
    assert [one["inside"] for one in found] == [2.0, 4.0]
    assert [one["outside"] for one in found] == [3.0, 3.0]
    for rank in range(2):
        assert ran.stderr.count(f"Process {rank} of 2 reduces over its own replicas only") == 1
    assert "strategy.update_ipu_config(config)" in ran.stderr


def test_joined_instances_are_told_nothing(python, interpreter):
    configured = "strategy.update_ipu_config(config).configure_ipu_system()"
    script = SEPARATE.replace("config.configure_ipu_system()", configured)
    ran = run_instances(python, interpreter, script, "--num-replicas=4", "--num-instances=2")
    assert [one["inside"] for one in results_of(ran)] == [6.0, 6.0]
    assert "own replicas only" not in ran.stderr


def test_a_program_of_two_processes_is_refused_in_one(forked):
    ran = forked("-m", "tf_ipu_shim", forked.script(ALONE))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[0] == "2.0"
    assert "process 1 of 2" in ran.stdout and "process 0 of 1 of its job" in ran.stdout
    assert "poprun --num-instances 2" in ran.stdout
