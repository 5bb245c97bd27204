"""One graph over four IPUs.

    python tutorials/sharding.py
    tf-ipu run --memory tutorials/sharding.py      # with the memory of each IPU

Three sums run on IPUs 0, 1 and 2 at the same time; IPU 3 adds them up. Prints `[array([ 4., 14.], dtype=float32)]`.

    host ──a,b──> IPU 0: a + b ──────────────────┐
                    ├──a──> IPU 1: a + c <──c── host
                    │         │     └────────────┼──> IPU 3: sum ──> host
                    └──b──>  IPU 2: b + c ───────┘
                              └─c─^

An input goes to the first IPU that uses it and from there, over the links between IPUs, to the others: the memory
report counts each of these exchanges.
"""

import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.scopes import ipu_scope, ipu_shard

tf.disable_v2_behavior()

NUM_IPUS = 4

# Four IPUs make one TensorFlow device. The system has ids for single IPUs and for groups of 2, 4, 8 and 16: on the
# default 16-IPU machine the first group of four has the id 24.
config = ipu.config.IPUConfig()
config.auto_select_ipus = NUM_IPUS
config.configure_ipu_system()

with tf.device("cpu"):
    a = tf.placeholder(tf.float32, [2], name="a")
    b = tf.placeholder(tf.float32, [2], name="b")
    c = tf.placeholder(tf.float32, [2], name="c")


def sharded(a, b, c):
    """Each ipu_shard names the IPU, counted within the device, that its ops run on."""
    with ipu_shard(0):
        first = a + b
    with ipu_shard(1):
        second = a + c
    with ipu_shard(2):
        third = b + c
    with ipu_shard(3):
        return first + second + third


with ipu_scope("/device:IPU:0"):
    result = ipu.ipu_compiler.compile(sharded, [a, b, c])

with tf.Session() as session:
    print(session.run(result, {a: [1.0, 1.0], b: [0.0, 1.0], c: [1.0, 5.0]}))
