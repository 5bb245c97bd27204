"""Training that does not come back to Python between steps: an infeed, a loop on the IPU, an outfeed.

    python tutorials/feeds_and_loops.py

tutorials/feeds_and_loops.md explains it. The TensorFlow 2 way is in feeds_and_loops_tf2.py.
"""

import threading

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops
from tensorflow.python.ipu.config import IPUConfig
from tensorflow.python.ipu.scopes import ipu_scope

tf.disable_v2_behavior()

STEPS, LOOPS, BATCH, FEATURES = 500, 4, 32, 16

config = IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()

# 1. The data: 64 batches of a regression problem, over and over again.
random = np.random.RandomState(0)
x = random.randn(64 * BATCH, FEATURES).astype(np.float32)
y = np.tanh(x @ random.randn(FEATURES, 1).astype(np.float32) / 4)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=True).repeat()

# 2. An infeed hands elements of the dataset to the program while it runs; an outfeed takes what the program sends.
infeed = ipu_infeed_queue.IPUInfeedQueue(dataset)
outfeed = ipu_outfeed_queue.IPUOutfeedQueue()


def model(features, targets):
    """Loss of a network with one hidden layer, and the op that trains it. Nothing in it is about IPUs."""
    with tf.variable_scope("model", use_resource=True, initializer=tf.glorot_uniform_initializer(seed=1)):
        hidden = tf.tanh(tf.matmul(features, tf.get_variable("hidden", [FEATURES, 32])))
        output = tf.matmul(hidden, tf.get_variable("output", [32, 1]))
    loss = tf.reduce_mean(tf.square(output - targets))
    return loss, tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)


def step(features, targets):
    """One iteration. It takes what the infeed gives, and sends its loss; nothing is carried to the next iteration."""
    loss, train = model(features, targets)
    with tf.control_dependencies([train]):
        return outfeed.enqueue(loss)


# 3. The whole loop is one program. It runs STEPS iterations each time the session runs it.
with ipu_scope("/device:IPU:0"):
    train = ipu_compiler.compile(lambda: loops.repeat(STEPS, step, [], infeed))

dequeue = outfeed.dequeue()
ipu.utils.move_variable_initialization_to_cpu()


def trained_by_the_ipu():
    """Trains in a thread of its own, reads losses meanwhile; returns the losses and the weights."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), infeed.initializer])
        worker = threading.Thread(target=lambda: [session.run(train) for _ in range(LOOPS)])
        worker.start()
        losses = []
        # 4. dequeue() gives what has arrived since it was last run: as many losses as there are, maybe none.
        while worker.is_alive():
            losses.extend(session.run(dequeue))
        worker.join()
        losses.extend(session.run(dequeue))
        return losses, session.run(tf.trainable_variables())


def trained_by_the_cpu():
    """The same model in a plain TensorFlow loop."""
    with tf.Graph().as_default(), tf.Session() as session:
        features = tf.placeholder(tf.float32, [BATCH, FEATURES])
        targets = tf.placeholder(tf.float32, [BATCH, 1])
        fetches = model(features, targets)
        session.run(tf.global_variables_initializer())
        losses = []
        for number in range(STEPS * LOOPS):
            rows = slice(number % 64 * BATCH, (number % 64 + 1) * BATCH)
            losses.append(session.run(fetches, {features: x[rows], targets: y[rows]})[0])
        return losses, session.run(tf.trainable_variables())


losses, weights = trained_by_the_ipu()
expected_losses, expected_weights = trained_by_the_cpu()
for number in range(0, len(losses), STEPS):
    print(f"step {number:4}: loss {losses[number]:.5f} on the IPU, {expected_losses[number]:.5f} on the CPU")
furthest = max(np.abs(one - other).max() for one, other in zip(weights, expected_weights))
print(f"{len(losses)} steps, {losses[-1]:.5f} at the end. Largest difference of a weight: {furthest:.0e}")
print("The CPU's weights." if furthest < 1e-4 else "Other weights than the CPU's!")

# Only simulated IPUs can be asked what they hold: leave this out on Graphcore's own system.
import tf_ipu_shim  # noqa: E402

print(tf_ipu_shim.memory_report().to_text())
