"""Keras models for errors that Graphcore documents."""

import contextlib

from keras_models import compiled, keras, strategy

STAGE = keras.ipu.PipelineStage


def dense():
    return keras.layers.Dense(3)


def sequential(count=2):
    return keras.Sequential([keras.Input((6,)), *(dense() for _ in range(count))])


def functional(stages=(None, None)):
    inputs = outputs = keras.Input((6,))
    for stage in stages:
        with contextlib.nullcontext() if stage is None else STAGE(stage):
            outputs = dense()(outputs)
    return keras.Model(inputs, outputs)


class Own(keras.Model):
    def __init__(self, first=None):
        super().__init__()
        self.first, self.last = first or dense(), dense()

    def call(self, x):
        return self.last(self.first(x))


def model_of(make, use=None, **options):
    """Makes a model in the scope of a strategy, compiles it and uses it there."""

    def call():
        with strategy().scope():
            model = make()
            if use is not None:
                use(compiled(model, **options))

    return call
