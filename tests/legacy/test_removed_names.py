"""Names that NumPy and Python have removed are there for scripts, and for nobody else."""

import collections
import collections.abc
import inspect
import io
import json
import math

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


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")  # of NumPy 1.26
def test_functions_that_numpy_has_removed():
    rows = np.array([[3, 1], [2, 4]])
    assert np.asscalar(np.array([2.5])) == 2.5 and type(np.asscalar(np.float32(1))) is float
    assert np.in1d(rows, [4, 3]).tolist() == np.isin(rows, [4, 3]).ravel().tolist()
    assert np.in1d([1, 2], [2], invert=True).tolist() == [True, False]
    assert np.trapz([1.0, 3.0], dx=0.5) == 1.0 and np.trapz([1.0, 3.0], [0.0, 2.0]) == 4.0
    assert np.round_(2.345, 1) == 2.3 and np.typeDict["float32"] is np.float32
    assert np.asfarray(rows).dtype == np.asfarray(rows, int).dtype == np.float64
    assert np.asfarray(rows, np.float16).dtype == np.float16
    assert issubclass(np.VisibleDeprecationWarning, Warning) and issubclass(np.RankWarning, Warning)
    assert isinstance(np.mat("1 2; 3 4"), np.matrix) and np.mat([[1, 2]]).shape == (1, 2)
    assert np.msort(rows).tolist() == np.sort(rows, axis=0).tolist()


def test_arrays_of_different_lengths_are_saved(tmp_path):
    clusters = [np.arange(3), np.arange(5), np.arange(2)]
    expected = np.empty(3, object)
    expected[:] = clusters
    for file in (tmp_path / "clusters.npy", io.BytesIO()):
        np.save(file, clusters)
        if isinstance(file, io.BytesIO):
            file.seek(0)
        found = np.load(file, allow_pickle=True)
        assert found.dtype == object and all(map(np.array_equal, found, expected))
    np.save(tmp_path / "even.npy", arr=[[1, 2], [3, 4]], allow_pickle=False)
    assert np.load(tmp_path / "even.npy").tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        np.save(tmp_path / "refused.npy", clusters, allow_pickle=False)
    with pytest.raises(ValueError, match="inhomogeneous"):
        text = "save(file, clusters)"
        eval(compile(text, INSTALLED, "eval"), {"save": np.save, "file": io.BytesIO(), "clusters": clusters})


def test_names_that_python_has_removed():
    import base64
    import os
    import time
    from fractions import gcd
    from inspect import ArgSpec

    start = time.clock()
    assert start <= time.clock() <= time.process_time() and os.errno.EEXIST == FileExistsError(17, "").errno
    for numbers in ((12, 18), (7, 0), (0, 5), (270, 192)):
        assert gcd(*numbers) == math.gcd(*numbers)
    assert gcd(6, -4) == -2  # the sign of the second one
    assert base64.decodestring(base64.encodestring(b"step")) == b"step" and base64.encodestring(b"a") == b"YQ==\n"
    assert isinstance(inspect.getargspec(lambda size: size), ArgSpec)
    for text in ("time.clock", "os.errno"):
        with pytest.raises(AttributeError, match="has no attribute"):
            eval(compile(text, INSTALLED, "eval"), {"time": time, "os": os})


@pytest.mark.parametrize("text", ["np.int", "np.unicode", "collections.Mapping", "inspect.getargspec", "np.asscalar"])
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
    assert {
        "numpy.__getattr__",
        "numpy.save",
        "collections.__getattr__",
        "inspect.__getattr__",
        "json.loads",
        "yaml.load",
    } <= targets
    assert {f"{module}.__getattr__" for module in ("time", "fractions", "os", "base64")} <= targets
