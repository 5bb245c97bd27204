"""What each SDK of the time has of its Keras models: names, classes, results and where models are made."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from keras_models import WIDTH, X, Y, assert_same, compiled, keras, on_the_cpu, strategy
from old_keras_models import layers, model, pipeline_model, pipeline_sequential, sequential, stock
from slow_cases import slowly

from tf_ipu_shim import ipu

# Keras draws its own seeds with a float.
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]
Schedule = ipu.ops.pipelining_ops.PipelineSchedule


@pytest.mark.parametrize("sdk", ["2.2", "2.5"])
def test_sdks_that_deleted_the_classes(monkeypatch, sdk):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", sdk)
    for name, stock_name in (
        ("Model", "Model"),
        ("Sequential", "Sequential"),
        ("PipelineModel", "Model"),
        ("PipelineSequential", "Sequential"),
    ):
        kind = getattr(ipu.keras, name)
        with pytest.raises(RuntimeError, match=f"{name} has been deleted. Use tf.keras.{stock_name} within"):
            kind([])


@pytest.mark.parametrize(
    "make, optimizer",
    [
        (model, functools.partial(keras.optimizers.SGD, 0.1)),
        slowly(model, functools.partial(tf.compat.v1.train.GradientDescentOptimizer, 0.1)),
        (sequential, functools.partial(keras.optimizers.SGD, 0.1)),
        slowly(functools.partial(pipeline_sequential, gradient_accumulation_count=4), None),
        (functools.partial(pipeline_model, gradient_accumulation_count=4), None),
    ],
)
def test_models_made_and_compiled_outside_the_scope(ipus, monkeypatch, make, optimizer):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    ipus(1 if optimizer else 2)
    count = 1 if optimizer else 4
    old = compiled(make(), optimizer or functools.partial(keras.optimizers.SGD, 0.1 / count))
    with pytest.raises(RuntimeError, match=r"fit may only be used .* or within such a scope: call it inside"):
        old.fit(X, Y, batch_size=8)
    with strategy().scope():
        history = old.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
        got = history, old.evaluate(X, Y, batch_size=8, verbose=0), old.predict(X, batch_size=8)
    assert_same((*got, old.get_weights()), on_the_cpu(stock, 8 * count))


@pytest.mark.parametrize("release, kind", [("1.2", tuple), ("1.4", tuple), ("2.0", np.ndarray)])
def test_predictions_of_each_sdk(ipus, monkeypatch, release, kind):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    ipus(1)
    reference = stock()
    with strategy().scope():
        old = sequential()
        predictions = old.predict(X, batch_size=8)
        inputs = keras.Input((WIDTH,))
        both = ipu.keras.Model(inputs, [inputs * 2.0, inputs + 1.0]).predict(X, batch_size=8)
    assert type(predictions) is kind and type(both) is (list if kind is np.ndarray else tuple)
    if kind is tuple:
        (predictions,) = predictions
    np.testing.assert_allclose(predictions, reference.predict(X, verbose=0), rtol=1e-4, atol=1e-5)
    for got, expected in zip(both, [X * 2, X + 1], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_names_of_each_sdk(ipus, monkeypatch):
    ipus(1)
    assert ipu.keras.model.IPUModel is ipu.keras.model.Model is ipu.keras.Model
    assert ipu.keras.model.IPUSequential is ipu.keras.Sequential
    assert (
        ipu.keras.SequentialPipelineModel is ipu.keras.pipeline.SequentialPipelineModel is ipu.keras.PipelineSequential
    )
    assert issubclass(ipu.keras.PipelineModel, keras.Model) and issubclass(ipu.keras.Sequential, keras.Sequential)
    assert ipu.keras.PipelineStage is keras.ipu.PipelineStage and ipu.keras.CTCLoss is ipu.keras.losses.CTCLoss
    with strategy().scope():
        old = ipu.keras.PipelinedModel([layers()[:2], layers()[2:]], pipeline_depth=8)
        assert isinstance(old, ipu.keras.PipelineSequential) and old.gradient_accumulation_count == 8
        monkeypatch.setenv("TF_IPU_SHIM_SDK", "1.4")
        with pytest.raises(NotImplementedError, match="PipelinedModel is no longer used. For pipelining"):
            ipu.keras.PipelinedModel([layers()], pipeline_depth=8)
        with pytest.raises(NotImplementedError, match="IPU models do not support the `save`"):
            old.save("nowhere")
        with pytest.raises(NotImplementedError, match="IPU keras models do not support the `save`"):
            sequential().save("nowhere")


@pytest.mark.parametrize("release", ["1.2", None])
def test_a_model_of_a_list_of_layers(ipus, monkeypatch, release):
    """`Model` of SDK 1.2 was what `Sequential` is since: a step adds up gradients of the mini-batches."""
    ipus(1)
    if release:
        monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    random = np.random.RandomState(0)
    x, y, weights = random.rand(8, 3).astype(np.float32), random.rand(8, 1).astype(np.float32), random.rand(3, 1)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(4, drop_remainder=True)
    with strategy().scope():
        model = ipu.keras.Model([keras.layers.Dense(1, use_bias=False, weights=[weights])], accumulation_count=2)
        assert ipu.keras.Model([]).layers == []
        with pytest.raises(ValueError, match="may only contain Keras Layers"):
            ipu.keras.Model([[keras.layers.Dense(1)]])
        model.compile(keras.optimizers.SGD(0.1), "mse")
        model.fit(data, steps_per_epoch=1, verbose=0)
    summed = sum(2 * x[part].T @ (x[part] @ weights - y[part]) / 4 for part in (slice(0, 4), slice(4, 8)))
    np.testing.assert_allclose(model.get_weights()[0], weights - 0.1 * summed, rtol=1e-5)


@pytest.mark.parametrize("release", ["1.4", "2.1"])
def test_a_model_of_layers_is_refused_where_it_takes_inputs(ipus, monkeypatch, release):
    ipus(1)
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    with strategy().scope(), pytest.raises(ValueError, match="was not provided with 'inputs' and 'outputs'"):
        ipu.keras.Model([keras.layers.Dense(1)])
