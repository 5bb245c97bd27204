"""An embedding that stays in the host's memory and is trained from the IPU.

    python tutorials/host_embedding.py

A table too large for an IPU is left on the host: a lookup sends the rows asked for, and their gradients come back.
tutorials/feeds_and_loops.md explains it.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ipu import embedding_ops, ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops
from tensorflow.python.ipu.config import IPUConfig
from tensorflow.python.ipu.scopes import ipu_scope

tf.disable_v2_behavior()

WORDS, WIDTH, BATCH, STEPS, RATE = 20000, 32, 64, 300, 0.5

config = IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()

# Each word has a number of its own, which the model is to learn from pairs of words and their sum.
random = np.random.RandomState(0)
words = random.randint(0, 200, [STEPS, BATCH, 2]).astype(np.int32)
sums = (words.sum(2) / 200 - 1).astype(np.float32)
infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices((words, sums)))
outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

# The table's optimizer is the host's; the weights below have one of their own.
first_table = (random.randn(WORDS, WIDTH) / 10).astype(np.float32)
embedding = embedding_ops.create_host_embedding(
    "words",
    shape=[WORDS, WIDTH],
    dtype=tf.float32,
    optimizer_spec=embedding_ops.HostEmbeddingOptimizerSpec(RATE),
    initializer=tf.constant_initializer(first_table),
)


def model(rows, sums):
    weights = tf.get_variable("weights", [WIDTH], initializer=tf.constant_initializer(0.2), use_resource=True)
    return tf.reduce_mean(tf.square(tf.linalg.matvec(tf.reduce_sum(rows, 1), weights) - sums))


def step(words, sums):
    loss = model(embedding.lookup(words), sums)
    with tf.control_dependencies([tf.train.GradientDescentOptimizer(RATE / 10).minimize(loss)]):
        return outfeed.enqueue(loss)


with ipu_scope("/device:IPU:0"):
    train = ipu_compiler.compile(lambda: loops.repeat(STEPS, step, [], infeed))
dequeue = outfeed.dequeue()

with tf.Session() as session:
    session.run([tf.global_variables_initializer(), infeed.initializer])
    # The table serves programs for as long as it is registered.
    with embedding.register(session):
        session.run(train)
    losses = session.run(dequeue)
    trained = [session.run(embedding.get_embedding_tensor())] + session.run(tf.trainable_variables("weights"))

# The same with a table that is a variable like any other, on the CPU.
with tf.Graph().as_default(), tf.Session() as session:
    table = tf.get_variable("words", initializer=first_table, use_resource=True)
    ids, targets = tf.placeholder(tf.int32, [BATCH, 2]), tf.placeholder(tf.float32, [BATCH])
    loss = model(tf.gather(table, ids), targets)
    weights = tf.trainable_variables("weights")
    train = tf.group(
        tf.train.GradientDescentOptimizer(RATE).minimize(loss, var_list=[table]),
        tf.train.GradientDescentOptimizer(RATE / 10).minimize(loss, var_list=weights),
    )
    session.run(tf.global_variables_initializer())
    expected_losses = [
        session.run([loss, train], {ids: words[number], targets: sums[number]})[0] for number in range(STEPS)
    ]
    expected = session.run([table] + weights)

for number in range(0, STEPS, 100):
    print(f"step {number:3}: loss {losses[number]:.5f} on the IPU, {expected_losses[number]:.5f} on the CPU")
furthest = max(np.abs(one - other).max() for one, other in zip(trained, expected))
print(f"{STEPS} steps, {losses[-1]:.5f} at the end. Largest difference in table or weights: {furthest:.0e}")
print("The CPU's weights." if furthest < 1e-4 else "Other weights than the CPU's!")
print(f"The table has {first_table.nbytes:,} bytes. The IPU holds none of them:")

# Only simulated IPUs can be asked what they hold: leave this out on Graphcore's own system.
import tf_ipu_shim  # noqa: E402

print(tf_ipu_shim.memory_report().to_text())
