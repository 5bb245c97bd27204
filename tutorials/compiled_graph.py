"""The same sum compiled with XLA, then a variable that is trained on the IPU.

    python tutorials/compiled_graph.py

Prints `[array([3., 8.], dtype=float32)]`, then a loss that falls.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ipu import ipu_compiler
from tensorflow.python.ipu.config import IPUConfig
from tensorflow.python.ipu.scopes import ipu_scope

tf.disable_v2_behavior()

config = IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()

with tf.device("cpu"):
    a = tf.placeholder(tf.float32, [2], name="a")
    b = tf.placeholder(tf.float32, [2], name="b")
    c = tf.placeholder(tf.float32, [2], name="c")
    features = tf.placeholder(tf.float32, [64, 3], name="features")
    targets = tf.placeholder(tf.float32, [64], name="targets")


def sums(a, b, c):
    """Adds up twice: (a + b) + (a + c)."""
    return (a + b) + (a + c)


def train(features, targets):
    """One step of linear regression. Returned operations run whenever the returned tensors are fetched."""
    weights = tf.get_variable("weights", [3], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.linalg.matvec(features, weights) - targets))
    return loss, tf.train.GradientDescentOptimizer(0.5).minimize(loss)


# compile() takes a Python function and the tensors to call it with. The function is traced once; what it becomes is
# decided when it first runs, so the system could also be configured after this point.
with ipu_scope("/device:IPU:0"):
    summed = ipu_compiler.compile(sums, [a, b, c])
    step = ipu_compiler.compile(train, [features, targets])

initialize = tf.global_variables_initializer()
with tf.variable_scope("", reuse=True):
    weights = tf.get_variable("weights", [3])

random = np.random.RandomState(0)
x = random.rand(64, 3).astype(np.float32)
y = x @ np.array([1.0, -2.0, 3.0], np.float32)

with tf.Session() as session:
    # A function that returns one tensor gives a list of one.
    print(session.run(summed, {a: [1.0, 1.0], b: [0.0, 1.0], c: [1.0, 5.0]}))

    session.run(initialize)
    for number in range(200):
        (loss,) = session.run(step, {features: x, targets: y})
        if number % 50 == 0:
            print(f"step {number:3}: loss {loss:.5f}")
    print("weights:", np.round(session.run(weights), 2))
