"""Models of the classes that Keras had for IPUs in SDK 1.2 to 2.1."""

import functools

import tensorflow as tf
from keras_models import CLASSES, WIDTH, X, Y, compiled, keras

from tf_ipu_shim import ipu


def layers():
    keras.utils.set_random_seed(1)
    return [
        keras.layers.Dense(8, activation="relu", name="first", input_shape=(WIDTH,)),
        keras.layers.Dense(8, activation="tanh", name="second"),
        keras.layers.Dense(8, kernel_regularizer="l2", name="third"),
        keras.layers.Dense(CLASSES, name="fourth"),
    ]


def stock():
    return keras.Sequential(layers())


def dataset(batch=8):
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(batch, drop_remainder=True)


def graph(stages):
    """Inputs and outputs of the same model, with a layer in each of `stages`; None: in no stage."""
    inputs = value = keras.Input((WIDTH,))
    for layer, stage in zip(layers(), stages):
        if stage is None:
            value = layer(value)
        else:
            with ipu.keras.PipelineStage(stage):
                value = layer(value)
    return inputs, value


def model(**options):
    return ipu.keras.Model(*graph([None] * 4), **options)


def sequential(**options):
    return ipu.keras.Sequential(layers(), **options)


def pipeline_model(stages=(0, 0, 1, 1), **options):
    return ipu.keras.PipelineModel(*graph(stages), **options)


def pipeline_sequential(cuts=(2,), **options):
    made = layers()
    bounds = [0, *cuts, len(made)]
    return ipu.keras.PipelineSequential([made[a:b] for a, b in zip(bounds, bounds[1:])], **options)


def trained(old, count, batch=8, **options):
    """What `keras_models.trained` gives, of an old model."""
    compiled(old, functools.partial(keras.optimizers.SGD, 0.1 / count))
    history = old.fit(X, Y, batch_size=batch, epochs=2, shuffle=False, verbose=0, **options).history
    further = {key: value for key, value in options.items() if key.startswith("accumulate")}
    return (
        history,
        old.evaluate(X, Y, batch_size=batch, verbose=0, **further),
        old.predict(X, batch_size=batch),
        old.get_weights(),
    )


def v1_sgd():
    return tf.compat.v1.train.GradientDescentOptimizer(0.1)
