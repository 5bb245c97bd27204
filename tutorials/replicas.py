"""One training script on one IPU or on several that each train a copy of the model.

    python tutorials/replicas.py          # two replicas
    python tutorials/replicas.py 1        # or 4, 8, 16

Nothing but the number of IPUs asked for decides how many replicas there are. tutorials/replicas.md explains it.
"""

import sys

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops
from tensorflow.python.ipu.config import IPUConfig
from tensorflow.python.ipu.optimizers import CrossReplicaOptimizer
from tensorflow.python.ipu.scopes import ipu_scope

tf.disable_v2_behavior()

REPLICAS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
STEPS, BATCH, FEATURES = 400, 16, 12

# 1. The program below uses one IPU. On a device with more it is copied: one replica on each.
config = IPUConfig()
config.auto_select_ipus = REPLICAS
config.configure_ipu_system()

# 2. An element of the dataset is one replica's mini-batch. Elements are dealt out in turn.
random = np.random.RandomState(0)
x = random.randn(STEPS * REPLICAS, BATCH, FEATURES).astype(np.float32)
y = np.tanh(x @ random.randn(FEATURES, 1).astype(np.float32) / 3)
infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices((x, y)))
outfeed = ipu_outfeed_queue.IPUOutfeedQueue()


def loss_of(features, targets):
    with tf.variable_scope("model", use_resource=True, initializer=tf.glorot_uniform_initializer(seed=1)):
        hidden = tf.tanh(tf.matmul(features, tf.get_variable("hidden", [FEATURES, 24])))
        output = tf.matmul(hidden, tf.get_variable("output", [24, 1]))
    return tf.reduce_mean(tf.square(output - targets))


def step(features, targets):
    """3. A replica has its own batch's gradients; the optimizer applies the mean of all, so weights stay the same."""
    loss = loss_of(features, targets)
    train = CrossReplicaOptimizer(tf.train.MomentumOptimizer(0.05, 0.9)).minimize(loss)
    with tf.control_dependencies([train]):
        return outfeed.enqueue(loss)


with ipu_scope("/device:IPU:0"):
    train = ipu_compiler.compile(lambda: loops.repeat(STEPS, step, [], infeed))
dequeue = outfeed.dequeue()
ipu.utils.move_variable_initialization_to_cpu()

with tf.Session() as session:
    session.run([tf.global_variables_initializer(), infeed.initializer])
    session.run(train)
    losses, weights = session.run([dequeue, tf.trainable_variables()])

# 4. With several replicas the outfeed has an axis for them behind that of the steps.
print(f"{REPLICAS} replicas; losses have the shape {losses.shape}")
losses = losses.reshape(STEPS, REPLICAS)

# 5. The same training on the CPU: batches of all replicas joined into one, and a plain optimizer.
with tf.Graph().as_default(), tf.Session() as session:
    features = tf.placeholder(tf.float32, [REPLICAS * BATCH, FEATURES])
    targets = tf.placeholder(tf.float32, [REPLICAS * BATCH, 1])
    loss = loss_of(features, targets)
    fetches = loss, tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    session.run(tf.global_variables_initializer())
    expected_losses = []
    for joined_x, joined_y in zip(x.reshape(STEPS, -1, FEATURES), y.reshape(STEPS, -1, 1)):
        expected_losses.append(session.run(fetches, {features: joined_x, targets: joined_y})[0])
    expected_weights = session.run(tf.trainable_variables())

for number in range(0, STEPS, 100):
    each = " ".join(f"{loss:.5f}" for loss in losses[number])
    print(f"step {number:3}: losses {each}; mean {losses[number].mean():.5f}, CPU {expected_losses[number]:.5f}")
furthest = max(np.abs(one - other).max() for one, other in zip(weights, expected_weights))
print(f"{STEPS} steps, {losses[-1].mean():.5f} at the end. Largest difference of a weight: {furthest:.0e}")
print("The CPU's weights." if furthest < 1e-4 else "Other weights than the CPU's!")

# Only simulated IPUs can be asked what they hold: leave this out on Graphcore's own system.
import tf_ipu_shim  # noqa: E402

print(tf_ipu_shim.memory_report().to_text())
