"""Programs of replicas."""

import numpy as np
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue, scopes
from tf_ipu_shim.ipu.ops import cross_replica_ops

from tf_ipu_shim import ipu

v1 = tf.compat.v1

IPU = "/device:IPU:0"

random = np.random.RandomState(3)

START = random.rand(5, 2).astype("f")


def configure(ipus):
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()


def compiled(function, inputs=()):
    with scopes.ipu_scope(IPU):
        return ipu.ipu_compiler.compile(function, list(inputs))


def sent(function, ipus, values=None):
    """What each replica sends of `function(x)`: the structure with a first axis of replicas."""
    configure(ipus)
    values = np.arange(ipus * 4, dtype="f").reshape(ipus, 4) if values is None else values
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(values).repeat())
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    program = compiled(lambda: ipu.loops.repeat(1, lambda x: outfeed.enqueue(function(x)), [], infeed))
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
        return tf.nest.map_structure(lambda array: array[0], session.run(dequeued)), values


def model(x, y):
    weight = v1.get_variable("w", START.shape, initializer=v1.constant_initializer(START), use_resource=True)
    return tf.reduce_mean(tf.square(tf.matmul(x, weight) - y)), weight


def summed_on(shards):
    """What two replicas have together, from IPU to IPU."""

    def sharded(value):
        for index in range(shards):
            with scopes.ipu_shard(index):
                value = 2.0 * cross_replica_ops.cross_replica_sum(value)
        return value

    return sharded
