"""What is patched of TensorFlow and Keras is in the register, all of it, and comes back as it was."""

import textwrap

import pytest

pytestmark = pytest.mark.subprocess

# Functions for the scripts: what classes and modules of TensorFlow and Keras hold, and a use of all that we patch.
_COMMON = textwrap.dedent(
    '''
    import importlib, signal, sys, types, warnings
    import numpy as np
    import tensorflow as tf
    from tf_ipu_shim import patches

    signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background is told to ignore it
    _PYTHONS = ("numpy", "collections", "inspect", "json", "signal", "time", "fractions", "os", "base64")
    ABSENT = object()

    def is_stock(name):
        return name.split(".")[0] in ("tensorflow", "keras", "tf_keras") or name in _PYTHONS

    def held():
        """By id, each module and class with its attributes as they are now."""
        found = {}
        for name, module in list(sys.modules.items()):
            if is_stock(name) and isinstance(module, types.ModuleType):
                found[id(module)] = module.__name__, module, dict(vars(module))
                for value in list(vars(module).values()):
                    if isinstance(value, type) and is_stock(value.__module__):
                        found[id(value)] = f"{value.__module__}.{value.__name__}", value, dict(vars(value))
        return found

    def changed(before):
        return {
            f"{owner_name}.{name}"
            for owner_name, owner, stock in before.values()
            for name in {*stock, *vars(owner)} - {"__annotations__"}  # which Python makes when they are asked for
            if stock.get(name, ABSENT) is not vars(owner).get(name, ABSENT)
        }

    def ours():
        """Attributes of TensorFlow and Keras that are functions, classes or modules of this package."""
        def is_ours(value):
            value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            value = value.fget if isinstance(value, property) else value
            if isinstance(value, type):
                return value.__module__.startswith("tf_ipu_shim")
            if isinstance(value, types.FunctionType):
                return value.__globals__["__name__"].startswith("tf_ipu_shim")
            # Asking a lazy module for anything else would load it.
            return isinstance(value, types.ModuleType) and vars(value).get("__name__", "").startswith("tf_ipu_shim")
        return {
            f"{owner_name}.{name}"
            for owner_name, _, attributes in held().values()
            for name, value in attributes.items()
            if is_ours(value)
        }

    def stock_use():
        x = tf.Variable(1.0)
        with tf.GradientTape() as tape:
            y = tf.function(lambda: x * x)()
        assert tape.gradient(y, x) == 2.0
        assert [int(one) for one in tf.data.Dataset.range(2)] == [0, 1]
        model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
        assert type(model) is tf.keras.Sequential
        model.compile("sgd", "mse")
        model.fit(tf.ones([4, 3]), tf.ones([4, 2]), verbose=0)
        assert "ipu" not in str(model.get_config())

    def ipu_use():
        # Where a statement imports it, some of what it changes is so when TensorFlow has been imported.
        ipu = importlib.import_module("tensorflow.python.ipu")
        config = ipu.config.IPUConfig()
        config.auto_select_ipus = 2
        config.configure_ipu_system()
        keras = tf.keras
        with ipu.ipu_strategy.IPUStrategyV1().scope():
            inputs = keras.Input((3,))
            with keras.ipu.PipelineStage(0):
                hidden = keras.layers.Dense(4)(inputs)
            with keras.ipu.PipelineStage(1):
                outputs = keras.layers.Dense(2)(hidden)
            model = keras.Model(inputs, outputs)
            assert type(model) is not keras.Model and isinstance(model, keras.Model)
            model.compile("sgd", "mse", steps_per_execution=4)
            model.set_pipelining_options(4, gradient_accumulation_reduction_method="mean")
            model.fit(np.ones((16, 3), "f"), np.ones((16, 2), "f"), batch_size=4, verbose=0)
    '''
)


def test_all_is_as_it_was(python):
    script = python.script(
        _COMMON
        + textwrap.dedent(
            """
            import tensorflow.keras
            import tensorflow.python.keras.engine.training
            stock_use()
            finders, before = list(sys.meta_path), held()
            ipu_use()
            registered = {patch.target for patch in patches.applied()}
            assert all(patch.why and patch.undone and patch.checked for patch in patches.applied())
            beyond = {
                "sys.meta_path", "sys.meta_path: Keras", "sys.meta_path: Keras 2.6", "sys.meta_path: yaml",
                "sys.excepthook", "SIGINT", "threading.excepthook",
                "sys.meta_path: tensorflow.python.layers.normalization",
                "sys.meta_path: tensorflow.python.tools.saved_model_cli",
                "sys.modules['tensorflow.python.keras']",
                "tensorflow.python.pywrap_tfe.TFE_Py_RegisterGradientFunction",
                "tensorflow.compat.v1.__getattr__",  # of a module inside the one that sys.modules has
                *({"sys.meta_path: keras"} & registered),  # where TensorFlow brings Keras 3
            }
            # What a finder serves is set on the package around it; all else is one entry of the register each.
            scripts = {target for target in registered if target.startswith("__main__.")}
            assert changed(before) == registered - beyond - scripts | {
                "tensorflow.python.ipu", "tensorflow.python.keras",
            }, changed(before) ^ (registered - beyond)
            # The optimizers of TensorFlow 2.6 are Keras' own classes, under the names that they had.
            classes = {target for target in registered if ".optimizers." in target and not target.endswith(".get")}
            texts = {target for target in registered if target.endswith("._keras_api_names")}
            # Loss scales are TensorFlow's own, those of `compat.v1`.
            scales = {target for target in registered if ".train.experimental." in target}
            assert len(scales) == 5
            assert registered >= beyond and ours() >= registered - beyond - scripts - classes - texts - scales - {
                "tensorflow.python.autograph.core.config.CONVERSION_RULES", "tensorflow.python",
                "tensorflow.mixed_precision",
            }
            patches.undo()
            assert patches.applied() == [] and changed(before) == set(), changed(before)
            assert not hasattr(tf.compat.v1, "contrib")
            assert [one for one in sys.meta_path if type(one).__module__.startswith("tf_ipu_shim")] == []
            assert "tensorflow.python.ipu" not in sys.modules
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            stock_use()
            """
        )
    )
    python.succeeds(script)


def test_packages_that_are_loaded_after_ipu(python):
    script = python.script(
        _COMMON
        + textwrap.dedent(
            """
            ipu_use()  # Keras is not loaded yet
            import tensorflow.python.keras.engine.training as training
            from tensorflow.python.ops import variables
            assert {"ipu", "__new__", "compile", "__init__"} <= {name.rpartition(".")[2] for name in ours()}
            assert variables.RefVariable  # moved since
            patches.undo()
            assert ours() == set(), ours()
            assert "exec_module" not in vars(training.__spec__.loader)
            assert not hasattr(variables, "RefVariable")
            stock_use()
            """
        )
    )
    python.succeeds(script)


def test_tensorflow_1(python):
    script = python.script(
        textwrap.dedent(
            """
            import sys
            import tensorflow as tf
            import tensorflow.compat.v1 as v1
            from tf_ipu_shim import patches
            assert tf.__version__.startswith("1.15") and tf.placeholder
            assert v1.__version__ == v1.VERSION == tf.VERSION
            assert "sys.modules['tensorflow']" in [patch.target for patch in patches.applied()]
            patches.undo()
            import tensorflow
            assert tensorflow.__version__.startswith("2.") and not hasattr(tensorflow, "placeholder")
            assert v1.__version__ == v1.VERSION == tensorflow.__version__
            """
        )
    )
    python.succeeds("-m", "tf_ipu_shim", "--tf1", script)
