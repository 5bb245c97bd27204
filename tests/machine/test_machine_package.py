"""What holds for every module of `machine` and `cycle_model`."""

import importlib
import os
import pkgutil
import subprocess
import sys

import examples
import pytest

import tf_ipu_shim.cycle_model
import tf_ipu_shim.machine

pytestmark = pytest.mark.without_tensorflow

MODULES = [
    module.name
    for package in (tf_ipu_shim.machine, tf_ipu_shim.cycle_model)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]


@pytest.mark.parametrize("example", examples.of("machine", "cycle_model"), ids=str)
def test_examples_in_docstrings(example):
    """They may use the names of their own module alone."""
    example.run(dict(vars(importlib.import_module(example.module))))


def test_examples_leave_the_environment_alone():
    before = dict(os.environ)
    for example in examples.of("machine", "cycle_model"):
        if "os.environ[" in example.text:
            test_examples_in_docstrings(example)
    assert dict(os.environ) == before


def test_tensorflow_is_not_imported():
    imports = "; ".join(f"import {name}" for name in MODULES)
    script = f"import sys, tf_ipu_shim.cli; {imports}; print([m for m in ('tensorflow', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
