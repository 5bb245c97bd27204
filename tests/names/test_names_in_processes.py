"""Graphcore's names in a real process, over the installed TensorFlow. One process for each order of imports.

What holds in any order runs in processes that have imported `ipu` already (`forked`).
"""

import textwrap

import pytest

pytestmark = pytest.mark.subprocess

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


@pytest.mark.slow
def test_both_names_give_the_same_modules_whatever_comes_first(python):
    for first in ("import tf_ipu_shim, tensorflow", "import tensorflow, tf_ipu_shim", "import tf_ipu_shim"):
        python.succeeds("-c", SAME_OBJECTS.format(first=first))


def test_modules_are_attributes_of_their_packages(forked):
    forked.succeeds(
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


def test_what_is_missing_is_refused_by_name(forked):
    forked.succeeds(
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

            for module in ("ipu_tensorflow_addons.saved_model_tool.converter.autograph.profile",
                           "ipu_tensorflow_addons.keras.experimental",
                           "tensorflow.compiler.plugin.poplar.ops.gen_host_compute_ops"):
                error = refusal(f"import {module}")
                assert isinstance(error, errors.MissingModuleError), (module, error)
                assert "exists in SDK" in str(error) and "does not emulate it: it " in str(error)
                package, _, name = module.rpartition(".")
                error = refusal(f"from {package} import {name}")
                assert isinstance(error, errors.MissingModuleError), (module, error)
            """
        ),
    )


def test_modules_of_the_sdk_outside_tensorflow(forked):
    forked.succeeds(
        "-c",
        textwrap.dedent(
            """
            import glob, json
            import libpvti as pvti
            import tensorflow as tf
            from gcprofile import save_tf_report
            from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops

            channel = pvti.createTraceChannel("steps")
            tf.profiler.experimental.start("trace")
            with pvti.Tracepoint(channel, "one step of mine"):
                tf.constant(1.0) + 1.0
            pvti.Tracepoint.begin(channel, "begun by hand")
            pvti.Tracepoint.end(channel, "begun by hand")
            pvti.Tracepoint.event(channel, "a moment of mine")
            pvti.Graph("Loss of mine", "bits").addSeries("training").add(0.625)
            pvti.HeatmapDouble("weights of mine", [0, 1, 2, 4], "").add([0.5, 1.0, 1.5, 4.0, 4.5, -1.0])

            @pvti.instrument_fn(channel)
            def traced_by_a_decorator(value, scale=1):
                return scale * value
            assert traced_by_a_decorator(3, scale=2) == 6
            tf.profiler.experimental.stop()
            (written,) = glob.glob("trace/plugins/profile/*/*.xplane.pb")
            trace = open(written, "rb").read()
            for name in ("one step of mine", "begun by hand", "a moment of mine", "Loss of mine: training",
                         "traced_by_a_decorator", "weights of mine"):
                assert name.encode() in trace, name
            counts, _ = __import__("numpy").histogram([0.5, 1.0, 1.5, 4.0, 4.5, -1.0], [0, 1, 2, 4])
            assert " ".join(map(str, counts)).encode() in trace  # 1 2 1
            try:
                pvti.Tracepoint.end(channel, "begun by hand")
            except ValueError as error:
                assert "no span 'begun by hand'" in str(error)
            else:
                raise AssertionError

            save_tf_report(gen_ipu_ops.ipu_event_trace().numpy(), log_dir="reports/first")
            assert json.load(open("reports/first/events.json")) == []
            assert json.load(open("reports/first/memory_report.json"))["sdk"] == "3.4"
            """
        ),
    )


def test_contrib_and_sizes_of_tensorflow_1(python):
    script = python.script(
        textwrap.dedent(
            """
            import importlib.util
            import numpy as np
            import tensorflow as tf
            from tensorflow import contrib, pywrap_tensorflow
            import tensorflow.contrib as again
            from tensorflow.contrib.compiler import xla
            from tensorflow.contrib.data import map_and_batch, parallel_interleave
            from tensorflow.contrib.framework.python.framework import checkpoint_utils
            from tensorflow.contrib.framework.python.framework.checkpoint_utils import load_variable
            from tensorflow.contrib.ipu import ops
            from tensorflow.python import ipu
            from tf_ipu_shim.legacy.names.contrib import loader as table

            from tensorflow.contrib.ipu import popnn_rnn, utils
            from tensorflow.contrib.ipu.python import internal, ipu_compiler, popnn_normalization
            from tensorflow.contrib.ipu.python import popops_cross_replica_sum, poprand
            from tensorflow.contrib.ipu.python.ops import ipu_scope
            from tensorflow.contrib.ipu.python.sharding import propagate_sharding

            assert contrib is again is tf.contrib is tf.compat.v1.contrib
            assert contrib.ipu is ipu and ipu_compiler is ipu.ipu_compiler and utils is ipu.utils
            assert ipu_scope is contrib.ipu.ops.ipu_scope is ipu.scopes.ipu_scope
            assert popnn_rnn is ipu.rnn_ops and popnn_normalization.group_norm is ipu.normalization_ops.group_norm
            assert propagate_sharding is ipu.sharding.propagate_sharding and poprand is ipu.rand_ops
            assert internal.remap is ipu.internal_ops.remap and popops_cross_replica_sum is ipu.cross_replica_ops
            assert ops is ipu.ops and tf.python.ipu is ipu and not hasattr(tf.compat.v1, "nonsense")
            for module in table.MODULES:
                for name, place in table.places(module).items():
                    if importlib.util.find_spec(place.partition(".")[0]) is not None:  # 2.21 has no Estimator
                        exec(f"from tensorflow.contrib.{module} import {name}")
            assert load_variable is checkpoint_utils.load_variable is tf.train.load_variable
            from tensorflow.contrib.compiler.xla import xla as xla_of_the_module
            assert xla_of_the_module.compile is xla.compile
            assert tf.contrib.rnn.LSTMStateTuple is tf.nn.rnn_cell.LSTMStateTuple

            for uniform, bound in ((True, (6 / 50) ** 0.5), (False, 2 * (2 / 50) ** 0.5 / 0.8796)):
                initializer = tf.contrib.layers.xavier_initializer(uniform=uniform, seed=1, dtype=tf.float16)
                drawn = initializer([30, 20])
                penalty = tf.contrib.layers.l2_regularizer(0.5)([1.0, 3.0])
                penalty += tf.contrib.layers.l1_regularizer(2.0)([-1.0])
                with tf.Session() as session:
                    values, total = session.run([drawn, penalty])
                assert values.dtype == np.float16 and np.abs(values).max() <= bound * 1.001 and total == 4.5
                np.testing.assert_allclose(values.astype("f").std(), (2 / 50) ** 0.5, rtol=0.1)
            assert tf.contrib.layers.l2_regularizer(0.0)([1.0]) is None
            of = tf.contrib.layers
            w = np.array([[1.0, -3.0], [0.5, 2.0]], np.float32)
            first, second = np.abs(w).sum(), np.square(w).sum() / 2
            assert of.l1_l2_regularizer(0.0, 0.0)(w) is None and of.sum_regularizer([None]) is None
            penalties = {
                0.5 * first + 2.0 * second: of.l1_l2_regularizer(0.5, 2.0)(w),
                3.0 * first: of.l1_l2_regularizer(3.0, 0.0, scope="mine")(w),
                first + second: of.sum_regularizer([of.l1_regularizer(1.0), None, of.l2_regularizer(1.0)])(w),
                4.0 * second: of.apply_regularization(of.l2_regularizer(2.0), [tf.constant(w), tf.constant(w)]),
                0.0: of.apply_regularization(lambda weights: None, [tf.constant(w)]),
            }
            with tf.Session() as session:
                np.testing.assert_allclose(session.run(list(penalties.values())), list(penalties), rtol=1e-6)
                np.testing.assert_allclose(session.run(tf.losses.get_regularization_loss()), 4.0 * second, rtol=1e-6)
            kept = tf.layers.dense(tf.ones([1, 2]), 3, kernel_regularizer=of.l1_l2_regularizer(0.5, 0.25))
            assert len(tf.losses.get_regularization_losses()) == 3 and kept.shape == (1, 3)
            assert tf.contrib.util.constant_value(tf.constant(3)) == 3
            for wrong in (lambda: tf.contrib.layers.l2_regularizer(1), lambda: tf.contrib.layers.l1_regularizer(-1.0),
                          lambda: of.l1_l2_regularizer(1), lambda: of.apply_regularization(of.l1_regularizer(1.0)),
                          lambda: of.apply_regularization(lambda weights: weights, [tf.constant(w)]),
                          lambda: tf.contrib.layers.variance_scaling_initializer(mode="FAN")):
                try:
                    wrong()
                except ValueError as error:
                    said = ("must be a float that is not negative", "Unknown mode 'FAN'", "no weights", "not a scalar")
                    assert any(part in str(error) for part in said), error
                else:
                    raise AssertionError(wrong)
            from tensorflow.contrib.learn.python.learn.estimators.constants import ProblemType
            from tensorflow.contrib.learn.python.learn.utils import saved_model_export_utils
            make = saved_model_export_utils.build_standardized_signature_def
            x = tf.placeholder(tf.float32, [2], "x")
            signature = make({"a": x}, {"b": x}, ProblemType.UNSPECIFIED)
            assert signature.inputs["a"].name == signature.outputs["b"].name == "x:0"
            assert signature.method_name == tf.saved_model.signature_constants.PREDICT_METHOD_NAME
            try:
                make({"a": x}, {"b": x}, ProblemType.CLASSIFICATION)
            except NotImplementedError as error:
                assert "Use tf.compat.v1.saved_model.classification_signature_def" in str(error)
            else:
                raise AssertionError
            for wrong, said in (
                ("tf.contrib.layers.conv2d", "tensorflow.contrib.layers.conv2d: TensorFlow no longer has"),
                ("from tensorflow.contrib import slim", "are a separate package: pip install tf_slim"),
                ("import tensorflow.contrib.slim.nets", "are a separate package: pip install tf_slim"),
                ("import tensorflow.contrib.eager as eager", "contrib.eager: TensorFlow no longer has"),
                ("from tensorflow.contrib.rnn import Nonsense", "tensorflow.contrib.rnn has BasicLSTMCell, "),
            ):
                try:
                    exec(wrong)
                except (AttributeError, ImportError) as error:
                    assert said in str(error), error
                else:
                    raise AssertionError(wrong)

            with tf.contrib.summary.create_file_writer("events").as_default():
                with tf.contrib.summary.always_record_summaries():
                    tf.contrib.summary.scalar("half", tf.constant(0.5), step=tf.constant(3, tf.int64))
                with tf.Session() as session:
                    tf.contrib.summary.initialize(graph=None, session=session)
                    session.run(tf.contrib.summary.all_summary_ops())
                    session.run(tf.contrib.summary.flush())
            import glob
            (written,) = glob.glob("events/*")
            (event,) = [event for event in tf.train.summary_iterator(written) if event.summary.value]
            value = event.summary.value[0]
            assert event.step == 3 and value.tag == "half", event
            assert tf.make_ndarray(value.tensor) == 0.5 if value.HasField("tensor") else value.simple_value == 0.5

            # Sizes are objects, and whole numbers of any type.
            size = tf.placeholder(tf.float32, [6, None]).shape[0]
            assert tf.zeros([size.value / 2, size * 2.0]).shape.as_list() == [3, 12]
            assert {size: "a"}[tf.Dimension(6)] == "a" and tf.TensorShape([4.0, size]).as_list() == [4, 6]
            try:
                tf.TensorShape([2.5])
            except TypeError as error:
                assert "2.5" in str(error)
            else:
                raise AssertionError
            """
        )
    )
    python.succeeds("-m", "tf_ipu_shim", "--tf1", script)
    stock = python("-c", "import tf_ipu_shim, tensorflow.contrib")
    assert stock.returncode and "No module named 'tensorflow.contrib'" in stock.stderr


@pytest.mark.slow
def test_slim_is_a_package_of_its_own(python):
    layers = python.directory / "tf_slim" / "layers"  # beside the script
    layers.mkdir(parents=True)
    (layers.parent / "__init__.py").write_text("from tf_slim import layers\ndef arg_scope(): return 'scope'\n")
    (layers / "__init__.py").write_text("def conv2d(): return 'convolution'\n")
    script = python.script(
        textwrap.dedent(
            """
            import tensorflow.contrib.slim as slim
            from tensorflow.contrib import layers
            from tensorflow.contrib.framework import arg_scope, get_global_step
            from tensorflow.contrib.slim import layers as of_slim
            import tf_slim

            assert slim is tf_slim and of_slim is tf_slim.layers and arg_scope() == "scope"
            assert layers.conv2d() == "convolution" and callable(layers.xavier_initializer)
            """
        )
    )
    python.succeeds("-m", "tf_ipu_shim", script)


@pytest.mark.one_version
def test_addons_from_their_sources_alone(python):
    package = python.directory / "ipu_tensorflow_addons"
    for path, text in (
        ("__init__.py", "from ipu_tensorflow_addons.util import checked\n"),
        ("util/__init__.py", ""),
        (
            "util/checked.py",
            "from ipu_tensorflow_addons.util._dependency_versions import TENSORFLOW_VERSION as found\n",
        ),
    ):
        file = package / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    script = python.script(
        textwrap.dedent(
            """
            import sys, tensorflow
            sys.path.insert(0, {directory!r})
            from ipu_tensorflow_addons.util import checked
            assert checked.found == tensorflow.__version__ and checked.__file__.startswith({directory!r})
            """
        ).format(directory=str(python.directory))
    )
    python.succeeds(script)


def test_moved_tensorflow_names(forked):
    """Every entry of the tables leads to something, and does not copy modules."""
    forked.succeeds(
        "-c",
        textwrap.dedent(
            """
            import importlib, sys
            import tf_ipu_shim
            from tensorflow.python import ipu
            import tensorflow as tf
            from tf_ipu_shim.legacy.names.tensorflow import stock_aliases, stock_moves

            for name in (*stock_moves.MODULES, *stock_moves.EMPTY_PACKAGES):
                if name.startswith("ipu_tensorflow_addons."):
                    continue  # of a checkout of the addons: test_addons_from_their_sources_alone
                module = importlib.import_module(name)
                # Below `tensorflow.python.keras` all is Keras', once `ipu` is imported: test_one_keras.
                if name not in stock_moves.EMPTY_PACKAGES and not name.startswith("tensorflow.python.keras."):
                    assert module is importlib.import_module(stock_aliases.find(name)), name
            for names in stock_moves.TOP_LEVEL.values():
                for name in names.split():
                    exec(f"from tensorflow.python import {name}")
            for module, attributes in stock_moves.ATTRIBUTES.items():
                for name in attributes:
                    assert getattr(importlib.import_module(f"tensorflow.python.{module}"), name) is not None

            from tensorflow.python.autograph import do_not_convert
            assert do_not_convert is tf.autograph.experimental.do_not_convert
            from tensorflow.python.keras.api._v2.keras import layers
            assert layers.Dense is tf.keras.layers.Dense
            from tensorflow.python.keras.layers.normalization import BatchNormalizationBase
            assert issubclass(tf.keras.layers.BatchNormalization, BatchNormalizationBase)
            from tensorflow.python.keras.mixed_precision.experimental import loss_scale_optimizer, policy
            assert policy.Policy("mixed_float16", loss_scale="dynamic").compute_dtype == "float16"
            made = loss_scale_optimizer.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1), 8)
            assert isinstance(made, loss_scale_optimizer.LossScaleOptimizer) and float(made.loss_scale) == 8
            from tensorflow.python import dtypes
            assert dtypes.float32 is tf.float32
            from tensorflow.python.ops import control_flow_ops
            assert control_flow_ops.while_loop is tf.compat.v1.while_loop
            from tensorflow.python.framework import ops
            assert ops.convert_to_tensor_or_indexed_slices(1.5).numpy() == 1.5
            from tensorflow.python.data.ops import dataset_ops
            assert isinstance(tf.data.Dataset.range(3).map(lambda x: x), dataset_ops.MapDataset)
            from tensorflow.python.data.experimental.ops.optimization_options import OptimizationOptions
            assert isinstance(tf.data.Options().experimental_optimization, OptimizationOptions)
            from tensorflow.python.ops.variable_scope import variable
            with tf.Graph().as_default():
                assert variable(1.0, use_resource=True).shape == ()
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


@pytest.mark.slow
def test_horovod_is_found_by_scripts_for_ipus_alone(python):
    stock = """
import importlib.util
import tf_ipu_shim
for name in ("horovod", "horovod.tensorflow", "tensorflow.contrib"):
    try:
        assert importlib.util.find_spec(name) is None
    except ModuleNotFoundError:
        assert name == "horovod.tensorflow"  # for its package
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert error.name == name.removesuffix(".tensorflow") and "Import tensorflow.python.ipu before it" in str(error)
    else:
        raise AssertionError(name)
importlib.import_module("tensorflow.python.ipu")
importlib.import_module("horovod.tensorflow")
"""
    for_ipus = """
import tf_ipu_shim
import horovod.tensorflow as hvd
from tensorflow.python import ipu
hvd.init()
assert hvd.size() == 1
"""
    for script in (stock, for_ipus):
        python.succeeds(python.script(script))
    (python.directory / "parts").mkdir()
    python.script("from tensorflow.python import ipu\n", "parts/model.py")
    part = "import tf_ipu_shim\nimport horovod.tensorflow as hvd\nfrom tensorflow import pywrap_tensorflow\n"
    python.succeeds(python.script(part, "parts/arguments.py"))  # `ipu` is imported beside it
