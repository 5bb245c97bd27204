"""Modules that only re-export come from a table, and are like any other module."""

import copy
import importlib
import importlib.util
import inspect
import pathlib
import pickle
import sys
import types
import unittest.mock

import pytest
from tensorflow.python.ipu import loops, sharding

from tf_ipu_shim.frontend.control_flow import loops as source
from tf_ipu_shim.names import finder, reexports

# Those of Estimator need a TensorFlow that has it.
ESTIMATORS = ("ipu_estimator", "ipu_pipeline_estimator", "ipu_run_config")
MODULES = [
    pytest.param(name, marks=pytest.mark.estimator if name.endswith(ESTIMATORS) else ()) for name in reexports.table()
]


def unwrapped(thing):
    """Ops are wrapped for Keras' symbolic tensors in their Graphcore module only."""
    return inspect.unwrap(thing) if inspect.isfunction(thing) else thing


@pytest.mark.parametrize("name", MODULES)
def test_module_gives_out_the_names_of_its_row(name):
    description, sources = reexports.table()[name]
    module = importlib.import_module(name)
    theirs = finder.graphcore_name(name)
    assert importlib.import_module(theirs) is module is sys.modules[name]
    assert module.__doc__ == f"`{theirs}`{description}"
    assert (module.__name__, module.__package__, module.__spec__.name) == (name, name.rpartition(".")[0], name)
    taken = {given: (origin, own) for origin, names in sources.items() for given, own in names.items()}
    assert module.__all__ == sorted(given for given in taken if not given.startswith("_"))
    assert set(taken) <= set(dir(module))
    for given, (origin, own) in taken.items():
        package = importlib.import_module(origin)
        expected = vars(package)[own] if own in vars(package) else sys.modules[f"{origin}.{own}"]
        assert unwrapped(getattr(module, given)) is unwrapped(expected)


@pytest.mark.parametrize("name", reexports.table())
def test_module_has_no_file(name):
    """A file would win over the row, which would then be dead."""
    root = pathlib.Path(reexports.__file__).parents[2]
    assert not (root / name.replace(".", "/")).with_suffix(".py").exists()


def test_every_statement_imports_it():
    space = {}
    exec(
        "import tensorflow.python.ipu.loops as one\n"
        "from tensorflow.python.ipu import loops as two\n"
        "from tf_ipu_shim.ipu import loops as three\n"
        "import tf_ipu_shim.ipu.loops as four\n"
        "from tensorflow.python.ipu.loops import *\n"
        "from tensorflow.python.ipu.loops import repeat as five\n",
        space,
    )
    assert all(space[name] is loops for name in ("one", "two", "three", "four"))
    assert space["five"] is space["repeat"] is source.repeat


def test_missing_name_is_refused_as_elsewhere():
    with pytest.raises(AttributeError, match=r"Did you mean.*repeat|repeat"):
        loops.repaet  # noqa: B018
    with pytest.raises(ImportError, match="tensorflow.python.ipu.loops"):
        exec("from tensorflow.python.ipu.loops import repaet")


def test_spec_is_found_without_an_import():
    spec = importlib.util.find_spec("tensorflow.python.ipu.ops.rand_ops")
    assert spec is not None and not spec.submodule_search_locations


def test_functions_are_pickled_and_the_module_reloads():
    assert pickle.loads(pickle.dumps(loops.repeat)) is loops.repeat
    assert copy.deepcopy(sharding.get_sharding) is sharding.get_sharding
    assert importlib.reload(loops) is loops and loops.repeat is source.repeat


def test_a_replaced_function_is_replaced_at_its_source():
    from tensorflow.python.ipu.ops import rand_ops

    from tf_ipu_shim.frontend.ops import rand_ops as implementation

    ours, given_out = implementation.dropout, rand_ops.dropout
    with unittest.mock.patch.object(rand_ops, "dropout") as replaced:
        assert implementation.dropout is rand_ops.dropout is replaced
    assert implementation.dropout is ours and rand_ops.dropout is given_out
    with unittest.mock.patch.object(implementation, "dropout"):
        assert rand_ops.dropout is given_out
    assert implementation.dropout is ours


def test_a_name_may_be_given_out_under_another(monkeypatch):
    monkeypatch.setattr(reexports, "table", lambda: {"another": (": as a test has it.", {"json": {"write": "dumps"}})})
    module = types.ModuleType("another")
    reexports.ReexportLoader("tensorflow.another").exec_module(module)
    assert module.write({}) == "{}" and module.__all__ == ["write"]
    assert module.__doc__ == "`tensorflow.another`: as a test has it."
