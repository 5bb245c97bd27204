"""What `tf.keras.optimizers` means in a process that uses `ipu`: the classes that had these names in TensorFlow 2.6."""

import importlib.util
import textwrap

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.slow, pytest.mark.one_version]

# Keras 2 is `keras` with TensorFlow 2.15, and `tf_keras` with later ones.
KERAS = "tf_keras" if importlib.util.find_spec("tf_keras") is not None else "keras"
ENVIRONMENT = {"TF_USE_LEGACY_KERAS": "1"} if KERAS == "tf_keras" else {}

OF_THE_TIME = """
import tensorflow as tf
{first}
from tensorflow.python import ipu
import {keras}
from tensorflow.keras.optimizers import SGD

names = ["Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "RMSprop", "SGD"]
for module in (tf.keras.optimizers, tf.optimizers, {keras}.optimizers):
    base = module.legacy.Optimizer
    assert module.Optimizer is base
    for name in names:
        assert getattr(module, name) is getattr(module.legacy, name) and issubclass(getattr(module, name), base), name
        assert isinstance(module.get(name.lower()), base), name
    assert not issubclass(module.experimental.SGD, base)
assert SGD is tf.keras.optimizers.SGD

class Signs(tf.keras.optimizers.Optimizer):
    def __init__(self, rate, **kwargs):
        super().__init__("Signs", **kwargs)
        self._set_hyper("rate", rate)

    def _create_slots(self, variables):
        for variable in variables:
            self.add_slot(variable, "seen")

    def _resource_apply_dense(self, grad, var, apply_state=None):
        seen = self.get_slot(var, "seen").assign_add(tf.ones_like(grad))
        with tf.control_dependencies([seen]):
            return var.assign_sub(self._get_hyper("rate", var.dtype) * tf.sign(grad))

    def get_config(self):
        return {{**super().get_config(), "rate": self._serialize_hyperparameter("rate")}}

strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="ones", use_bias=False, input_shape=(1,))])
    model.compile(Signs(0.25), "mse", steps_per_execution=2)
    model.fit([[1.0], [1.0]], [[0.0], [0.0]], batch_size=1, verbose=0)
    assert model.get_weights()[0] == 0.5
    assert model.optimizer.get_slot(model.weights[0], "seen").numpy().item() == 2.0
    model.compile("adam", "mse", steps_per_execution=2)
    assert type(model.optimizer) is tf.keras.optimizers.Adam
    model.fit([[1.0], [1.0]], [[0.0], [0.0]], batch_size=1, verbose=0)
    assert model.optimizer.get_slot(model.weights[0], "m") is not None
"""


def test_names_mean_the_classes_of_the_time(python):
    for first in ("", "tf.keras.optimizers.SGD"):
        python.succeeds("-c", OF_THE_TIME.format(first=first, keras=KERAS), environment=ENVIRONMENT)


def test_classes_that_were_imported_before_ipu(python):
    text = """
        from tensorflow.keras.optimizers import SGD, Adam as Other
        later = SGD
        from tensorflow.python import ipu
        import tensorflow as tf
        assert SGD is later is tf.keras.optimizers.legacy.SGD and Other is tf.keras.optimizers.legacy.Adam
        from tf_ipu_shim import patches
        patches.undo()
        assert SGD is tf.keras.optimizers.SGD is not tf.keras.optimizers.legacy.SGD
    """
    python.succeeds("-c", textwrap.dedent(text), environment=ENVIRONMENT)


def test_classes_that_were_derived_before_ipu(python):
    text = """
        import numpy as np
        import tensorflow as tf
        from tensorflow import keras
        from tensorflow.python.keras.layers import Layer

        class Momentum(keras.optimizers.Optimizer):
            def __init__(self, learning_rate, momentum):
                super().__init__(name="Momentum")
                self.learning_rate, self.momentum = learning_rate, momentum

            def _create_slots(self, variables):
                for variable in variables:
                    self.add_slot(variable, "sum")

            def _resource_apply_dense(self, grad, var, apply_state=None):
                slot = self.get_slot(var, "sum")
                return var.assign_sub(self.learning_rate * slot.assign(self.momentum * slot + grad))

        class Renamed(Momentum):
            pass

        class Both(keras.optimizers.SGD, keras.optimizers.legacy.SGD):
            pass

        class Twice(Layer):
            def call(self, inputs):
                return 2.0 * inputs

        bases = Both.__bases__
        from tensorflow.python import ipu
        assert Both.__bases__ == bases
        with ipu.ipu_strategy.IPUStrategy().scope():
            model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones", use_bias=False), Twice()])
            model.compile(Renamed(0.125, 0.5), "mse", steps_per_execution=2)
            model.fit(np.ones((2, 1), "float32"), np.zeros((2, 1), "float32"), batch_size=1, verbose=0)
        weight, total = 1.0, 0.0
        for _ in range(2):  # the loss is (2 weight)^2
            total = 0.5 * total + 8.0 * weight
            weight -= 0.125 * total
        assert model.get_weights()[0].item() == weight, model.get_weights()

        from tf_ipu_shim import patches
        patches.undo()
        assert issubclass(Momentum, keras.optimizers.experimental.Optimizer)
        assert not issubclass(Twice, keras.layers.Layer)
    """
    python.succeeds("-c", textwrap.dedent(text), environment=ENVIRONMENT)


def test_a_script_that_imports_their_package_and_never_ipu(python):
    text = """
        import sys
        import tensorflow as tf
        {first}
        from keras.optimizer_v2 import optimizer_v2
        assert isinstance(tf.keras.optimizers.SGD(), optimizer_v2.OptimizerV2) == {meant}
    """
    of_a_library = "exec(compile('import keras.optimizer_v2.optimizer_v2', '/dist-packages/some.py', 'exec'))"
    for first, meant in (("", True), (of_a_library, False)):
        python.succeeds("-c", textwrap.dedent(text).format(first=first, meant=meant), environment=ENVIRONMENT)


def test_the_switch_and_stock_scripts_keep_the_installed_classes(python):
    text = textwrap.dedent(
        """
        import tensorflow as tf
        {ipu}
        assert tf.keras.optimizers.SGD is tf.keras.optimizers.experimental.SGD
        assert not isinstance(tf.keras.optimizers.get("sgd"), tf.keras.optimizers.legacy.Optimizer)
        """
    )
    switch = {**ENVIRONMENT, "TF_IPU_SHIM_COMPAT": "stock-optimizers"}
    python.succeeds("-c", text.format(ipu="from tensorflow.python import ipu"), environment=switch)
    python.succeeds("-c", text.format(ipu="import tf_ipu_shim"), environment=ENVIRONMENT)
    wrong = python("-c", "from tensorflow.python import ipu", environment={"TF_IPU_SHIM_COMPAT": "new"})
    assert wrong.returncode and "TF_IPU_SHIM_COMPAT is 'new'" in wrong.stderr


def test_what_only_later_optimizers_have(python):
    text = """
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

with ipu.ipu_strategy.IPUStrategy().scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam({}), "mse")
    print(model.fit(np.ones([8, 2], "f"), np.ones([8, 1], "f"), batch_size=4, verbose=0).history["loss"][0] >= 0)
"""
    new = {**ENVIRONMENT, "TF_IPU_SHIM_COMPAT": "stock-optimizers"}
    for argument, error in (("weight_decay=0.1", "TypeError: Unexpected"), ("amsgrad=True", "InvalidArgumentError: ")):
        script = python.script(text.format(argument))
        refused = python(script, environment=ENVIRONMENT)
        assert refused.returncode == 1 and error in refused.stderr
        assert "TF_IPU_SHIM_COMPAT=stock-optimizers" in refused.stderr
        assert python.succeeds(script, environment=new) == "True\n"
