"""Graphcore's module names once TensorFlow is there: as attributes of their packages, and under older names."""

import importlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.layers import convolutional, normalization, pooling

from tf_ipu_shim import errors


@pytest.mark.parametrize(
    "path",
    [
        "data.ops.dataset_ops",
        "keras.extensions.functional_extensions",
        "keras.optimizers.ipu_wrappers",
        "ops.experimental.popfloat_cast_to_gfloat",
        "ops.rnn_ops_grad",
    ],
)
def test_modules_not_yet_imported_are_attributes_of_packages(path):
    found = ipu
    for name in path.split("."):
        found = getattr(found, name)
    assert found is importlib.import_module(f"tensorflow.python.ipu.{path}")


def test_a_module_not_emulated_is_refused_as_an_attribute():
    with pytest.raises(errors.MissingAttributeError, match=r"ipu\.register_keras_extensions exists in SDK 2\.6-3\.0"):
        ipu.register_keras_extensions  # noqa: B018
    with pytest.raises(errors.MissingModuleError, match=r"ipu\.register_keras_extensions exists in SDK 2\.6-3\.0"):
        from tensorflow.python.ipu import register_keras_extensions  # noqa: F401
    assert not hasattr(ipu, "register_keras_extensions")


@pytest.mark.parametrize("name", ["gradient_accumulation_optimizer", "ipu_optimizer", "sharded_optimizer"])
def test_optimizers_under_their_older_names(name):
    older = importlib.import_module(f"tensorflow.python.ipu.{name}")
    assert older is importlib.import_module(f"tensorflow.python.ipu.optimizers.{name}")
    assert older is getattr(ipu, name)


@pytest.mark.filterwarnings("ignore:`tf.layers:UserWarning")
def test_layers_of_tensorflow_1_are_in_tensorflows_own_modules():
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    with tf.Graph().as_default():
        pooled = pooling.max_pooling2d(tf.constant(x), 2, 2)
        summed = convolutional.conv2d(pooled, 1, 2, kernel_initializer=tf.ones_initializer())
        normalised = normalization.batch_normalization(pooled, epsilon=0.0, name="norm")
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            values = session.run([pooled, summed, normalised])
    np.testing.assert_array_equal(values[0].ravel(), [5, 7, 13, 15])
    assert values[1].item() == 40
    np.testing.assert_allclose(values[2], values[0])
