"""Keras models on the IPU against the same models trained by stock Keras on the CPU."""

import contextlib
import functools

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim import ipu, keras2

pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange")  # Keras' own seeds
keras = keras2.public()
SAMPLES, WIDTH, CLASSES = 64, 6, 3
random = np.random.RandomState(0)
X = random.rand(SAMPLES, WIDTH).astype("f")
Y = random.randint(0, CLASSES, SAMPLES)
SGD = functools.partial(keras.optimizers.SGD, 0.1)


def sequential():
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((WIDTH,)),
            keras.layers.Dense(8, activation="relu", name="first"),
            keras.layers.Dense(8, activation="tanh", name="second"),
            keras.layers.Dense(8, kernel_regularizer="l2", name="third"),
            keras.layers.Dense(CLASSES, name="fourth"),
        ]
    )


def functional(stages=None):
    """`stages`: one for each of four layers; None: no stages."""
    keras.utils.set_random_seed(1)

    def in_stage(place):
        return contextlib.nullcontext() if stages is None else ipu_keras().PipelineStage(stages[place])

    inputs = keras.Input((WIDTH,))
    with in_stage(0):
        first = keras.layers.Dense(8, activation="relu", name="first")(inputs)
    with in_stage(1):
        second = keras.layers.Dense(8, activation="tanh", name="second")(first)
    with in_stage(2):
        joined = keras.layers.Add(name="joined")([second, first])
        third = keras.layers.Dense(8, name="third", kernel_regularizer="l2")(joined)
    with in_stage(3):
        outputs = keras.layers.Dense(CLASSES, name="fourth")(third)
    return keras.Model(inputs, outputs)


def subclassed(stages=None):
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = keras.layers.Dense(8, activation="relu")
            self.last = keras.layers.Dense(CLASSES)

        def call(self, x):
            with contextlib.nullcontext() if stages is None else ipu_keras().PipelineStage(0):
                x = self.first(x)
            with contextlib.nullcontext() if stages is None else ipu_keras().PipelineStage(1):
                return self.last(x)

    keras.utils.set_random_seed(1)
    return Own()


def ipu_keras():
    return keras.ipu


def compiled(model, optimizer=SGD, **options):
    model.compile(
        optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options
    )
    return model


def strategy():
    return ipu.ipu_strategy.IPUStrategy()


def trained(model, batch=8, epochs=2, **options):
    """History, metrics of an evaluation, predictions and weights."""
    history = model.fit(X, Y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0, **options).history
    evaluation = model.evaluate(X, Y, batch_size=8, verbose=0)
    return history, evaluation, model.predict(X, batch_size=8, verbose=0), model.get_weights()


@functools.cache
def on_the_cpu(make, batch=8, optimizer=SGD):
    return trained(compiled(make(), optimizer), batch)


def assert_same(got, expected):
    assert list(got[0]) == list(expected[0])
    for name, values in expected[0].items():
        np.testing.assert_allclose(got[0][name], values, rtol=1e-4, err_msg=name)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-4)
    np.testing.assert_allclose(got[2], expected[2], rtol=1e-3, atol=1e-5)
    for one, other in zip(got[3], expected[3]):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("make", [sequential, functional, subclassed])
@pytest.mark.parametrize("steps", [1, 4])
def test_one_ipu(ipus, make, steps):
    ipus(1)
    with strategy().scope():
        model = compiled(make(), steps_per_execution=steps)
        assert hasattr(model, "set_pipelining_options")
        got = trained(model)
    assert_same(got, on_the_cpu(make))


@pytest.mark.parametrize(
    "optimizer", [keras.optimizers.Adam, keras.optimizers.legacy.Adam, keras.optimizers.legacy.RMSprop]
)
def test_optimizers(ipus, optimizer):
    ipus(1)
    with strategy().scope():
        model = compiled(functional(), optimizer, steps_per_execution=8)
        got = trained(model)
    assert_same(got, on_the_cpu(functional, 8, optimizer))


@pytest.mark.parametrize(("method", "rate"), [("mean", 0.1), ("sum", 0.025), ("running_mean", 0.1)])
def test_accumulation_is_a_larger_batch(ipus, method, rate):
    ipus(1)
    with strategy().scope():
        model = compiled(sequential(), functools.partial(keras.optimizers.SGD, rate), steps_per_execution=8)
        model.set_gradient_accumulation_options(4, method, dtype=tf.float32)
        got = trained(model)
    assert_same(got, on_the_cpu(sequential, 32))
    assert model.optimizer.iterations.numpy() == 4


@pytest.mark.parametrize("stages", [[0, 0, 1, 1], [0, 1, 2, 3]])
@pytest.mark.parametrize("make", [sequential, functional])
def test_pipelines(ipus, make, stages):
    ipus(max(stages) + 1)
    with strategy().scope():
        model = compiled(functional(stages) if make is functional else sequential(), steps_per_execution=8)
        if make is sequential:
            assignments = model.get_pipeline_stage_assignment()
            for assignment, stage in zip(assignments, stages):
                assignment.pipeline_stage = stage
            model.set_pipeline_stage_assignment(assignments)
        model.set_pipelining_options(8, gradient_accumulation_reduction_method="mean")
        got = trained(model)
    assert_same(got, on_the_cpu(make, 64))


def test_a_pipelined_subclass(ipus):
    ipus(2)
    with strategy().scope():
        model = compiled(subclassed([0, 1]), steps_per_execution=8)
        model.set_pipelining_options(4, gradient_accumulation_reduction_method="mean")
        got = trained(model)
    assert_same(got, on_the_cpu(subclassed, 32))
