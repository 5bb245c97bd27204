"""A pipeline of four stages with gradient accumulation: on four IPUs, or on eight as two replicas.

    python tutorials/pipelining.py
    python tutorials/pipelining.py --ipus 8
    python tutorials/pipelining.py --schedule Interleaved --count 4

tutorials/pipelining.md explains it, with images of the schedules.
"""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, pipelining_ops
from tensorflow.python.ipu.config import IPUConfig
from tensorflow.python.ipu.optimizers import CrossReplicaOptimizer
from tensorflow.python.ipu.scopes import ipu_scope

tf.disable_v2_behavior()

parser = argparse.ArgumentParser()
parser.add_argument("--ipus", type=int, default=4, help="4 times the number of replicas")
parser.add_argument("--schedule", default="Grouped", choices=["Grouped", "Interleaved", "Sequential"])
parser.add_argument("--count", type=int, default=8, help="mini-batches to an update of the weights")
arguments = parser.parse_args()

STAGES, UPDATES, BATCH = 4, 50, 16
WIDTHS = [32, 64, 64, 32, 1]
REPLICAS, COUNT = arguments.ipus // STAGES, arguments.count

config = IPUConfig()
config.auto_select_ipus = arguments.ipus
config.configure_ipu_system()

random = np.random.RandomState(0)
x = random.randn(UPDATES * COUNT * REPLICAS, BATCH, WIDTHS[0]).astype(np.float32)
y = np.tanh(x @ random.randn(WIDTHS[0], 1).astype(np.float32) / 5)
infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices((x, y)))
outfeed = ipu_outfeed_queue.IPUOutfeedQueue()


def dense(layer, values):
    with tf.variable_scope("", use_resource=True):
        weights = tf.get_variable(
            f"weights_{layer}", WIDTHS[layer : layer + 2], initializer=tf.glorot_uniform_initializer(seed=layer)
        )
    return tf.matmul(values, weights)


# 1. A stage is a function. It takes what the stage before it returns; the first takes what the infeed gives.
def first(features, targets):
    return tf.tanh(dense(0, features)), targets


def second(values, targets):
    return tf.tanh(dense(1, values)), targets


def third(values, targets):
    return tf.tanh(dense(2, values)), targets


def last(values, targets):
    return tf.reduce_mean(tf.square(dense(3, values) - targets))


def make_optimizer():
    return tf.train.MomentumOptimizer(0.1, 0.9)


def optimizer_function(loss):
    """2. Takes what the last stage returns, and says what is minimised. Gradients are averaged over the replicas."""
    optimizer = make_optimizer() if REPLICAS == 1 else CrossReplicaOptimizer(make_optimizer())
    return pipelining_ops.OptimizerFunctionOutput(optimizer, loss)


def train():
    """3. Stage i runs on IPU i of its replica. The weights change after COUNT mini-batches, UPDATES times."""
    return pipelining_ops.pipeline(
        [first, second, third, last],
        gradient_accumulation_count=COUNT,
        repeat_count=UPDATES,
        infeed_queue=infeed,
        outfeed_queue=outfeed,
        optimizer_function=optimizer_function,
        pipeline_schedule=pipelining_ops.PipelineSchedule[arguments.schedule],
        reduction_method=ipu.gradient_accumulation.GradientAccumulationReductionMethod.MEAN,
        name="tutorial",
    )


with ipu_scope("/device:IPU:0"):
    program = ipu_compiler.compile(train)
dequeue = outfeed.dequeue()
ipu.utils.move_variable_initialization_to_cpu()

with tf.Session() as session:
    session.run([tf.global_variables_initializer(), infeed.initializer])
    session.run(program)
    (losses,), weights = session.run([dequeue, tf.trainable_variables()])

# 4. One loss for each mini-batch; with several replicas, an axis for them behind it.
print(f"{STAGES} stages on {arguments.ipus} IPUs, {REPLICAS} replicas; losses have the shape {losses.shape}")
losses = losses.reshape(UPDATES, COUNT * REPLICAS).mean(1)

# 5. The same training on the CPU: all mini-batches of an update, of all replicas, joined into one batch.
with tf.Graph().as_default(), tf.Session() as session:
    features = tf.placeholder(tf.float32, [None, WIDTHS[0]])
    targets = tf.placeholder(tf.float32, [None, 1])
    loss = last(*third(*second(*first(features, targets))))
    fetches = loss, make_optimizer().minimize(loss)
    session.run(tf.global_variables_initializer())
    expected_losses = []
    for joined_x, joined_y in zip(x.reshape(UPDATES, -1, WIDTHS[0]), y.reshape(UPDATES, -1, 1)):
        expected_losses.append(session.run(fetches, {features: joined_x, targets: joined_y})[0])
    expected_weights = session.run(tf.trainable_variables())

for number in range(0, UPDATES, 10):
    print(f"update {number:2}: mean loss {losses[number]:.5f}, on the CPU {expected_losses[number]:.5f}")
furthest = max(np.abs(one - other).max() for one, other in zip(weights, expected_weights))
print(f"{UPDATES} updates, {losses[-1]:.5f} at the end. Largest difference of a weight: {furthest:.0e}")
print("The CPU's weights." if furthest < 1e-4 else "Other weights than the CPU's!")

# Only simulated IPUs can be asked what they hold: leave this out on Graphcore's own system.
import tf_ipu_shim  # noqa: E402

print(tf_ipu_shim.memory_report().to_text())
