"""What the tests of compiled applications share."""

import numpy as np
import tensorflow as tf

from tf_ipu_shim import ipu

compile_op = ipu.application_compile_op.experimental_application_compile_op


def infeed_of(*shape, dtype=tf.float32):
    return ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros(shape, dtype)).repeat())


def loop_of(body, *shape, iterations=16, **queue_options):
    """A program that gives `body(x)` for each x of its infeed."""
    infeed = infeed_of(*shape)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue(**queue_options)
    return lambda: ipu.loops.repeat(iterations, lambda x: outfeed.enqueue(body(x)), [], infeed)


def batches(count, *shape):
    return [np.full(shape, index + 1, np.float32) for index in range(count)]
