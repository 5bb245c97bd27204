"""What a command says in a Python that has no TensorFlow, or is too old; what it says of a notebook."""

import importlib.machinery
import json
import re
import sys

import pytest

from tf_ipu_shim import cli
from tf_ipu_shim.cli import requirements

pytestmark = [pytest.mark.subprocess, pytest.mark.without_tensorflow]

BARE = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "google", "absl", "keras", "tf_keras", "numpy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
for name in [name for name in sys.modules if name.partition(".")[0] in ("google",)]:
    del sys.modules[name]
sys.meta_path.insert(0, Absent())
import importlib.metadata
importlib.metadata.version = lambda name: (_ for _ in ()).throw(importlib.metadata.PackageNotFoundError(name))
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "tensorflow" else find(name, package)
from tf_ipu_shim import cli
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def bare(python):
    """Runs a command where no package that TensorFlow brings can be imported."""
    script = python.script(BARE, "bare.py")
    return lambda *words: python(script, *words)


@pytest.mark.parametrize("spec", [None, importlib.machinery.ModuleSpec("tensorflow", None)], ids=["absent", "stubs"])
def test_stubs_are_no_tensorflow(monkeypatch, spec):
    """A wheel has stubs of `tensorflow.python.ipu`, which Python finds as a namespace package."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    assert "TensorFlow is not installed in this Python" in str(requirements.missing_tensorflow())


@pytest.mark.parametrize("command", ["run", "check", "fit", "build"])
def test_tensorflow_is_missing(bare, python, command):
    python.script("print('ran')\n")
    process = bare(command, *([] if command == "build" else ["script.py"]))
    assert process.returncode == 2 and "ran" not in process.stdout
    told = f"tf-ipu {command}: TensorFlow is not installed in this Python, {re.escape(sys.executable)}"
    assert re.search(rf"^{told}. Install it: pip install tensorflow[a-z-]*==2\.\d+\.\d$", process.stderr, re.MULTILINE)


def test_the_doctor_needs_no_tensorflow(bare):
    process = bare("doctor", "--format", "json")
    assert process.returncode == 1, process.stderr
    states = {check["name"]: (check["state"], check["cure"]) for check in json.loads(process.stdout)}
    assert states["TensorFlow"][0] == "PROBLEM" and states["TensorFlow"][1].startswith("pip install tensorflow")


def test_reading_a_script_needs_no_tensorflow(bare, python):
    python.script("from tensorflow.python import ipu\nipu.config.IPUConfig()\n")
    process = bare("check", "--static", "script.py")
    assert (process.returncode, process.stderr) == (0, "")
    assert "ipu.config.IPUConfig" in process.stdout


def test_an_old_python_is_named(python):
    code = "import sys; sys.version_info = (3, 9, 18); sys.version = '3.9.18 (main)'\nimport tf_ipu_shim"
    process = python("-S", "-c", code)
    assert process.returncode == 1
    assert (
        f"ImportError: tf_ipu_shim needs Python 3.10 or newer, and {sys.executable} is Python 3.9.18." in process.stderr
    )


@pytest.mark.parametrize("words", [("run",), ("check", "--static"), ("fit",)])
def test_a_notebook_is_no_script(tmp_path, capsys, words):
    path = tmp_path / "lesson.ipynb"
    path.write_text('{"cells": [], "metadata": {"kernelspec": null}}')
    assert cli.main([*words, str(path)]) == 2
    assert f"Make a script of it: jupyter nbconvert --to script {path}" in capsys.readouterr().err


def test_a_script_that_an_option_has_taken(capsys):
    assert cli.main(["run", "--profile", "train.py"]) == 2
    assert "a SCRIPT or -m MODULE is needed; train.py was read as an option's value" in capsys.readouterr().err
