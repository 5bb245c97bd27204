"""`tf-ipu check --static` knows Graphcore's names from a table, and imports no TensorFlow."""

import ast

import pytest

from tf_ipu_shim import check
from tf_ipu_shim.names import emulated_table

CODE = """
import sys
from tf_ipu_shim import cli
status = cli.main(["check", "--static", "script.py"])
assert not [name for name in sys.modules if name.partition(".")[0] in ("tensorflow", "keras", "tf_keras")]
sys.exit(status)
"""
SCRIPT = """
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.utils import no_such
from tensorflow.python.ipu import dataset_tools
c = ipu.config.IPUConfig()
c.auto_select_ipus = 1
c.slices.poplar_options = {}
c.configure_ipu_system()
ipu.ops.summary_ops.get_ipu_reports()
ipu.loops.repeat(2, f, infeed=None)
r = ipu.rnn_ops.PopnnAUGRU(8)
model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
"""

COMPARISON = """
import tensorflow as tf
from tf_ipu_shim.check import findings
from tf_ipu_shim.names import emulated, emulated_table, graphcore_names

def facts(module, name):
    state = emulated.get_status(module, name).state
    if state != emulated.EMULATED:
        return (state,)
    behind = emulated.implementing_module(module, name)
    if behind:
        return state, behind
    return state, emulated.class_lineage(module, name), emulated.argument_names(module, name)

methods = findings.keras_method_names()
live = {
    (module, name): facts(module, name)
    for module in graphcore_names.modules()
    for name in graphcore_names.attributes(module)
}
emulated_table.is_used = lambda: True
emulated_table._version = lambda: tf.version.VERSION
emulated_table.table.cache_clear()
different = {key: (row, facts(*key)) for key, row in live.items() if facts(*key) != row}
assert len(live) > 1000 and not different, different
assert emulated_table.table().keras_methods >= methods
"""


@pytest.mark.subprocess
def test_nothing_of_tensorflow_is_imported(python):
    python.script(SCRIPT)
    process = python("-c", CODE, environment={"TF_IPU_SHIM_SDK": None})
    assert process.returncode == 1, process.stderr
    live = check.find_uses([check.SourceFile(python.directory / "script.py", ast.parse(SCRIPT))])
    lines = [line.split(" ")[2:3] for line in process.stdout.splitlines() if line.startswith("  ") and ":" in line]
    refused = [f"script.py:{one.line}: {one.name}" for one in live if one.kind is check.FindingKind.REFUSED]
    assert len(refused) == 4 and lines
    for one in refused:
        assert f"  {one}" in process.stdout, (one, process.stdout)


@pytest.mark.subprocess
def test_the_table_is_that_of_the_modules(python):
    """On the TensorFlow of a new process, as scripts of other tests change classes: every name's facts."""
    python.succeeds("-c", COMPARISON)


def test_a_chosen_sdk_asks_the_modules(monkeypatch):
    monkeypatch.setattr("sys.modules", {})
    assert emulated_table.is_used()
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.6")
    assert not emulated_table.is_used()
