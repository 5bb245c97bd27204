"""Keras under all names of its time is the one Keras 2 of `tf.keras`, once a process uses `ipu`."""

import importlib.util
import textwrap

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

# Keras 2 is `keras` with TensorFlow 2.15, and `tf_keras` with later ones.
KERAS = "tf_keras" if importlib.util.find_spec("tf_keras") is not None else "keras"
ENVIRONMENT = {"TF_USE_LEGACY_KERAS": "1"} if KERAS == "tf_keras" else {}

MIXED = """
import tensorflow as tf
{first}
from tensorflow.python.keras.layers import Dense
from tensorflow.python.keras import backend, layers
from tensorflow.python import keras as below_python
from tensorflow.keras.optimizers import Adam
{last}
import numpy as np
import {keras} as whole
from tensorflow.python.keras.applications import resnet
from tensorflow.python.keras.datasets import mnist
from tensorflow.python.keras.engine import base_layer, keras_tensor
from tensorflow.python.keras.engine.input_spec import InputSpec
from tensorflow.python.keras.layers.core import Dropout, TFOpLambda
from tensorflow.python.keras.layers.normalization import BatchNormalization, LayerNormalization, layer_normalization
from tensorflow.python.keras.layers.normalization_v2 import BatchNormalization as BatchNormalizationV2
from tensorflow.python.keras.layers.recurrent import LSTMCell
from tensorflow.python.keras.optimizer_v2 import adam, optimizer_v2
from tensorflow.python.keras.utils import get_file, tf_utils
import tensorflow.python.keras.callbacks as callbacks

assert below_python.Sequential is tf.keras.Sequential and layers.Layer is tf.keras.layers.Layer is base_layer.Layer
assert Dense is tf.keras.layers.Dense and Dropout is tf.keras.layers.Dropout is layers.Dropout
assert Adam is adam.Adam is tf.keras.optimizers.Adam and issubclass(Adam, optimizer_v2.OptimizerV2)
assert mnist.load_data is tf.keras.datasets.mnist.load_data and resnet.ResNet50 is tf.keras.applications.ResNet50
assert backend.floatx() == "float32" and get_file is tf.keras.utils.get_file
assert callbacks.Callback is tf.keras.callbacks.Callback
assert BatchNormalizationV2 is tf.keras.layers.BatchNormalization is not BatchNormalization
assert LayerNormalization is layer_normalization.LayerNormalization is tf.keras.layers.LayerNormalization
assert isinstance(tf.keras.Input((3,)), keras_tensor.KerasTensor)

with ipu.ipu_strategy.IPUStrategy().scope():
    inputs = layers.Input((3,))
    value = Dense(4, kernel_initializer="ones")(inputs)
    value = whole.layers.Dense(1, kernel_initializer="ones")(tf.math.abs(value))
    model = below_python.Model(inputs, value)
    model.compile(Adam(0.01), "mse", steps_per_execution=2)
    np.testing.assert_allclose(model.predict(np.ones((4, 3), "f"), batch_size=2), 12 * np.ones((4, 1)))
    model.fit(np.ones((4, 3), "f"), np.ones((4, 1), "f"), batch_size=2, verbose=0)

namespace = {{}}
exec("from tensorflow.python.keras.layers import *", namespace)
assert namespace["Conv2D"] is tf.keras.layers.Conv2D
for wrong in ("tensorflow.python.keras.nonsense", "tensorflow.python.keras.layers.nonsense"):
    assert importlib.util.find_spec(wrong) is None, wrong
try:
    layers.nonsense
except AttributeError as error:
    assert "'tensorflow.python.keras.layers' has no attribute 'nonsense'" in str(error)
"""


NAMELESS = """
made = {}
exec("Nameless = type('Nameless', (), {})", made)
Nameless = made["Nameless"]  # has no __module__, as a class of jaxlib
"""


@pytest.mark.slow
def test_layers_of_all_names_are_in_one_model(python):
    imported = "import importlib.util\nfrom tensorflow.python import ipu"
    for first, last in ((imported, ""), (NAMELESS, imported)):
        python.succeeds("-c", MIXED.format(first=first, last=last, keras=KERAS), environment=ENVIRONMENT)


@pytest.mark.slow
def test_a_class_made_before_ipu_under_the_runner(python):
    script = python.script(
        textwrap.dedent(
            """
            from tensorflow.python.keras.layers import Layer

            class Twice(Layer):
                def call(self, inputs):
                    return 2.0 * inputs

            import tensorflow as tf
            from tensorflow.python import ipu

            assert issubclass(Twice, tf.keras.layers.Layer)
            with ipu.ipu_strategy.IPUStrategy().scope():
                model = tf.keras.Sequential([Twice(input_shape=(1,))])
                model.compile("sgd", "mse", steps_per_execution=2)
                assert model.predict([[1.0], [3.0]], batch_size=1).tolist() == [[2.0], [6.0]]
            """
        )
    )
    python.succeeds("-m", "tf_ipu_shim", script, environment=ENVIRONMENT)


def test_modules_of_keras_26(forked):
    text = """
        import tensorflow as tf
        from tensorflow.python import ipu
        assert tf.python.keras.layers.Dense is tf.keras.layers.Dense  # nothing has imported it by this name
        from tensorflow.keras.ipu import PipelineStage
        from keras.engine import keras_tensor
        from keras.engine.topology import InputSpec, Layer
        from keras.layers.core import Dropout, Lambda, SlicingOpLambda, TFOpLambda
        from keras.layers.merge import Add, add
        from keras.optimizer_v2 import gradient_descent, learning_rate_schedule, optimizer_v2
        import keras.layers.core
        import keras.engine.training as training
        if keras.__version__.startswith("2."):  # `keras.utils` of Keras 3 is a module of its own
            from keras.utils import tf_inspect
            from keras.utils.generic_utils import register_keras_serializable, to_list
            import keras.utils.tf_inspect
            assert tf_inspect.getfullargspec(add).args == ["inputs"]

        assert PipelineStage is tf.keras.ipu.PipelineStage
        layers = tf.keras.layers
        assert (Layer, Lambda, Dropout) == (layers.Layer, layers.Lambda, layers.Dropout)
        assert gradient_descent.SGD is tf.keras.optimizers.SGD and add is layers.add
        assert training.Model is tf.keras.Model
        assert issubclass(learning_rate_schedule.PolynomialDecay, learning_rate_schedule.LearningRateSchedule)
        assert layers.core.Dropout is layers.Dropout
        from tf_ipu_shim import patches
        patches.undo()
        assert "keras.layers.core" not in sys.modules and "tensorflow.keras.ipu" not in sys.modules
    """
    forked.succeeds(forked.script("import sys\n" + textwrap.dedent(text)), environment=ENVIRONMENT)


def test_tensorflow_1(python):
    script = python.script(
        textwrap.dedent(
            """
            import tensorflow as tf
            from tensorflow.python.keras.layers import Dense
            from tensorflow.python import ipu, keras
            from tensorflow_core.python.keras.backend import unique_object_name
            import tensorflow_core._api.v1.compat.v1 as of_the_time
            from tensorflow._api.v1 import data

            assert of_the_time.placeholder is tf.placeholder and data.Dataset is tf.data.Dataset
            assert Dense is tf.keras.layers.Dense and keras.Sequential is tf.keras.Sequential
            assert keras.layers.BatchNormalization is tf.keras.layers.BatchNormalization
            assert unique_object_name("one") == "one_1"
            """
        )
    )
    python.succeeds("-m", "tf_ipu_shim", "--tf1", script, environment=ENVIRONMENT)


@pytest.mark.slow
def test_the_switch_and_stock_scripts_keep_the_copy(python):
    text = """
        import tensorflow as tf
        {ipu}
        from tensorflow.python.keras.layers import Dense
        assert Dense is not tf.keras.layers.Dense and Dense.__module__ == "tensorflow.python.keras.layers.core"
    """
    switch = {**ENVIRONMENT, "TF_IPU_SHIM_COMPAT": "stock"}
    for ipu, environment in (("from tensorflow.python import ipu", switch), ("import tf_ipu_shim", ENVIRONMENT)):
        python.succeeds("-c", textwrap.dedent(text.format(ipu=ipu)), environment=environment)
    wrong = python("-c", "from tensorflow.python import ipu", environment={"TF_IPU_SHIM_COMPAT": "new"})
    assert wrong.returncode and "TF_IPU_SHIM_COMPAT is 'new'" in wrong.stderr


def test_all_comes_back(python):
    script = python.script(
        textwrap.dedent(
            """
            import importlib, sys
            import tensorflow as tf
            from tensorflow.python import keras
            from tensorflow.python.keras.layers import Dense
            before = {name: module for name, module in sys.modules.items() if "python.keras" in name}
            copy = keras, Dense
            importlib.import_module("tensorflow.python.ipu")  # a statement would be seen before TensorFlow is imported
            import tensorflow.python.keras.layers.core
            assert keras is not copy[0] and Dense is tf.keras.layers.Dense
            from tf_ipu_shim import patches
            patches.undo()
            assert (keras, Dense) == copy and sys.modules["tensorflow.python"].keras is keras
            assert {name: module for name, module in sys.modules.items() if "python.keras" in name} == before
            """
        )
    )
    python.succeeds(script, environment=ENVIRONMENT)


FIRST_LINES = """
import tf_ipu_shim  # as the `.pth` line does
import tensorflow as tf
from tensorflow.python.framework.ops import IndexedSlices, Tensor
from tensorflow.python.keras.layers import BatchNormalization
from tensorflow.python.keras.utils import to_categorical
from tensorflow.python.ops.control_flow_ops import while_loop
{ipu}
assert (IndexedSlices, Tensor) == (tf.IndexedSlices, tf.Tensor)
assert BatchNormalization is tf.keras.layers.BatchNormalization and to_categorical is tf.keras.utils.to_categorical
assert while_loop(lambda i: i < 3, lambda i: i + 1, [0]).numpy() == 3
"""


def test_restored_names_are_there_from_a_script_s_first_line(python):
    python.succeeds(python.script(FIRST_LINES.format(ipu="from tensorflow.python import ipu")), environment=ENVIRONMENT)


@pytest.mark.slow
def test_it_is_not_there_for_stock_scripts(python):
    process = python(python.script(FIRST_LINES.format(ipu="")), environment=ENVIRONMENT)
    assert process.returncode == 1 and "ImportError: cannot import name" in process.stderr
    switch = {**ENVIRONMENT, "TF_IPU_SHIM_COMPAT": "stock"}
    process = python(python.script(FIRST_LINES.format(ipu="from tensorflow.python import ipu")), environment=switch)
    assert process.returncode == 1 and "ImportError: cannot import name" in process.stderr
