"""Graphcore's names in a real process, over the installed TensorFlow. One process for each order of imports."""

import textwrap

SAME_OBJECTS = """
import importlib, importlib.util, sys
{first}
assert importlib.util.find_spec("tensorflow.python.ipu") is not None
from tensorflow.python import ipu
import tensorflow as tf
import tensorflow.python.ipu.ops
import tensorflow.python.ipu as imported
from tensorflow.python.ipu import ops
import tf_ipu_shim.ipu.ops
from tf_ipu_shim import ipu as own
assert ipu is own is imported is sys.modules["tensorflow.python.ipu"] is sys.modules["tf_ipu_shim.ipu"]
assert ops is tf_ipu_shim.ipu.ops is ipu.ops is sys.modules["tensorflow.python.ipu.ops"]
assert sys.modules["tensorflow.python"].ipu is ipu
assert ipu.__spec__.name == ipu.__name__ == "tf_ipu_shim.api.ipu"
assert ipu.__spec__.origin == ipu.__file__

import tensorflow.compiler.plugin.poplar.ops as theirs
import tf_ipu_shim.poplar.ops as ours
assert theirs is ours

assert importlib.reload(ops) is ops is sys.modules["tf_ipu_shim.ipu.ops"]
assert float(tf.constant(2.0) * 3.0) == 6.0
"""


def test_both_names_give_the_same_modules_whatever_comes_first(python):
    for first in ("import tf_ipu_shim, tensorflow", "import tensorflow, tf_ipu_shim", "import tf_ipu_shim"):
        python.succeeds("-c", SAME_OBJECTS.format(first=first))


def test_modules_are_attributes_of_their_packages(python):
    python.succeeds(
        "-c",
        textwrap.dedent(
            """
            from tensorflow.python import ipu
            assert ipu.distributed.host_collective_ops.allreduce and ipu.distributed.popdist_strategy.PopDistStrategy
            assert ipu.horovod.popdist_strategy.IPUMultiReplicaStrategy is not None
            assert ipu.eager.backprop.GradientCaptureTape and ipu.ops.op_util.bool_to_three_state
            from tensorflow.keras import ipu as below_keras
            from tf_ipu_shim import keras
            assert below_keras is keras
            """
        ),
    )


def test_what_is_missing_is_refused_by_name(python):
    python.succeeds(
        "-c",
        textwrap.dedent(
            """
            import tf_ipu_shim
            from tf_ipu_shim import errors

            def refusal(statement):
                try:
                    exec(statement, {})
                except Exception as error:
                    return error

            # Not emulated by this release; what Graphcore never had gives Python's own errors.
            for statement in ("from tensorflow.python.ipu import vertex_edsl_nobody_has",
                              "import tensorflow.python.ipu.nonsense",
                              "from tensorflow.compiler.plugin.poplar.ops import gen_nonsense"):
                error = refusal(statement)
                assert isinstance(error, ImportError) and not isinstance(error, errors.ShimError), (statement, error)
                assert "nonsense" in str(error) or "nobody_has" in str(error)

            for module in ("ipu_tensorflow_addons.saved_model_tool.converter",
                           "ipu_tensorflow_addons.saved_model_tool.ipu_convert",
                           "tensorflow.compiler.plugin.poplar.ops.gen_application_runtime"):
                error = refusal(f"import {module}")
                assert isinstance(error, errors.MissingModuleError), (module, error)
                assert "exists in SDK" in str(error) and "does not emulate it yet" in str(error)
                package, _, name = module.rpartition(".")
                error = refusal(f"from {package} import {name}")
                assert isinstance(error, errors.MissingModuleError), (module, error)
            """
        ),
    )


def test_moved_tensorflow_names(python):
    """Every entry of the tables leads to something, and does not copy modules."""
    python.succeeds(
        "-c",
        textwrap.dedent(
            """
            import importlib, sys
            import tf_ipu_shim
            from tensorflow.python import ipu
            import tensorflow as tf
            from tf_ipu_shim.names import stock_aliases

            for name in (*stock_aliases._MODULES, *stock_aliases.EMPTY_PACKAGES, *stock_aliases._KERAS_MODULES):
                module = importlib.import_module(name)
                if name not in stock_aliases.EMPTY_PACKAGES:
                    assert module is importlib.import_module(stock_aliases.find(name)), name
            for names in stock_aliases._TOP_LEVEL.values():
                for name in names.split():
                    exec(f"from tensorflow.python import {name}")
            for module, attributes in stock_aliases._ATTRIBUTES.items():
                for name in attributes:
                    assert getattr(importlib.import_module(f"tensorflow.python.{module}"), name) is not None

            from tensorflow.python import dtypes
            assert dtypes.float32 is tf.float32
            from tensorflow.python.ops import control_flow_ops
            assert control_flow_ops.while_loop is tf.compat.v1.while_loop
            from tensorflow.python.keras.datasets import mnist
            assert mnist.load_data is tf.keras.datasets.mnist.load_data
            import keras.engine.training as training
            assert training is sys.modules[training.__name__]
            from keras.optimizer_v2 import gradient_descent, learning_rate_schedule
            assert issubclass(learning_rate_schedule.PolynomialDecay, learning_rate_schedule.LearningRateSchedule)
            try:
                control_flow_ops.nonsense
            except AttributeError as error:
                assert "nonsense" in str(error)
            """
        ),
    )
