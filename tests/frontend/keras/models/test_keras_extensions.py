"""Keras models on the IPU against the same models trained by stock Keras on the CPU."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from keras_models import (
    assert_same,
    compiled,
    functional,
    keras,
    on_the_cpu,
    sequential,
    strategy,
    subclassed,
    trained,
)
from random_keras_training import WholeTables
from slow_cases import slowly

# Keras draws its own seeds with a float.
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]


@pytest.mark.parametrize(("make", "steps"), [slowly(sequential, 1), slowly(functional, 4), (subclassed, 8)])
def test_one_ipu(ipus, make, steps):
    ipus(1)
    with strategy().scope():
        model = compiled(make(), steps_per_execution=steps)
        assert hasattr(model, "set_pipelining_options")
        got = trained(model)
    assert_same(got, on_the_cpu(make))


@pytest.mark.parametrize("optimizer", [keras.optimizers.Adam, slowly(keras.optimizers.legacy.RMSprop)])
def test_optimizers(ipus, optimizer):
    ipus(1)
    with strategy().scope():
        model = compiled(functional(), optimizer, steps_per_execution=8)
        got = trained(model)
    assert_same(got, on_the_cpu(functional, 8, optimizer))


@pytest.mark.parametrize(("method", "rate"), [("mean", 0.1), slowly("sum", 0.025)])
def test_accumulation_is_a_larger_batch(ipus, method, rate):
    ipus(1)
    with strategy().scope():
        model = compiled(sequential(), functools.partial(keras.optimizers.SGD, rate), steps_per_execution=8)
        model.set_gradient_accumulation_options(4, method, dtype=tf.float32)
        got = trained(model)
    assert_same(got, on_the_cpu(sequential, 32))
    assert model.optimizer.iterations.numpy() == 4


@pytest.mark.parametrize("stages", [[0, 0, 1, 1], [0, 1, 2, 3]])
@pytest.mark.parametrize("make", [slowly(sequential), functional])
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


@pytest.mark.parametrize("clip", [{"clipvalue": 0.001}, slowly({"clipnorm": 0.01}), slowly({"global_clipnorm": 0.01})])
def test_embedding_gradients_are_clipped_as_rows_of_the_table(ipus, clip):
    """Not each lookup of a row by itself, as stock Keras does where there is no strategy."""

    words = np.random.RandomState(0).randint(0, 5, (16, 3)).astype(np.int32)
    wanted = np.random.RandomState(1).rand(16, 2).astype(np.float32)

    def weights(optimizer):
        keras.utils.set_random_seed(1)
        layers = [keras.layers.Embedding(5, 4), keras.layers.Flatten(), keras.layers.Dense(2)]
        model = keras.Sequential([keras.Input((3,), dtype="int32"), *layers])
        model.compile(optimizer(0.5, **clip), "mse")
        model.fit(words, wanted, batch_size=8, epochs=2, shuffle=False, verbose=0)
        return model.get_weights()

    ipus(1)
    with strategy().scope():
        got = weights(keras.optimizers.SGD)
    for one, other in zip(got, weights(WholeTables)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
