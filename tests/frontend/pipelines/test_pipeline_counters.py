"""The number of the mini-batch that a pipeline stage is computing."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu

pytestmark = [pytest.mark.one_version, pytest.mark.usefixtures("graph")]

v1 = tf.compat.v1
COUNT, REPEATS = 8, 2
pipelining = ipu.ops.pipelining_ops
counter = ipu.internal_ops.get_current_iteration_counter


def sent(program, outfeed, infeed, *names):
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        run = ipu.ipu_compiler.compile(program, [])
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(infeed.initializer)
        session.run(run)
        values = [session.run(one) for one in v1.global_variables() if one.op.name in names]
        return (session.run(dequeued), *values) if names else session.run(dequeued)


def feeds():
    dataset = tf.data.Dataset.range(COUNT * REPEATS).map(lambda n: tf.cast(n, tf.float32))
    return ipu.ipu_infeed_queue.IPUInfeedQueue(dataset), ipu.ipu_outfeed_queue.IPUOutfeedQueue()


@pytest.mark.parametrize("schedule", ["Grouped", "Interleaved", "Sequential"])
@pytest.mark.parametrize("mapping", [[0, 0], [0, 1]])
def test_stages_know_their_mini_batch(ipus, schedule, mapping):
    ipus(len(set(mapping)))
    infeed, outfeed = feeds()

    def first(x):
        return x, counter()

    def second(x, of_first):
        doubled = ipu.loops.repeat(2, lambda total: total + counter(), [0])  # 0 + 1: the inner loop's own
        return x, of_first, counter(), doubled

    def build():
        return pipelining.pipeline(
            [first, second],
            gradient_accumulation_count=COUNT,
            repeat_count=REPEATS,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            device_mapping=mapping,
            pipeline_schedule=pipelining.PipelineSchedule[schedule],
        )

    x, of_first, of_second, inner = sent(build, outfeed, infeed)
    np.testing.assert_array_equal(x, np.arange(COUNT * REPEATS))
    for found in (of_first, of_second):
        np.testing.assert_array_equal(found, np.tile(np.arange(COUNT), REPEATS))
    np.testing.assert_array_equal(inner, 1)


def test_a_loss_may_depend_on_the_mini_batch(ipus):
    """Gradients of w * number are the numbers, whose sum moves the weight."""
    ipus(2)
    infeed, outfeed = feeds()

    def first(x):
        weight = v1.get_variable("weight", initializer=1.0, use_resource=True)
        return x, weight * tf.cast(counter(), tf.float32)

    def second(x, product):
        return product + 0 * x

    def build():
        return pipelining.pipeline(
            [first, second],
            gradient_accumulation_count=COUNT,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=lambda loss: pipelining.OptimizerFunctionOutput(
                v1.train.GradientDescentOptimizer(0.5), loss
            ),
        )

    losses, weight = sent(build, outfeed, infeed, "weight")
    np.testing.assert_array_equal(np.ravel(losses), np.arange(COUNT))
    assert weight == 1 - 0.5 * np.arange(COUNT).sum()
