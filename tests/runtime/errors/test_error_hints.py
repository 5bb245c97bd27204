"""What to do about an error, where neither TensorFlow nor Python says it."""

import re

import pytest
from slow_cases import slowly
from tensorflow.core.protobuf import config_pb2 as session_options
from tracebacks import COMMON, FRAME, traceback_of

from tf_ipu_shim.messages import config_pb2
from tf_ipu_shim.runtime.errors import error_display, error_hints

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

UNINITIALISED = """
def model(a):
    return a * tf.get_variable("w", initializer=1.0, use_resource=True)

with ipu.scopes.ipu_scope("/device:IPU:0"):
    result = ipu.ipu_compiler.compile(model, [1.0])
with tf.Session() as session:
    session.run(result)
"""


def test_a_variable_without_a_value(python, forked):
    shown = traceback_of(forked(python.script(COMMON + UNINITIALISED)))
    assert "Could not find variable w. This could mean" in shown and "Debug info" not in shown
    assert shown.rstrip().endswith(
        "run tf.global_variables_initializer() before the first program; make it after all variables."
    )


UNINITIALISED_METRIC = """
with ipu.scopes.ipu_scope("/device:IPU:0"):
    mean = ipu.ipu_compiler.compile(lambda a: tf.metrics.mean(a)[1], [[1.0, 2.0]])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(mean)
"""


def test_a_metric_without_a_value(python, forked):
    shown = traceback_of(forked(python.script(COMMON + UNINITIALISED_METRIC)))
    assert "The variable mean/" in shown and "has no value." in shown
    assert "tf.local_variables_initializer() for those of tf.metrics" in shown


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("x = tf.placeholder(tf.float32, [2])", "tf.placeholder is a name of TensorFlow 1: run the script with"),
        ("tf.contrib.layers", "tf.contrib is a name of TensorFlow 1"),
        ("tf.plaecholder", None),
        ("tf.ipu", "Graphcore's module is tensorflow.python.ipu."),
    ],
    ids=["name", "contrib", "misspelt", "ipu"],
)
@pytest.mark.slow
def test_names_of_tensorflow_1_without_its_option(python, line, hint):
    """Before anything of `ipu` is imported, which would install the hook."""
    shown = traceback_of(python("-m", "tf_ipu_shim", python.script(f"import tensorflow as tf\n{line}\n")))
    assert "AttributeError: module 'tensorflow' has no attribute" in shown
    assert ("--tf1" in shown) == (hint is not None and "TensorFlow 1" in hint)
    assert hint is None or hint in shown


COMPILED = """
def net(x):
    {lines}

with ipu.scopes.ipu_scope("/device:IPU:0"):
    ipu.ipu_compiler.compile(net, [tf.ones([2])])
"""


@pytest.mark.parametrize(
    "lines",
    [
        slowly("tf.placeholder(tf.float32, [2])"),
        "tf.Session().run(tf.constant(1.0) + 1.0)",
        COMPILED.format(lines="return tf.no_op()"),
        slowly(COMPILED.format(lines="return x * tf.get_variable('w', [2])")),
    ],
    ids=["placeholder", "session", "operation", "variable"],
)
def test_scripts_of_tensorflow_1_without_its_option(forked, lines):
    script = forked.script(f"import tensorflow.compat.v1 as tf\nfrom tensorflow.python import ipu\n{lines}\n")
    shown = traceback_of(forked("-m", "tf_ipu_shim", script))
    assert shown.strip().endswith(
        "A script of TensorFlow 1 makes a graph: run it with `tf-ipu run --tf1`, or have it call "
        "tensorflow.compat.v1.disable_v2_behavior() first."
    )


WITHOUT_GRADIENT = """
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

class Triangular(tf.keras.layers.Layer):
    def call(self, x):
        return tf.raw_ops.Lu(input=tf.linalg.diag(x))[0][:, 0]  # this line

with ipu.ipu_strategy.IPUStrategy().scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(3,)), Triangular(name="mine")])
    model.compile("sgd", "mse")
    model.fit(np.ones([4, 3], "f"), np.ones([4, 4], "f"), batch_size=4, verbose=0)
"""


def test_an_op_without_gradient_is_named_with_its_layer_and_line(python, forked):
    script = python.script(WITHOUT_GRADIENT)
    (line,) = (number for number, text in enumerate(WITHOUT_GRADIENT.splitlines(), 1) if "this line" in text)
    shown = traceback_of(forked(script))
    assert re.search(
        rf"no gradient of the op Lu \(\S*mine/Lu, made at {re.escape(str(script))}:{line}, in call\)", shown
    )


TWO_STRATEGIES = """
import tensorflow as tf
from tensorflow.python import ipu
one, other = ipu.ipu_strategy.IPUStrategy(), {}
with one.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
with other.scope():
    model.compile("sgd", "mse")
"""


@pytest.mark.parametrize("other", ["IPUStrategy", "MirroredStrategy"])
def test_mixed_strategies_are_named_without_their_addresses(python, forked, other):
    made = {
        "IPUStrategy": "ipu.ipu_strategy.IPUStrategy()",
        "MirroredStrategy": "tf.distribute.MirroredStrategy(['CPU:0'])",
    }
    script = python.script(TWO_STRATEGIES.format(made[other]))
    shown = traceback_of(forked(script))
    assert FRAME.findall(shown) == [(str(script), "8")] and "0x" not in shown
    kind = {"IPUStrategy": "IPUStrategyV1", "MirroredStrategy": "MirroredStrategy"}[other]
    assert f"RuntimeError: Mixing different tf.distribute.Strategy objects: {kind} is not IPUStrategyV1.\n" in shown
    assert shown.rstrip().endswith("do not nest scopes of others in it.")


def placed(kind):
    return f"Could not satisfy explicit device specification '/device:IPU:0'\nColocation Debug Info:\nOp: {kind}"


COLOCATED = (
    "Cannot assign a device for operation w/init: Could not satisfy explicit device specification '' because the node "
    "{{colocation_node w/init}} was colocated with a group of nodes that required incompatible device '/device:IPU:0'"
)

ABSENT = (
    "Cannot assign a device for operation a: a was explicitly assigned to /device:IPU:3 but available devices are [ ]"
)

GROWS = "'y' has shape (2,) before the loop, but shape (4,) after one iteration. Use set_loop_options for invariants"

NO_ATTRIBUTE = "'Sequential' object has no attribute '{}'"

NO_ARRAY = "Cannot convert a symbolic tf.Tensor (x:0) to a numpy array. This error may indicate that you called NumPy"


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (
            ModuleNotFoundError("No module named 'popart'", name="popart"),
            "another part of Graphcore's SDK: tf_ipu_shim",
        ),
        (ModuleNotFoundError("No module named 'popular'", name="popular"), None),
        (LookupError("gradient registry has no entry for: Unique"), "put tf.stop_gradient around its result"),
        (RuntimeError(placed("VariableV2")), "get_variable(..., use_resource=True)"),
        (RuntimeError(placed("VarHandleOp")), None),
        (RuntimeError(COLOCATED), "get_variable(..., use_resource=True)"),
        (RuntimeError(ABSENT), "The configuration makes no /device:IPU:3. Each entry of `auto_select_ipus`"),
        (RuntimeError(ABSENT), "A session has the devices that were configured before it."),
        (RuntimeError(ABSENT.replace("IPU", "GPU")), None),
        (AttributeError(NO_ATTRIBUTE.format("set_pipelining_options")), "`with strategy.scope(): model = ...`"),
        (AttributeError(NO_ATTRIBUTE.format("set_options")), None),
        (NotImplementedError(NO_ARRAY), "Use TensorFlow's function instead of NumPy's"),
        (ValueError(GROWS), "Begin with a tensor of the largest size"),
    ],
    ids=[
        *(
            "framework",
            "misspelt",
            "gradient",
            "reference",
            "resource",
            "colocated",
            "device",
            "session",
            "other_device",
        ),
        *("outside_scope", "other_method", "array", "grows"),
    ],
)
def test_what_to_do_is_said_where_nobody_else_does(error, hint):
    text = (error_display.display_text(error) or "").rstrip()
    assert (hint or "") in text
    assert text.endswith(".") == bool(hint)  # as none of the errors' own texts does


NO_TABLE = """
from tensorflow.compiler.plugin.poplar.ops import gen_pop_datastream_ops as ops

def model():
    return ops.ipu_device_embedding_lookup([1], embedding_id="words", embedding_shape=[4, 2], dtype=tf.float32)

with ipu.scopes.ipu_scope("/device:IPU:0"):
    result = ipu.ipu_compiler.compile(model, [])
with tf.Session() as session:
    session.run(result)
"""


def test_a_host_embedding_that_nobody_has_registered(python, forked):
    shown = traceback_of(forked(python.script(COMMON + NO_TABLE)))
    assert "There is no host embedding 'words': run ipu_host_embedding_register for its variable" in shown


@pytest.mark.parametrize(
    "use",
    [
        lambda proto: proto(ipu_options=config_pb2.IpuOptions()),
        lambda proto: proto().ipu_options.CopyFrom(config_pb2.IpuOptions()),
        lambda proto: setattr(proto(), "ipu_options", config_pb2.IpuOptions()),
    ],
    ids=["constructor", "read", "set"],
)
def test_ipu_options_of_sessions(use):
    with pytest.raises((ValueError, AttributeError)) as raised:
        use(session_options.ConfigProto)
    hint = error_hints.hint(raised.value, str(raised.value))
    assert "SDK 1.2 took ipu_options away from ConfigProto. Call ipu.utils.configure_ipu_system(options)" in hint


def test_ipu_options_of_a_script(forked, python):
    script = """
import tensorflow.compat.v1 as tf
from tensorflow.python.ipu import utils
options = utils.auto_select_ipus(utils.create_ipu_config(), 1)
with tf.Session(config=tf.ConfigProto(ipu_options=options)):
    pass
"""
    shown = traceback_of(forked(python.script(script)))
    assert shown.rstrip().endswith("and leave ipu_options out of its ConfigProto.")


def test_a_compiled_function_outside_the_scope(forked, python):
    script = """
import tensorflow as tf
from tensorflow.python import ipu
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    weight = tf.Variable(2.0)
tf.function(lambda x: x * weight, jit_compile=True)(3.0)
"""
    shown = traceback_of(forked(python.script(script)))
    assert "The function is compiled for the CPU, and its variable Variable" in shown
    assert shown.rstrip().endswith("Call it with strategy.run(function, args=...), or in `with strategy.scope():`.")
