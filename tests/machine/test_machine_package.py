"""What holds for every module of `machine`."""

import importlib
import os
import pkgutil
import subprocess
import sys

import examples
import pytest

import tf_ipu_shim.machine

MODULES = [module.name for module in pkgutil.walk_packages(tf_ipu_shim.machine.__path__, "tf_ipu_shim.machine.")]


@pytest.mark.parametrize("example", examples.of("machine"), ids=str)
def test_examples_in_docstrings(example):
    """They may use the names of their own module alone."""
    example.run(dict(vars(importlib.import_module(example.module))))


def test_examples_leave_the_environment_alone():
    before = dict(os.environ)
    for example in examples.of("machine"):
        if "os.environ[" in example.text:
            test_examples_in_docstrings(example)
    assert dict(os.environ) == before


def test_tensorflow_is_not_imported():
    imports = "; ".join(f"import {name}" for name in MODULES)
    script = f"import sys, tf_ipu_shim.cli; {imports}; print([m for m in ('tensorflow', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
