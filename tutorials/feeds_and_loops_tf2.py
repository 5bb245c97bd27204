"""The loop of feeds_and_loops.py in TensorFlow 2: IPUStrategy, tf.function, an iterator and an outfeed.

    python tutorials/feeds_and_loops_tf2.py

tutorials/feeds_and_loops.md explains it.
"""

import threading

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.config import IPUConfig

STEPS, CALLS, BATCH, FEATURES = 500, 4, 32, 16

config = IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()

random = np.random.RandomState(0)
x = random.randn(64 * BATCH, FEATURES).astype(np.float32)
y = np.tanh(x @ random.randn(FEATURES, 1).astype(np.float32) / 4)
first_weights = [random.randn(*shape).astype(np.float32) / 4 for shape in ([FEATURES, 32], [32, 1])]


def batches():
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=True).repeat()


def train_step(weights, features, targets):
    """Loss of a network with one hidden layer; gradient descent on its weights. Nothing in it is about IPUs."""
    with tf.GradientTape() as tape:
        output = tf.matmul(tf.tanh(tf.matmul(features, weights[0])), weights[1])
        loss = tf.reduce_mean(tf.square(output - targets))
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
        weight.assign_sub(0.05 * gradient)
    return loss


# 1. On the CPU, a batch at a time.
expected_weights = [tf.Variable(weight) for weight in first_weights]
on_the_cpu = tf.function(train_step)
expected_losses = [
    float(on_the_cpu(expected_weights, features, targets)) for features, targets in batches().take(STEPS * CALLS)
]

# 2. What is made in the strategy's scope is the IPU's: variables, and iterators that programs take elements from.
strategy = ipu.ipu_strategy.IPUStrategyV1()
with strategy.scope():
    weights = [tf.Variable(weight) for weight in first_weights]
    iterator = iter(batches())
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    # 3. A loop over tf.range becomes a loop in the program; a loop over range would be unrolled.
    @tf.function(experimental_compile=True)
    def train(iterator, steps):
        for _ in tf.range(steps):
            features, targets = next(iterator)
            outfeed.enqueue(train_step(weights, features, targets))

    losses, done = [], threading.Event()

    # 4. The outfeed is read while the loop runs.
    def read():
        while not done.is_set():
            losses.extend(outfeed.dequeue().numpy())

    strategy.run(train, args=[iterator, STEPS])  # traces: from here on the outfeed knows what is sent
    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(CALLS - 1):
        strategy.run(train, args=[iterator, STEPS])
    done.set()
    reader.join()
    losses.extend(outfeed.dequeue().numpy())

for number in range(0, len(losses), STEPS):
    print(f"step {number:4}: loss {losses[number]:.5f} on the IPU, {expected_losses[number]:.5f} on the CPU")
furthest = max(np.abs(one.numpy() - other.numpy()).max() for one, other in zip(weights, expected_weights))
print(f"{len(losses)} steps, {losses[-1]:.5f} at the end. Largest difference of a weight: {furthest:.0e}")
print("The CPU's weights." if furthest < 1e-4 else "Other weights than the CPU's!")

# Only simulated IPUs can be asked what they hold: leave this out on Graphcore's own system.
import tf_ipu_shim  # noqa: E402

print(tf_ipu_shim.memory_report().to_text())
