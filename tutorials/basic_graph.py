"""A graph on an IPU, with nothing but what it takes.

    python tutorials/basic_graph.py

Three vectors are fed from the host, summed on the IPU and fetched back. Prints `[3. 8.]`.
"""

import tensorflow.compat.v1 as tf
from tensorflow.python.ipu.config import IPUConfig
from tensorflow.python.ipu.scopes import ipu_scope

tf.disable_v2_behavior()

# 1. Say which hardware the script wants. One IPU makes one TensorFlow device, /device:IPU:0; which of the system's
#    IPUs stands behind it is the system's choice, and is logged when the process attaches to it.
config = IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()

# 2. What the script feeds stays on the host.
with tf.device("cpu"):
    a = tf.placeholder(tf.float32, [2], name="a")
    b = tf.placeholder(tf.float32, [2], name="b")
    c = tf.placeholder(tf.float32, [2], name="c")


def sums(a, b, c):
    """Adds up twice: (a + b) + (a + c)."""
    return (a + b) + (a + c)


# 3. What stands in an ipu_scope runs on the IPU. Variables created in it are resource variables, the only kind that an
#    IPU takes.
with ipu_scope("/device:IPU:0"):
    result = sums(a, b, c)

print(f"{result.op.name} runs on {result.device}")

# 4. The session moves the fed values to the IPU and the result back.
with tf.Session() as session:
    print(session.run(result, {a: [1.0, 1.0], b: [0.0, 1.0], c: [1.0, 5.0]}))
