"""Training by optimizers of `tf.compat.v1.train`, on IPUs and by hand."""

import functools

import harness
import numpy as np
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, loops, scopes

v1 = tf.compat.v1

random = np.random.RandomState(0)

BATCHES = 12

FEATURES = random.rand(BATCHES, 4, 3).astype("f")

TARGETS = random.rand(BATCHES, 4, 2).astype("f")

FIRST = random.rand(3, 3).astype("f")

SECOND = random.rand(3, 2).astype("f")

OPTIMIZERS = {
    "gradient descent": lambda: v1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: v1.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: v1.train.AdamOptimizer(0.05),
    "rmsprop": lambda: v1.train.RMSPropOptimizer(0.05, momentum=0.5),
    "centred rmsprop": lambda: v1.train.RMSPropOptimizer(0.05, centered=True),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
    "adagrad da": lambda: v1.train.AdagradDAOptimizer(0.1, v1.train.get_or_create_global_step()),
    "adadelta": lambda: v1.train.AdadeltaOptimizer(1.0),
    "ftrl": lambda: v1.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
    "proximal gradient descent": lambda: v1.train.ProximalGradientDescentOptimizer(0.1, 0.01, 0.01),
    "proximal adagrad": lambda: v1.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
}

CONTROL = [OPTIMIZERS[name] for name in ("momentum", "adam")]


def model(x, y, shards=1):
    def weight(name, value):
        return v1.get_variable(name, value.shape, initializer=v1.constant_initializer(value), use_resource=True)

    with scopes.ipu_shard(0):
        hidden = tf.tanh(x @ weight("first", FIRST))
    with scopes.ipu_shard(shards - 1):
        return tf.reduce_mean(tf.square(hidden @ weight("second", SECOND) - y))


def train(optimizer, iterations=8, runs=1, shards=1, replicas=1):
    """Values of all global variables after `runs` runs of a loop on the IPU."""
    harness.configure(shards * replicas)

    def minimise(made, loss):
        return made.minimize(loss, global_step=v1.train.get_or_create_global_step())

    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, TARGETS)).repeat()
    queue = ipu_infeed_queue.IPUInfeedQueue(dataset)
    with scopes.ipu_scope(harness.IPU):
        program = ipu_compiler.compile(
            lambda: loops.repeat(iterations, lambda x, y: minimise(optimizer(), model(x, y, shards)), [], queue)
        )
    return session(program, queue, runs)


def session(program, queue, runs):
    variables = {variable.op.name: variable for variable in v1.global_variables()}
    with v1.Session() as running:
        running.run(v1.global_variables_initializer())
        running.run(queue.initializer)
        for _ in range(runs):
            running.run(program)
        return running.run(variables)


@functools.cache
def by_hand(optimizer, updates=2, batches=4, mean=False, dtype="f", change=None):
    """The same on the CPU: gradients of the batches reduced by NumPy, then one update of the bare optimizer."""
    with tf.Graph().as_default(), tf.device(harness.CPU):
        x, y = (v1.placeholder(tf.float32, array.shape[1:]) for array in (FEATURES, TARGETS))
        loss = model(x, y)
        weights = v1.trainable_variables()
        gradients = tf.gradients(loss, weights)
        fed = [v1.placeholder(tf.float32, gradient.shape) for gradient in gradients]
        step = v1.train.get_or_create_global_step()
        update = optimizer().apply_gradients(list(zip(fed, weights)), global_step=step)
        variables = {variable.op.name: variable for variable in v1.global_variables()}
        with v1.Session() as running:
            running.run(v1.global_variables_initializer())
            for first in range(0, updates * batches, batches):
                found = [
                    running.run(gradients, {x: FEATURES[i % BATCHES], y: TARGETS[i % BATCHES]})
                    for i in range(first, first + batches)
                ]
                reduced = [sum(each) / (batches if mean else 1) for each in zip(*found)]
                if change is not None:
                    reduced = [change(gradient, *running.run([w])) for gradient, w in zip(reduced, weights)]
                running.run(update, dict(zip(fed, reduced)))
            return running.run(variables)


def assert_same(actual, expected):
    assert sorted(actual) == sorted(expected)
    for name, value in expected.items():
        harness.assert_close(actual[name], value, what=name)
