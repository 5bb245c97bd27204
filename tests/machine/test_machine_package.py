"""What holds for every module of `machine`."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import tf_ipu_shim.machine

MODULES = [module.name for module in pkgutil.iter_modules(tf_ipu_shim.machine.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    assert doctest.testmod(importlib.import_module(f"tf_ipu_shim.machine.{name}")).failed == 0


def test_tensorflow_is_not_imported():
    imports = "; ".join(f"import tf_ipu_shim.machine.{name}" for name in MODULES)
    script = f"import sys, tf_ipu_shim.cli; {imports}; print([m for m in ('tensorflow', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
