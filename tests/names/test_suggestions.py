"""Misspelt names of Graphcore's modules: what the error says, and that it stays the error that Python raises."""

import importlib.util
import sys
import types

import pytest

from tf_ipu_shim.names import suggestions, unsupported_names

pytestmark = pytest.mark.without_tensorflow

UTILS = "tensorflow.python.ipu.utils"


@pytest.fixture
def utils(monkeypatch):
    """A module with one name of Graphcore's and one of its own, under a name of this package."""
    module = types.ModuleType("tf_ipu_shim.api.ipu.stand_in")
    module.get_ipu_config = lambda: None
    module.__all__ = ["get_ipu_config", "of_our_own"]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.__getattr__ = unsupported_names._refusing_getattr(module.__name__, UTILS, None)
    return module


@pytest.mark.parametrize(
    "name, hint",
    [
        ("create_ipu_conf", ". Did you mean 'create_ipu_config'?"),  # which this module has not, and Graphcore's has
        ("get_ipu_confg", ". Did you mean 'get_ipu_config'?"),
        ("of_our_onw", ". Did you mean 'of_our_own'?"),
        ("dense_to_sparse_matrix", ""),
        ("_get_ipu_config", ""),
        ("IPUOutfeedQueue", ". tensorflow.python.ipu.ipu_outfeed_queue has it."),
    ],
)
def test_attributes(utils, name, hint):
    with pytest.raises(AttributeError) as raised:
        getattr(utils, name)
    assert str(raised.value) == f"module '{UTILS}' has no attribute '{name}'{hint}"
    assert not hasattr(utils, name)
    assert getattr(utils, name, 3) == 3


def test_imports(utils, monkeypatch):
    monkeypatch.setitem(sys.modules, "stand_in", utils)
    with pytest.raises(ImportError) as raised:
        from stand_in import create_ipu_conf  # noqa: F401
    expected = f"cannot import name 'create_ipu_conf' from '{UTILS}'. Did you mean 'create_ipu_config'?"
    assert str(raised.value) == expected
    assert raised.value.name == UTILS


@pytest.mark.parametrize("statement", ["from tensorflow import ipu", "import tensorflow.ipu"])
def test_the_module_where_newcomers_look_for_it(statement):
    assert importlib.util.find_spec(suggestions.MISNAMED) is None
    with pytest.raises(ImportError) as raised:
        exec(statement, {})
    assert str(raised.value) == f"No module named 'tensorflow.ipu'. {suggestions.MISNAMED_HINT}"


def test_modules_below_a_package():
    assert suggestions.unknown_name_message("nowhere", "tensorflow.python.ipu", "util").endswith(
        "Did you mean 'utils'?"
    )
    assert suggestions.unknown_name_message("nowhere", "tensorflow.python.ipu.ops", "pipelining_op").endswith(
        "Did you mean 'pipelining_ops'?"
    )


def test_a_module_that_is_still_being_imported_is_found(utils, monkeypatch):
    """`from package import module` in a circle: Python looks into `sys.modules` after an AttributeError alone."""
    half = types.ModuleType(f"{utils.__name__}.half")
    monkeypatch.setitem(sys.modules, half.__name__, half)
    monkeypatch.setitem(sys.modules, "stand_in", utils)
    from stand_in import half as found

    assert found is half
