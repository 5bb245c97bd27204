"""Keras 2 is found and used by itself; who chooses Keras 3 is told so where a model of it should run on IPUs."""

import importlib.util

import pytest

from tf_ipu_shim import keras2

pytestmark = pytest.mark.subprocess

# TensorFlow brings Keras 3, and Keras 2 is `tf_keras`.
APART = importlib.util.find_spec("tf_keras") is not None
ENVIRONMENT = {"TF_USE_LEGACY_KERAS": None, "TF_IPU_SHIM_COMPAT": None}
# A script that imports TensorFlow first, as most do, and Keras before `ipu`.
SCRIPT = """
import os
import tensorflow as tf
from tensorflow import keras
from tensorflow.python import ipu
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    try:
        print(type(keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])).__mro__[2].__module__)
    except NotImplementedError as error:
        print(error)
model = keras.Sequential([keras.layers.Dense(2)])
model(tf.ones([1, 3]))
print(type(model).__module__, os.environ.get("TF_USE_LEGACY_KERAS"))
"""


def test_keras_2_is_used_by_itself(python):
    script = python.script("import tf_ipu_shim\n" + SCRIPT)  # as the `.pth` line does
    in_scope, elsewhere, variable = python.succeeds(script, environment=ENVIRONMENT).split()
    assert in_scope.startswith("tf_ipu_shim.frontend.keras.")
    assert elsewhere == f"{keras2.root()}.engine.sequential"
    assert variable == ("1" if APART else "None")


@pytest.mark.one_version
def test_a_wrong_value_is_an_error_where_ipu_is_imported_alone(python):
    """Not in every script of the environment that imports TensorFlow."""
    wrong = {**ENVIRONMENT, "TF_IPU_SHIM_COMPAT": "abacus"}
    imports = "import importlib, tf_ipu_shim, tensorflow as tf\n"
    script = python.script(f"{imports}print(tf.ones([]).numpy())\nimportlib.import_module('tensorflow.python.ipu')\n")
    process = python(script, environment=wrong)
    assert (process.returncode, process.stdout) == (1, "1.0\n")
    assert process.stderr.splitlines()[-1].startswith(
        "tf_ipu_shim.errors.UnsupportedError: TF_IPU_SHIM_COMPAT is 'abac"
    )
    assert process.stderr.count('  File "') == 1, process.stderr


IMPORTS = """
import keras
import keras.utils
from keras import backend
from keras.engine import training
from keras.layers import Dense
from keras.layers.core import Dropout
from keras import testing_utils
from keras.optimizer_v2 import adam
"""


def test_keras_by_its_own_name_is_the_same_in_a_script_for_ipus(python):
    rest = """
import tensorflow as tf
from tensorflow.python import ipu
from keras.ipu import PipelineStage
from tf_ipu_shim import keras2
assert Dense is keras.layers.Dense is tf.keras.layers.Dense and Dropout is tf.keras.layers.Dropout
assert backend.epsilon is tf.keras.backend.epsilon
assert testing_utils is keras2.module("testing_infra.test_utils") and adam.Adam is tf.keras.optimizers.Adam
assert training is keras2.module("engine.training") and keras.ipu is tf.keras.ipu
with ipu.ipu_strategy.IPUStrategy().scope():
    print(isinstance(keras.Sequential([Dense(2, input_shape=(3,))]), tf.keras.Model))
"""
    script = python.script("import tf_ipu_shim\n" + IMPORTS + rest)
    assert python.succeeds(script, environment=ENVIRONMENT).split() == ["True"]


@pytest.mark.skipif(not APART, reason="this TensorFlow has no Keras 3")
def test_keras_is_the_installed_one_in_a_stock_script(python):
    script = python.script("import tf_ipu_shim\nimport keras\nprint(keras.__version__)")
    assert python.succeeds(script, environment=ENVIRONMENT).startswith("3.")


@pytest.mark.skipif(not APART, reason="this TensorFlow has no Keras 3")
@pytest.mark.parametrize("choice", [{"TF_USE_LEGACY_KERAS": "0"}, {"TF_IPU_SHIM_COMPAT": "stock"}], ids=str)
def test_keras_3_is_refused_in_a_scope_and_works_elsewhere(python, choice):
    script = python.script("import tf_ipu_shim\n" + SCRIPT)
    message, elsewhere = python.succeeds(script, environment={**ENVIRONMENT, **choice}).splitlines()
    assert "Sequential is a model of Keras 3, which cannot run on IPUs" in message
    assert elsewhere.split() == ["keras.src.models.sequential", choice.get("TF_USE_LEGACY_KERAS", "None")]
