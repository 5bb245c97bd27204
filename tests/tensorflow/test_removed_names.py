"""Names that NumPy and Python have removed are there for scripts, and for nobody else."""

import collections
import collections.abc
import inspect
import io
import json

import numpy as np
import pytest
import yaml

from tf_ipu_shim import ipu, patches

INSTALLED = "/usr/lib/python3/dist-packages/some/package.py"


def test_a_script_has_them():
    assert ipu and (np.int, np.float, np.object, np.unicode) == (int, float, object, str)
    assert (np.float_, np.bool8, np.int0, np.NINF) == (np.float64, np.bool_, np.intp, -np.inf)
    assert np.zeros(2, np.int).dtype == np.int64
    assert np.int64 is np.dtype("int64").type
    assert collections.Mapping is collections.abc.Mapping and collections.Callable is collections.abc.Callable
    exec("from collections import MutableMapping\nfrom numpy import long", {})


@pytest.mark.parametrize("text", ["np.int", "np.unicode", "collections.Mapping", "inspect.getargspec"])
def test_an_installed_package_has_what_is_installed(text):
    names = {"np": np, "collections": collections, "inspect": inspect}
    with pytest.raises(AttributeError, match="has no attribute"):
        eval(compile(text, INSTALLED, "eval"), names)
    eval(compile(text, "/home/user/train.py", "eval"), names)
    for module in (np, collections, inspect):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = module.nonsense


def test_json_ignores_an_encoding_of_scripts():
    assert json.loads('{"steps": 3}', encoding="utf-8") == json.load(io.StringIO('{"steps": 3}'), encoding="utf-8")
    assert json.loads("[1.5]", parse_float=str) == ["1.5"]
    for call in ("loads('1', encoding='utf-8')", "loads('1', parse_flot=str)"):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            eval(compile(call, INSTALLED, "eval"), {"loads": json.loads})


def test_what_a_function_takes():
    def function(first, second=2, *rest, **named):
        return first, second, rest, named

    found = inspect.getargspec(function)
    assert found == (["first", "second"], "rest", "named", (2,)) and found.keywords == "named"
    for other in (lambda *, only: only, INSTALLED.startswith):
        with pytest.raises((ValueError, TypeError)):
            inspect.getargspec(other)


@pytest.mark.parametrize(("call", "expected"), [("load", {"steps": 3}), ("load_all", [{"steps": 3}])])
def test_yaml_is_loaded_without_a_loader_by_scripts(call, expected):
    load = getattr(yaml, call)
    found = load("steps: 3")
    assert (found if call == "load" else list(found)) == expected
    assert yaml.load("steps: 3", yaml.BaseLoader) == yaml.load("steps: 3", Loader=yaml.BaseLoader) == {"steps": "3"}
    with pytest.raises(TypeError, match="Loader"):
        eval(compile("load('steps: 3')", INSTALLED, "eval"), {"load": load})


def test_they_are_registered():
    targets = {patch.target for patch in patches.applied()}
    assert {"numpy.__getattr__", "collections.__getattr__", "inspect.__getattr__", "json.loads", "yaml.load"} <= targets
