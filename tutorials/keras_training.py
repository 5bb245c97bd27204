"""Keras models on IPUs: fit, evaluate and predict; accumulation, replicas and a pipeline by calls on the same model.

    python tutorials/keras_training.py

tutorials/keras_training.md explains it.
"""

import numpy as np
from tensorflow import keras
from tensorflow.python import ipu
from tensorflow.python.ipu.config import IPUConfig

BATCH, BATCHES, EPOCHS, FEATURES, CLASSES = 16, 32, 3, 20, 5

random = np.random.RandomState(0)
x = random.randn(BATCH * BATCHES, FEATURES).astype(np.float32)
y = np.argmax(x @ random.randn(FEATURES, CLASSES), 1).astype(np.int32)


def make_model():
    """A plain Keras model with the same first weights each time."""
    initializers = [keras.initializers.GlorotUniform(seed=seed) for seed in range(3)]
    inputs = keras.Input([FEATURES])
    values = keras.layers.Dense(32, "relu", kernel_initializer=initializers[0], name="first")(inputs)
    values = keras.layers.Dense(32, "relu", kernel_initializer=initializers[1], name="second")(values)
    outputs = keras.layers.Dense(CLASSES, kernel_initializer=initializers[2], name="last")(values)
    return keras.Model(inputs, outputs)


def train(model, batch=BATCH, rate=0.2, **compile_arguments):
    """Compiles and trains; returns the losses of the epochs, the accuracy, predictions and the weights."""
    model.compile(
        keras.optimizers.SGD(rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        **compile_arguments,
    )
    history = model.fit(x, y, batch_size=batch, epochs=EPOCHS, shuffle=False, verbose=0)
    accuracy = model.evaluate(x, y, batch_size=batch, verbose=0)[1]
    return history.history["loss"], accuracy, model.predict(x, batch_size=batch, verbose=0), model.get_weights()


def on_ipus(name, ipus, replicas, larger, prepare):
    """Trains on so many IPUs what `prepare` makes of the model, and on the CPU with batches `larger` times as large."""
    config = IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()
    strategy = ipu.ipu_strategy.IPUStrategy()
    # 1. A model that is made in the scope runs on the IPU. It runs `steps_per_execution` batches without returning.
    #    Replicas share the batches of an epoch, and add up their gradients: the rate is divided to make that the mean.
    with strategy.scope():
        model = make_model()
        prepare(model)
        losses, accuracy, predictions, weights = train(
            model, rate=0.2 / replicas, steps_per_execution=BATCHES // replicas
        )
    expected_losses, expected_accuracy, expected_predictions, expected = train(make_model(), BATCH * larger)
    furthest = max(np.abs(one - other).max() for one, other in zip(weights, expected))
    print(f"{name}, IPUs: {ipus}. Loss {losses[0]:.5f} -> {losses[-1]:.5f}, accuracy {accuracy:.4f}")
    print(f"  on the CPU: loss {expected_losses[0]:.5f} -> {expected_losses[-1]:.5f}, accuracy {expected_accuracy:.4f}")
    print(f"  largest difference of a weight {furthest:.0e}. ", end="")
    same = furthest < 1e-4 and np.allclose(predictions, expected_predictions, atol=1e-3)
    print("The CPU's weights." if same else "Other weights than the CPU's!")


def accumulated(model):
    """2. The weights change after each 4 batches, by the mean of their gradients."""
    model.set_gradient_accumulation_options(
        gradient_accumulation_steps_per_replica=4,
        gradient_accumulation_reduction_method=ipu.gradient_accumulation.GradientAccumulationReductionMethod.MEAN,
    )


def pipelined(model):
    """3. Layers are assigned to two stages. Four IPUs hold two copies of them: two replicas."""
    assignment = model.get_pipeline_stage_assignment()
    for layer in assignment:
        layer.pipeline_stage = 0 if layer.layer.name in ("first", "second") else 1
    model.set_pipeline_stage_assignment(assignment)
    model.set_pipelining_options(
        gradient_accumulation_steps_per_replica=4,
        gradient_accumulation_reduction_method=ipu.gradient_accumulation.GradientAccumulationReductionMethod.MEAN,
    )
    model.set_replication_options("MEAN")


on_ipus("One batch after another", 1, 1, 1, lambda model: None)
on_ipus("Accumulation of 4 batches", 1, 1, 4, accumulated)
on_ipus("Two stages, two replicas, accumulation of 4 batches", 4, 2, 8, pipelined)

# Only simulated IPUs can be asked what they hold: leave this out on Graphcore's own system.
import tf_ipu_shim  # noqa: E402

print(tf_ipu_shim.memory_report().to_text())
