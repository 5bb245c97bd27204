"""Keras keeps masks and logits on tensors: the stages of a pipeline have those of the stages before."""

import contextlib

import numpy as np
import pytest
from keras_models import assert_near, keras, strategy

pytestmark = pytest.mark.one_version

layers = keras.layers
NUMBERS = np.random.RandomState(0)
IDS = NUMBERS.randint(0, 4, (8, 5))
X = NUMBERS.randn(8, 5, 3).astype(np.float32) * (NUMBERS.rand(8, 5, 1) > 0.4)
ONE, SEQUENCE = NUMBERS.randn(8, 1).astype(np.float32), NUMBERS.randn(8, 5, 2).astype(np.float32)
CHOICES = {"batch_size": 2, "verbose": 0}


def recurrent():
    return layers.SimpleRNN(2, kernel_initializer="ones", recurrent_initializer=keras.initializers.Constant(0.1))


def dense(units):
    return layers.Dense(units, kernel_initializer=keras.initializers.Constant(0.3))


def embedding():
    weights = keras.initializers.Constant(np.linspace(-1.0, 1.0, 12).reshape(4, 3))
    return layers.Embedding(4, 3, mask_zero=True, embeddings_initializer=weights)


def sequential():
    return keras.Sequential([embedding(), recurrent(), dense(1)])


def functional():
    """Attention and a pool by the mask of the first stage."""
    ids = keras.Input((5,), batch_size=2, dtype="int32")
    hidden = embedding()(ids)
    return keras.Model(ids, dense(1)(layers.GlobalAveragePooling1D()(layers.Attention()([hidden, hidden]))))


def with_an_early_output():
    """The first stage makes an output with its mask and logits, the last another of the same mask."""
    x = keras.Input((5, 3), batch_size=2)
    kernel = keras.initializers.Constant([[20.0, -20.0]] * 3)
    early = layers.Dense(2, "softmax", kernel_initializer=kernel, name="early")(layers.Masking()(x))
    return keras.Model(x, [early, layers.TimeDistributed(dense(2), name="late")(early)])


class Subclass(keras.Model):
    """Stages in its `call`."""

    def __init__(self, staged=False):
        super().__init__()
        self.stage = keras.ipu.PipelineStage if staged else contextlib.nullcontext
        self.parts = [embedding(), layers.Dropout(0.0), layers.GlobalAveragePooling1D(), dense(1)]

    def call(self, ids):
        with self.stage(0):
            hidden = self.parts[0](ids)
        with self.stage(1):
            return self.parts[3](self.parts[2](self.parts[1](hidden)))


MODELS = {
    "sequential": (sequential, IDS, ONE, [0, 1, 1]),
    "functional": (functional, IDS, ONE, [0, 1, 1, 1]),
    "outputs": (with_an_early_output, X, [np.abs(SEQUENCE), SEQUENCE], [0, 0, 1]),
    "subclass": (Subclass, IDS, ONE, None),
}


def put_in_stages(model, stages):
    if stages is not None:
        known = model.get_pipeline_stage_assignment()
        for one, stage in zip(known, stages, strict=True):
            one.pipeline_stage = stage
        model.set_pipeline_stage_assignment(known)
    model.set_pipelining_options(
        gradient_accumulation_steps_per_replica=4, gradient_accumulation_reduction_method="mean"
    )


def results(model, x, y, **compiling):
    loss = ["categorical_crossentropy", "mse"] if isinstance(y, list) else "mse"
    model.compile(keras.optimizers.SGD(0.0), loss, weighted_metrics=["mae"], **compiling)
    return [model.fit(x, y, shuffle=False, **CHOICES).history, model.predict(x, **CHOICES)]


@pytest.mark.parametrize("name", MODELS)
def test_masks_go_through_stages(ipus, name):
    make, x, y, stages = MODELS[name]
    ipus(2)
    expected = results(make(), x, y)
    with strategy().scope():
        model = make(staged=True) if make is Subclass else make()
        if make is not Subclass and not model.built:
            model(x[:2])
        put_in_stages(model, stages)
        assert_near(results(model, x, y, steps_per_execution=4), expected)
