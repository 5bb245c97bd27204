"""Keras models exported for serving give what NumPy computes of their weights."""

import numpy as np
import pytest
import tensorflow as tf
from keras_models import keras, strategy
from tf_ipu_shim.ipu import serving

from tf_ipu_shim import plugin

# Keras' own seeds
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]
LEFT = np.array([[1.0, -2.0], [3.0, 4.0]], "f")
RIGHT = np.array([[5.0], [6.0]], "f")


@pytest.fixture(autouse=True)
def two_ipus(ipus):
    ipus(2)


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path / "model")


def signature_of(directory):
    return tf.saved_model.load(directory).signatures["serving_default"]


class Sum(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3, kernel_initializer="ones")

    def call(self, inputs):
        return self.dense(inputs[0]) + inputs[1]


class StagedSum(Sum):
    def call(self, inputs):
        with keras.ipu.PipelineStage(0):
            hidden = self.dense(inputs[0])
        with keras.ipu.PipelineStage(1):
            return hidden + inputs[1]


@pytest.mark.parametrize("kind", [Sum, StagedSum])
def test_a_subclassed_model(directory, kind):
    with strategy().scope():
        model = kind()
        model.build([(4, 2), (4, 1)])
        model.compile(steps_per_execution=16)
        run = serving.export_keras(model, directory, tf.constant(2))
    expected = LEFT.sum(-1, keepdims=True).repeat(3, -1) + RIGHT
    np.testing.assert_allclose(run(LEFT, RIGHT)[0], expected)
    outputs = signature_of(directory)(input_1=tf.constant(LEFT), input_2=tf.constant(RIGHT))
    np.testing.assert_allclose(outputs["output_0"], expected)


@pytest.mark.parametrize("pipelined", [False, True])
def test_a_functional_model(directory, pipelined):
    with strategy().scope():
        left, right = keras.Input((2,), name="left"), keras.Input((1,), name="right")
        hidden = keras.layers.Dense(3, name="first")(left)
        total = keras.layers.Add(name="second")([hidden, right])
        model = keras.Model([left, right], [total, hidden])
        if pipelined:
            stages = model.get_pipeline_stage_assignment()
            for assignment in stages:
                assignment.pipeline_stage = 0 if assignment.layer.name == "first" else 1
            model.set_pipeline_stage_assignment(stages)
            model.set_pipelining_options(device_mapping=[1, 0])
        model.compile(steps_per_execution=2)
        counters = plugin.load()
        before = counters.exchange(0, 1, 0).bytes
        run = model.export_for_ipu_serving(
            directory,
            2,
            ["total", "hidden"],
            preprocessing_step=lambda text: (tf.strings.to_number(text[:, :2]), tf.strings.to_number(text[:, 2:])),
            preprocessing_step_signature=[tf.TensorSpec([2, 3], tf.string)],
        )
        text = tf.strings.as_string(np.concatenate([LEFT, RIGHT], -1))
        outputs = run(text)
        assert (counters.exchange(0, 1, 0).bytes > before) == pipelined
    kernel, bias = model.get_weights()
    np.testing.assert_allclose(outputs["hidden"], LEFT @ kernel + bias, rtol=1e-5)
    np.testing.assert_allclose(outputs["total"], LEFT @ kernel + bias + RIGHT, rtol=1e-5)
    np.testing.assert_allclose(signature_of(directory)(text=text)["total"], outputs["total"])


def test_a_sequential_model(directory):
    with strategy().scope():
        model = keras.Sequential([keras.layers.Dense(3), keras.layers.Dropout(0.5), keras.layers.Activation("relu")])
        model.build((4, 2))
        model.compile()
        run = model.export_for_ipu_serving(directory, 2)
    kernel, bias = model.get_weights()
    np.testing.assert_allclose(run(LEFT)[0], np.maximum(LEFT @ kernel + bias, 0), rtol=1e-5)


def test_errors(directory):
    with pytest.raises(ValueError, match="Provided model was not created inside an IPU strategy"):
        serving.export_keras(keras.Sequential([keras.layers.Dense(3)]), directory)
    with strategy().scope():
        unknown = Sum()
        with pytest.raises(RuntimeError, match="Cannot get model's input signature. Please specify"):
            unknown.export_for_ipu_serving(directory)
        inputs = keras.Input((2,))
        model = keras.Model(inputs, keras.layers.Dense(3)(inputs))
        with pytest.raises(ValueError, match="Not all dimensions of inputs can be inferred"):
            model.export_for_ipu_serving(directory)
        for wrong in (0, "4", 2.5):
            with pytest.raises(ValueError, match=f"batch_size must be an integer of at least 1, not {wrong!r}"):
                model.export_for_ipu_serving(directory, wrong)
