"""`tf_keras` installed beside TensorFlow's own Keras 2, as many environments have it."""

import importlib.util
import textwrap

import pytest

pytestmark = [
    pytest.mark.subprocess,
    pytest.mark.one_version,
    pytest.mark.skipif(
        importlib.util.find_spec("tf_keras") is not None, reason="stands a package of that name in for an installed one"
    ),
]

# Laid out and imported in the order of tf_keras: `functional` is half loaded when `training` is complete.
_SECOND = {
    "__init__.py": "from tf_keras.src.engine.sequential import Sequential\n",
    "src/__init__.py": "",
    "src/engine/__init__.py": "",
    "src/engine/sequential.py": """
from tf_keras.src.engine import functional
class Sequential(functional.Functional): pass
""",
    "src/engine/functional.py": """
from tf_keras.src.engine import training
class Functional(training.Model):
    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls()
""",
    "src/engine/training.py": "class Model: pass\n",
}


@pytest.fixture
def second(python):
    for name, text in _SECOND.items():
        path = python.directory / "tf_keras" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_the_second_package_loads_after_ipu(python, second):
    script = python.script(
        textwrap.dedent(
            """
            from tensorflow.python import ipu
            import tf_keras
            from tf_ipu_shim import keras2
            assert type(tf_keras.Sequential()) is tf_keras.Sequential
            assert type(tf_keras.Sequential.from_config({})) is tf_keras.Sequential
            assert keras2.root() == "keras.src"
            """
        )
    )
    python.succeeds(script)


def test_tensorflow_1_keeps_its_own_keras(python, second):
    script = python.script(
        textwrap.dedent(
            """
            import tensorflow as tf
            from tensorflow.python import ipu
            assert tf.keras.layers.LSTM.__module__.startswith("keras.src."), tf.keras.layers.LSTM
            assert ipu.keras.layers.PopnnLSTM and tf.keras.layers.Dense(3)
            """
        )
    )
    python.succeeds("-m", "tf_ipu_shim", "--tf1", script)


def test_the_users_choice_of_package_counts(python, second):
    python.succeeds(
        "-c",
        "from tf_ipu_shim import keras2; assert keras2.root() == 'tf_keras.src'",
        environment={"TF_USE_LEGACY_KERAS": "1"},
    )
