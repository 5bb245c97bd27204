"""A model exported for serving, in a process that cannot import this package: the same signature, the same values."""

import json

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.slow, pytest.mark.one_version]

EXPORT = """
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

weight = tf.Variable([1.0, 2.0])
table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0]), 0.0)

def branches(x):
    if tf.reduce_sum(x) > 2.5:
        return x * weight, tf.nn.dropout(x, 0.0)
    return x, x

ipu.serving.export_single_step(
    branches, "single", 16, [tf.TensorSpec([2], tf.float32)], output_names=["y", "z"],
    preprocessing_step=lambda words: table.lookup(words), preprocessing_step_signature=[tf.TensorSpec([2], tf.string)])
config = ipu.config.IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()
ipu.serving.export_pipeline(
    [lambda x: x * weight, lambda x: (x + 1.0, tf.nn.softmax(x))], "pipeline", 16,
    predict_step_signature=[tf.TensorSpec([2], tf.float32, name="words")], output_names=["y", "z"])
with tf.Graph().as_default():
    ipu.serving.export_single_step(
        lambda words: (words * tf.compat.v1.get_variable("w", initializer=[1.0, 2.0]), words), "graph", 16,
        [tf.TensorSpec([2], tf.float32)], output_names=["y", "z"],
        variable_initializer=lambda session: session.run(tf.compat.v1.global_variables_initializer()))
"""
# Runs with `-I`: neither PYTHONPATH nor the script's folder count; what is installed of this package is refused.
STOCK = """
import json, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "tf_ipu_shim" not in type(finder).__module__]
sys.modules.update(dict.fromkeys([name for name in sys.modules if name.startswith("tf_ipu_shim")] + ["tf_ipu_shim"]))
import tensorflow as tf
results = {}
for name, value in (("single", ["b", "a"]), ("pipeline", [2.0, 1.0]), ("graph", [2.0, 1.0])):
    signature = tf.saved_model.load(name).signatures["serving_default"]
    outputs = signature(words=tf.constant(value))
    results[name] = {key: tensor.numpy().tolist() for key, tensor in outputs.items()}
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:  # as TensorFlow Serving loads it
        model = tf.compat.v1.saved_model.load(session, ["serve"], name).signature_def["serving_default"]
        results[name]["session"] = session.run(model.outputs["y"].name, {model.inputs["words"].name: value}).tolist()
        functions = [function.node_def for function in graph.as_graph_def().library.function]
        nodes = [node for nodes in (graph.as_graph_def().node, *functions) for node in nodes]
        assert not [node for node in nodes if "IPU" in node.device or node.op.startswith("Ipu")]
try:
    import tf_ipu_shim
except ImportError:
    results["refused"] = True
print(json.dumps(results))
"""
CONFIGURED = """
import sys
import tensorflow as tf
from tensorflow.python import ipu
from tf_ipu_shim import plugin
config = ipu.config.IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()
for name, value in (("single", ["b", "a"]), ("pipeline", [2.0, 1.0]), ("graph", [2.0, 1.0])):
    outputs = tf.saved_model.load(name).signatures["serving_default"](words=tf.constant(value))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        model = tf.compat.v1.saved_model.load(session, ["serve"], name).signature_def["serving_default"]
        again = session.run(model.outputs["y"].name, {model.inputs["words"].name: value}).tolist()
    print(name, outputs["y"].numpy().tolist(), again, plugin.load().programs_run(0))
"""
EXPECTED = {
    "single": {"y": [2.0, 2.0], "z": [2.0, 1.0], "session": [2.0, 2.0]},
    "graph": {"y": [2.0, 2.0], "z": [2.0, 1.0], "session": [2.0, 2.0]},
    "pipeline": {"y": [3.0, 3.0], "z": [0.5, 0.5], "session": [3.0, 3.0]},
    "refused": True,
}


@pytest.fixture
def exported(python):
    python.succeeds(python.script(EXPORT, "export.py"))


def test_stock_tensorflow_runs_it(python, exported):
    printed = python.succeeds("-I", python.script(STOCK, "stock.py"), environment={"PYTHONPATH": None})
    assert json.loads(printed.splitlines()[-1]) == EXPECTED


def test_another_process_with_ipus_runs_it_on_them(python, exported):
    lines = python.succeeds(python.script(CONFIGURED, "configured.py")).splitlines()
    assert lines[-3:] == [
        "single [2.0, 2.0] [2.0, 2.0] 2",
        "pipeline [3.0, 3.0] [3.0, 3.0] 4",
        "graph [2.0, 2.0] [2.0, 2.0] 6",
    ]


def test_reading_poplar_executables_is_refused_by_name(python):
    process = python("-c", "import tf_ipu_shim, popef; popef.Reader()")
    assert "Reader is not emulated: it reads executables that Poplar has compiled" in process.stderr
