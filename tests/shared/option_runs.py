"""What the tests of options run: a configuration from scratch, a training pipeline, a norm, recurrent layers."""

from __future__ import annotations

import functools
import json
import re

import numpy as np
import tensorflow as tf
from keras_models import keras
from tf_ipu_shim.ipu import (
    ipu_compiler,
    ipu_infeed_queue,
    ipu_outfeed_queue,
    ipu_strategy,
    normalization_ops,
    rnn_ops,
    scopes,
)
from tf_ipu_shim.ipu.config import DeviceConnectionType, IPUConfig
from tf_ipu_shim.ipu.ops import pipelining_ops, replication_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import OptimizerFunctionOutput
from tf_ipu_shim.poplar.ops import gen_popnn_ops

from tf_ipu_shim.runtime import devices

v1 = tf.compat.v1
WIDTH, ROWS, STAGES = 16, 8, 4
COMPILE_ONLY = {
    "device_connection.type": DeviceConnectionType.PRE_COMPILE,
    "device_connection.version": "ipu2",
}


def from_scratch(monkeypatch, config=None, flags="", engine=None, ipus=STAGES, sdk="3.4"):
    """Configures as a process does that has configured nothing yet.

    Args:
        monkeypatch: sets the environment.
        config: values of `IPUConfig`'s options by path.
        flags: `TF_POPLAR_FLAGS`.
        engine: `POPLAR_ENGINE_OPTIONS`.
        ipus: how many, where `config` selects none.
        sdk: the SDK.
    """
    devices.reset()
    monkeypatch.setenv("TF_IPU_SHIM_SDK", sdk)
    monkeypatch.setenv("TF_POPLAR_FLAGS", flags)
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", json.dumps(engine or {}))
    made = IPUConfig()
    values = {"auto_select_ipus": ipus, **(config or {})}
    if "select_ipus" in values:
        del values["auto_select_ipus"]
    for path, value in values.items():
        *categories, name = path.split(".")
        setattr(functools.reduce(getattr, categories, made), name, value)
    made.configure_ipu_system()


class Momentum(v1.train.MomentumOptimizer):
    """Takes gradients of any precision."""

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        pairs = [(tf.cast(gradient, variable.dtype), variable) for gradient, variable in grads_and_vars]
        return super().apply_gradients(pairs, *args, **kwargs)


def pipeline(stages=STAGES, count=2 * STAGES, width=WIDTH, layers=1, stage=None, **options):
    """Runs a training pipeline of one layer a stage, or of several that share it; gives what it sent and the weights.

    Several have a checkpoint between them. Or of stages that a function makes by their number.
    """

    def layers_of(number, x):
        weight = v1.get_variable(f"w{number}", [width, width], initializer=v1.constant_initializer(0.05))
        for layer in range(layers):
            x = tf.tanh(tf.matmul(x, weight))
            if layer == layers // 2 - 1:
                x = pipelining_ops.recomputation_checkpoint(x)
        return (tf.reduce_sum(x), tf.reduce_max(x)) if number == stages - 1 else x

    def update(loss, *_):
        return OptimizerFunctionOutput(Momentum(0.01, 0.9), loss)

    def program(infeed, outfeed):
        with v1.variable_scope("", use_resource=True):
            return pipelining_ops.pipeline(
                [functools.partial(stage or layers_of, number) for number in range(stages)],
                **{"gradient_accumulation_count": count, **options},
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                optimizer_function=update,
            )

    with tf.Graph().as_default(), v1.Session() as session:
        data = tf.data.Dataset.range(1, 1000).map(lambda n: tf.fill([ROWS, width], tf.cast(n, tf.float32) / 64))
        infeed, outfeed = ipu_infeed_queue.IPUInfeedQueue(data), ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope("/device:IPU:0"):
            run = ipu_compiler.compile(lambda: program(infeed, outfeed))
        taken = outfeed.dequeue()
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(run)
        if devices.get(0).compiles_only:
            return None
        sent = [value.tolist() for value in tf.nest.flatten(session.run(taken))]
        kinds = [tensor.dtype.name for tensor in tf.nest.flatten(taken)]
        return sent, kinds, [value.tolist() for value in session.run(v1.trainable_variables())]


def keras_accumulation(width, **options):
    """Fits a model, on each IPU a replica, with two mini-batches to an update."""
    with ipu_strategy.IPUStrategy().scope():
        model = keras.Sequential([keras.layers.Dense(width, input_shape=(width,))])
        model.set_gradient_accumulation_options(2, **options)
        model.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse", steps_per_execution=2)
        data = np.ones((2 * STAGES * ROWS, width), "f")
        model.fit(data, data, batch_size=ROWS, verbose=0)


def norm(**options):
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(np.random.RandomState(0).rand(2, 4, 4).astype("f"))
        y = normalization_ops.group_norm(x, **{"groups": 2, **options})
        ones = [variable.assign_add(tf.ones_like(variable)) for variable in v1.global_variables()]
        session.run(v1.global_variables_initializer())
        session.run(ones)
        return session.run(y).tolist()


def recurrent(training=True, **options):
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.constant(np.random.RandomState(0).rand(3, 2, 4).astype("f"))
        layer = rnn_ops.PopnnLSTM(5, weights_initializer=v1.constant_initializer(0.3), **options)
        given = tf.nest.flatten(layer(x, training=training))
        session.run(v1.global_variables_initializer())
        return [value.tolist() for value in session.run(given)]


def recurrent_products(**options):
    """Compiles an LSTM of halves and its gradient, whose products are large enough for a planner."""
    compiled_layer(
        lambda: rnn_ops.PopnnLSTM(64, dtype=tf.float16, weights_initializer=v1.zeros_initializer(), **options)
    )


def keras_recurrent_products(**options):
    from ipu_tensorflow_addons.keras.layers import PopnnLSTM

    zeros = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
    compiled_layer(lambda: PopnnLSTM(64, dtype="float16", **zeros, **options))


def gen_recurrent_products(**options):
    """The same by the op itself."""
    units, zeros = 64, v1.zeros_initializer()

    def layer():
        kernel = v1.get_variable("kernel", [128 + units, 4 * units], tf.float16, zeros)
        states, biases = tf.zeros([64, units], tf.float16), tf.zeros([4, units], tf.float16)
        how = ("tanh", "sigmoid", units, True)
        return lambda x: gen_popnn_ops.popnn_lstm_layer(x, states, states, kernel, biases, *how, **options)

    compiled_layer(layer)


def compiled_layer(make):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float16, [3, 64, 128])
        with scopes.ipu_scope("/device:IPU:0"):
            built = ipu_compiler.compile(lambda x: tf.gradients(tf.nest.flatten(make()(x))[0], [x]), [x])
        session.run(v1.global_variables_initializer())
        session.run(built, {x: np.ones(x.shape, np.float16)})


def keras_recurrent(**options):
    from ipu_tensorflow_addons.keras.layers import PopnnLSTM

    x = tf.constant(np.random.RandomState(0).rand(3, 2, 4).astype("f"))
    layer = PopnnLSTM(5, kernel_initializer="ones", recurrent_initializer="ones", **options)
    return [value.numpy().tolist() for value in tf.nest.flatten(layer(x))]


def numbered():
    """Which replica a program is; or why its replicas cannot meet, as this is a job of one process."""
    with tf.Graph().as_default(), v1.Session() as session:
        with scopes.ipu_scope("/device:IPU:0"):
            (result,) = ipu_compiler.compile(lambda: replication_ops.replication_index())
        try:
            return int(session.run(result))
        except tf.errors.FailedPreconditionError as error:
            return re.findall(r"process \d of \d", error.message)


def processes(count, index):
    name = "experimental.multi_replica_distribution"
    return {f"{name}.process_count": count, f"{name}.process_index": index}
