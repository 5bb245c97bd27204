"""The examples in the docstrings of configuration, utils and runtime run."""

import doctest
import importlib
import pkgutil

import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import config, utils
from tf_ipu_shim.poplar import driver
from tf_ipu_shim.poplar.driver import config_pb2, trace_pb2

from tf_ipu_shim.messages import schema
from tf_ipu_shim.runtime import devices

PACKAGES = ("tf_ipu_shim.ipu.config", "tf_ipu_shim.ipu.utils", "tf_ipu_shim.runtime", driver.__name__)
MODULES = [
    f"{package}.{module.name}"
    for package in PACKAGES
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
]
NAMES = {
    **{name: getattr(module, name) for module in (config, utils) for name in module.__all__},
    "_ConfigBase": config._ConfigBase,
    "config_pb2": config_pb2,
    "trace_pb2": trace_pb2,
    "load": schema.load,
    "tf": tf,
}


@pytest.fixture(autouse=True)
def own_environment(monkeypatch, tmp_path):
    for name in ("TF_IPU_SHIM_SYSTEM", "TF_POPLAR_FLAGS", "TF_IPU_SHIM_SDK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))
    devices.reset()
    yield
    devices.reset()


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    for test in doctest.DocTestFinder().find(module, extraglobs={**NAMES, **vars(module)}):
        devices.reset()
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
