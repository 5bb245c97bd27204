"""Pipelines over a known infeed, and the same training by hand in NumPy."""

from concurrent import futures

import numpy as np
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue, scopes
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import OptimizerFunctionOutput

from tf_ipu_shim import ipu, plugin

v1 = tf.compat.v1
GRADIENT_DESCENT = v1.train.GradientDescentOptimizer
VALUES = np.arange(1, 9, dtype="f")  # elements of the infeed: batches of two rows
ELEMENTS = np.stack([VALUES, VALUES / 2], -1)[..., None]  # [element, row, column]


def configure(ipus):
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()
    plugin.load().reset_counters(0)


def variable(name, value):
    initializer = v1.constant_initializer(value)
    return v1.get_variable(name, np.shape(value), initializer=initializer, use_resource=True)


def descent(*outputs, rate=0.01):
    return OptimizerFunctionOutput(GRADIENT_DESCENT(rate), outputs[0])


def run(build, feeds=None, mode=ipu_outfeed_queue.IPUOutfeedMode.ALL):
    """Runs `build(infeed, outfeed, *fed)` in a session: what came out, and the variables by name."""
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(ELEMENTS).repeat())
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue(mode)
    with tf.device("/device:CPU:0"):
        fed = [v1.placeholder(value.dtype, value.shape) for value in feeds or []]
    with scopes.ipu_scope("/device:IPU:0"):
        program = ipu.ipu_compiler.compile(lambda *arguments: build(infeed, outfeed, *arguments), fed)
    dequeued = outfeed.dequeue()
    named = {one.op.name: one for one in v1.global_variables()}
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program, dict(zip(fed, feeds or [])))
        return session.run(dequeued), session.run(named)


def two_layers(**options):
    """Squared products of the elements with two weights, summed, and trained."""
    stages = [lambda x: x * variable("first", 0.5), lambda x: tf.reduce_sum(tf.square(x * variable("second", 0.25)))]
    return lambda infeed, outfeed: pipelining_ops.pipeline(
        stages, infeed_queue=infeed, outfeed_queue=outfeed, optimizer_function=descent, **options
    )


def trained_by_hand(count, repeat=1, rate=0.01):
    """What `two_layers` does: losses, and both weights."""
    first, second, losses = 0.5, 0.25, []
    for execution in range(repeat):
        used = ELEMENTS[np.arange(execution * count, (execution + 1) * count) % len(ELEMENTS)].astype("d")
        squares = (used**2).sum((1, 2))
        losses.extend(squares * (first * second) ** 2)
        slope = 2 * squares.sum() * first * second
        first, second = first - rate * slope * second, second - rate * slope * first
    return losses, {"first": first, "second": second}


def check_training(got, expected):
    (losses,), weights = got
    np.testing.assert_allclose(np.ravel(losses), expected[0], rtol=1e-5)
    for name, value in expected[1].items():
        np.testing.assert_allclose(weights[name], value, rtol=1e-5)


def in_eager_thread(function):
    """Runs a function where eager execution is on."""
    with futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def keras_descent():
    return getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers).SGD(0.01)
