"""The examples in the docstrings run, and print what they show. Those of `machine` run in tests/machine.

They may use `tf`, `np`, `ipu`, `tf_ipu_shim` and the names of their own module, `strategy`, an `IPUStrategy` on the
first device, and `train.py`, a script in the working directory. There is one IPU, or two where an example says
"on a device of two IPUs".
"""

import importlib
import pathlib
import sys

import examples
import numpy as np
import pytest
import tensorflow as tf

import tf_ipu_shim
from tf_ipu_shim import ipu
from tf_ipu_shim.frontend.applications import engines
from tf_ipu_shim.frontend.ops import emulation_registry

pytestmark = pytest.mark.one_version

SCRIPT = """
import tensorflow as tf
from tensorflow.python import ipu

strategy = ipu.ipu_strategy.IPUStrategy()
strategy.run(tf.function(lambda x: 2.0 * x), args=[tf.constant(1.0)])
"""
TWO_IPUS = "on a device of two IPUs"
EXAMPLES = examples.of(but=("machine", "cycle_model"))


@pytest.fixture(autouse=True)
def own_process(monkeypatch, tmp_path):
    """What scripts that an example runs change of the process is changed back."""
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(emulation_registry, "emulations", {})
    yield
    while engines._engines:  # of embedded applications: they hold IPUs
        engines._engines.popitem()[1].close()


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_examples(example, ipus):
    assert ">>>" in example.text, "an example is something that can be run"
    if example.module.startswith("tf_ipu_shim.legacy.estimators"):
        pytest.importorskip("tensorflow_estimator", reason="TensorFlow has it up to 2.15")
    module = importlib.import_module(example.module)
    names = {"tf": tf, "np": np, "ipu": ipu, "tf_ipu_shim": tf_ipu_shim, **vars(module)}
    names["__name__"] = "__main__"  # autograph converts a script's functions, and none of ours
    if TWO_IPUS in example.text:
        ipus(2)
    if "strategy" in example.text:
        names.setdefault("strategy", ipu.ipu_strategy.IPUStrategyV1())
    example.run(names)


def test_examples_leave_the_path_of_modules():
    """Tests that follow import helpers from there; an example of `tf-ipu run` changes its first entry."""
    assert any(pathlib.Path(folder).name == "shared" for folder in sys.path)


def test_all_examples_are_found():
    """Those of classes, of what decorators replace, and of private functions are among them."""
    found = {str(example) for example in EXAMPLES}
    assert {"frontend.strategies.ipu_strategy:IPUStrategyV1.run", "frontend.control_flow.loops:repeat"} <= found
    assert len(found) == len(EXAMPLES) > 250
