"""`horovod.tensorflow`, its Keras callbacks and what `popdist` does in some instances, in a job of two."""

import json

import numpy as np
import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

TRAINING = """
import json
import numpy as np
import popdist
import tensorflow as tf
from tensorflow.python import ipu
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as keras_hvd
from tensorflow.python.ipu import distributed, horovod

hvd.init()
rank = hvd.rank()
x = tf.constant([1.0, 2.0, 3.0]) * (rank + 1)
found = {
    "mean": hvd.allreduce(x), "sum": hvd.allreduce(x, average=False, name="a name"),
    "scaled": hvd.allreduce(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5),
    "half": hvd.allreduce(x * 1.001, op=hvd.Sum, compression=hvd.Compression.fp16),
    "slices": hvd.allreduce(tf.IndexedSlices(x, [0, 2, 2], [4]), op=hvd.Sum),
    "grouped": tf.stack(hvd.grouped_allreduce([x, x * x], op=hvd.Sum)),
    "allgather": hvd.allgather(tf.fill([rank + 1, 2], rank)), "horovod": horovod.allgather(x),
    "stacked": distributed.allgather(x), "joined": distributed.allgather(tensor=x, name="joined"),
    "broadcast": hvd.broadcast(x, 1), "keras": keras_hvd.allreduce([1.0 + rank], average=False),
}
found = {name: np.asarray(value).tolist() for name, value in found.items()}
found["object"] = hvd.broadcast_object({"rank": rank, "more": "x" * 10 * rank}, root_rank=1)
found["objects"] = hvd.allgather_object([rank] * rank)

data = np.random.RandomState(0).rand(2, 16, 4).astype("f")
targets = data.sum(-1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer=tf.constant_initializer(1.0 + rank))])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.legacy.SGD(0.1)), "mse")
model.build([None, 4])
hvd.broadcast_variables(model.variables, root_rank=0)
callbacks = [keras_hvd.callbacks.BroadcastGlobalVariablesCallback(0), keras_hvd.callbacks.MetricAverageCallback()]
history = model.fit(data[rank], targets[rank], batch_size=4, epochs=2, shuffle=False, verbose=0, callbacks=callbacks)
found["loss"], found["weights"] = history.history["loss"], [one.tolist() for one in model.get_weights()]

# The first one writes; nothing in it waits for the second.
alone = popdist.execute_on_instances({0}, lambda a, b: float(distributed.allreduce(tf.constant(a + b))), 2.0, b=1.0)
both = popdist.execute_on_instances({0, 1}, lambda: float(hvd.allreduce(tf.constant(1.0 + rank))))
found["executed"] = [alone, both, popdist.getLocalInstanceIndex(), popdist.checkNumIpusPerReplica(2)]
popdist.finalizeBackend()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(module_python, interpreter):
    ran = module_python("-m", "tf_ipu_shim.cli", "poprun", "--num-replicas=2", "--num-instances=2",
                        interpreter, "-m", "tf_ipu_shim", module_python.script(TRAINING))  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    lines = [line.partition("<stdout>:") for line in ran.stdout.splitlines()]
    return [json.loads(text) for _, text in sorted((tag, text) for tag, _, text in lines if text.startswith("{"))]


def test_collectives(found):
    x = np.array([1, 2, 3.0])
    for rank, one in enumerate(found):
        np.testing.assert_allclose(one["mean"], 1.5 * x)
        np.testing.assert_allclose(one["sum"], 3 * x)
        np.testing.assert_allclose(one["scaled"], 3 * x)
        np.testing.assert_allclose(one["half"], np.float16(x * 1.001) + np.float16(2 * x * 1.001), rtol=1e-3)
        np.testing.assert_allclose(one["slices"], [3, 0, 15, 0])
        np.testing.assert_allclose(one["grouped"], [3 * x, 5 * x * x])
        assert one["allgather"] == [[0, 0], [1, 1], [1, 1]]
        assert one["horovod"] == one["joined"] == [1, 2, 3, 2, 4, 6] and one["stacked"] == [[1, 2, 3], [2, 4, 6]]
        assert one["broadcast"] == [2, 4, 6] and one["keras"] == [3.0]
        assert one["object"] == {"rank": 1, "more": "x" * 10} and one["objects"] == [[], [1]]
        assert one["executed"] == [3.0 if rank == 0 else None, 1.5, rank, False]


def test_training(found):
    from tf_ipu_shim import keras2

    keras = keras2.public_module()
    data = np.random.RandomState(0).rand(2, 16, 4).astype("f")
    targets = data.sum(-1, keepdims=True)
    model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(keras.optimizers.legacy.SGD(0.1), "mse")
    losses = []
    for _ in range(2):
        for at in range(0, 16, 4):  # the batches of both processes as one
            batch = [np.concatenate(list(values[:, at : at + 4])) for values in (data, targets)]
            losses.append(model.train_on_batch(*batch))
    for one in found:
        np.testing.assert_allclose(one["loss"], np.reshape(losses, [2, 4]).mean(1), rtol=1e-4)
        for weight, expected in zip(one["weights"], model.get_weights()):
            np.testing.assert_allclose(weight, expected, rtol=1e-4, atol=1e-6)
