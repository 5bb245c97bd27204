"""Keras models that several processes of a job train together."""

import json

import numpy as np
import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

TRAINING = """
import json
import numpy as np
import popdist.tensorflow
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.distributed import popdist_strategy

config = ipu.config.IPUConfig()
popdist.tensorflow.set_ipu_config(config)
config.configure_ipu_system()
rank, instances = popdist.getInstanceIndex(), popdist.getNumInstances()
random = np.random.RandomState(0)
x, y = random.rand(16, 4).astype("f"), random.rand(16, 1).astype("f")
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shard(instances, rank).batch(2, drop_remainder=True)
with popdist_strategy.PopDistStrategy().scope():
    model = tf.keras.models.Sequential(
        [tf.keras.layers.Dense(3, kernel_initializer=lambda shape, dtype: tf.fill(shape, 0.5 + rank)),
         tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"], steps_per_execution=STEPS)
    model.set_replication_options(replicated_metric_reduction_method="MEAN")
    history = model.fit(dataset, epochs=2, verbose=0).history
    evaluated = model.evaluate(dataset, verbose=0)
    predicted = model.predict(dataset.map(lambda x, _: x))
print(json.dumps({"weights": [one.tolist() for one in model.get_weights()], "loss": history["loss"],
                  "mae": history["mae"], "evaluated": evaluated, "predicted": predicted.tolist()}))
"""


def trained(batches):
    """Stock Keras, with the batches of all replicas as one."""
    from tf_ipu_shim import keras2

    keras = keras2.public_module()
    model = keras.Sequential(
        [
            keras.layers.Dense(3, kernel_initializer=keras.initializers.Constant(0.5)),
            keras.layers.Dense(1, kernel_initializer="ones"),
        ]
    )
    model.compile("sgd", "mse")
    model.optimizer.learning_rate = 0.1
    losses = [model.train_on_batch(x, y) for _ in range(2) for x, y in batches]
    return model, losses


def poprun(python, interpreter, replicas, instances, steps):
    ran = python("-m", "tf_ipu_shim.cli", "poprun", "--num-replicas", replicas, "--num-instances", instances,
                 interpreter, "-m", "tf_ipu_shim", python.script(TRAINING.replace("STEPS", str(steps))))  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = {}
    for line in ran.stdout.splitlines():
        tag, _, text = line.partition("<stdout>:")
        if text.startswith("{"):
            found[tag] = json.loads(text)
    return [found[f"[1,{rank}]"] for rank in range(instances)]


def test_instances_train_one_model_each_on_its_data(python, interpreter):
    random = np.random.RandomState(0)
    x, y = random.rand(16, 4).astype("f"), random.rand(16, 1).astype("f")
    found = poprun(python, interpreter, 4, 2, 2)
    # A step takes two batches of two samples of each instance's part.
    steps = [slice(0, 8), slice(8, 16)]
    model, losses = trained([(x[step], y[step]) for step in steps])
    for rank, one in enumerate(found):
        for weight, expected in zip(one["weights"], model.get_weights()):
            np.testing.assert_allclose(weight, expected, rtol=1e-4, atol=1e-6)
        mine = slice(rank, None, 2)
        np.testing.assert_allclose(one["predicted"], model.predict(x[mine], verbose=0), rtol=1e-4)
        np.testing.assert_allclose(one["evaluated"][0], model.evaluate(x[mine], y[mine], verbose=0), rtol=1e-4)
    means = np.mean([one["loss"] for one in found], axis=0)
    np.testing.assert_allclose(means, np.reshape(losses, [2, 2]).mean(axis=1), rtol=1e-4)
