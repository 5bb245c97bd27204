"""The parts of the finder that need no TensorFlow."""

import importlib
import importlib.util
import sys
import types

import pytest

from tf_ipu_shim import errors, names
from tf_ipu_shim.legacy.names.tensorflow import stock_aliases
from tf_ipu_shim.names import finder, graphcore_names, unsupported_names

pytestmark = pytest.mark.without_tensorflow


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("tensorflow.python.ipu", "tf_ipu_shim.api.ipu"),
        ("tensorflow.python.ipu.ops.nn_ops", "tf_ipu_shim.api.ipu.ops.nn_ops"),
        ("tensorflow.compiler.plugin.poplar.driver.trace_pb2", "tf_ipu_shim.messages.trace_pb2"),
    ],
)
def test_each_name_maps_to_the_other(theirs, ours):
    assert finder.own_name(theirs) == ours
    assert finder.graphcore_name(ours) == theirs


@pytest.mark.parametrize("name", ["tensorflow.python.ipu_of_others", "tensorflow.python", "numpy.ipu"])
def test_other_names_are_left_alone(name):
    assert finder.own_name(name) is None
    assert names._first.find_spec(name) is None


# From the release ranges in the published API pages of each SDK.
@pytest.mark.parametrize(
    ("module", "name", "releases"),
    [
        ("tensorflow.python.ipu.utils", "create_ipu_config", "1.2-2.3"),
        ("tensorflow.python.ipu.config", "IPUConfig", "2.1-3.4"),
        ("tensorflow.python.ipu.ipu_compiler", "compile", "1.2-3.4"),
        ("tensorflow.python.ipu", "rnn_ops", "1.2-2.5"),
        ("tensorflow.compiler.plugin.poplar.ops.gen_ipu_ops", "ipu_event_trace", "1.2-3.4"),
    ],
)
def test_graphcore_names_know_the_releases(module, name, releases):
    assert graphcore_names.attributes(module)[name] == releases


def test_graphcore_names_do_not_invent():
    assert not unsupported_names.is_known_module("tensorflow.python.ipu.nonsense")
    assert "nonsense" not in graphcore_names.attributes("tensorflow.python.ipu.utils")
    assert graphcore_names.attributes("tensorflow.python.ipu.nonsense") == {}


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A module of ours that has next to nothing of what Graphcore's `ipu.utils` has."""
    file = tmp_path / "stand_in.py"
    own = "def __getattr__(name):\n    if name == 'own':\n        return 2\n    raise AttributeError(name)\n"
    file.write_text("here = 1\n" + own)
    spec = importlib.util.spec_from_file_location("stand_in", file)
    unsupported_names.extend_loader(spec.loader, "tensorflow.python.ipu.utils")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "stand_in", module)
    return module


def test_missing_attribute_says_where_graphcore_has_it(stand_in):
    with pytest.raises(errors.MissingAttributeError, match=r"ipu\.utils\.create_ipu_config exists in SDK 1\.2-2\.3"):
        stand_in.create_ipu_config  # noqa: B018
    assert not hasattr(stand_in, "create_ipu_config")


def test_a_module_that_others_added_to_a_package_is_imported(tmp_path, monkeypatch):
    """Its finder knows Graphcore's name alone, and `from` asks for a module of the package's own `__name__`."""
    (tmp_path / "added.py").write_text("VALUE = 3\n")

    class Finder:
        @staticmethod
        def find_spec(name, path=None, target=None):
            added = name == "tensorflow.python.ipu.ops.added"
            return importlib.util.spec_from_file_location(name, tmp_path / "added.py") if added else None

    package = types.ModuleType("ours")
    package.__path__ = []
    package.__getattr__ = unsupported_names._refusing_getattr("ours", "tensorflow.python.ipu.ops", None)
    monkeypatch.setitem(sys.modules, "ours", package)
    monkeypatch.setitem(sys.modules, "tensorflow.python.ipu.ops", package)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    from ours import added

    monkeypatch.delitem(sys.modules, "tensorflow.python.ipu.ops.added")
    assert added.VALUE == 3
    with pytest.raises(ImportError, match="cannot import name 'other' from 'tensorflow.python.ipu.ops'"):
        from ours import other  # noqa: F401


def test_missing_attribute_in_a_from_import_keeps_the_message(stand_in):
    with pytest.raises(errors.MissingModuleError, match=r"ipu\.utils\.create_ipu_config exists in SDK 1\.2-2\.3"):
        from stand_in import create_ipu_config  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        from stand_in import nonsense  # noqa: F401


def test_names_that_are_there_are_served(stand_in):
    from stand_in import here, own

    assert (here, own) == (1, 2)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'") as raised:
        stand_in.nonsense  # noqa: B018
    assert type(raised.value) is AttributeError


def test_refusing_loader_gives_a_spec_and_refuses_the_import():
    spec = finder.find_spec_last("ipu_tensorflow_addons.keras.layers.f8_convert", None)
    with pytest.raises(errors.MissingModuleError, match=r"f8_convert exists in SDK 3\.1-3\.4"):
        importlib.util.module_from_spec(spec)
    assert issubclass(errors.MissingModuleError, ImportError)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tensorflow.python.dtypes", "tensorflow.python.framework.dtypes"),
        ("tensorflow.python.keras.datasets.mnist", "tensorflow.keras.datasets.mnist"),
        ("tensorflow.python.training.tracking.base", "tensorflow.python.trackable.base"),
        ("tensorflow.python.ops.losses.loss_reduction", "tensorflow.python.keras.utils.losses_utils"),
        ("tensorflow.python.nonsense", None),
        ("tensorflow.python.keras.datasets_of_others", None),
    ],
)
def test_moved_names(old, new):
    assert stock_aliases.find(old) == new


def test_install_twice_adds_nothing_and_uninstall_removes(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [])
    names.install()
    names.install()
    assert len(sys.meta_path) == 2
    names.uninstall()
    assert sys.meta_path == []


def test_nothing_is_loaded_before_a_name_is_imported(python):
    loaded = python.succeeds("-c", "import tf_ipu_shim, json, sys; print(*sorted(sys.modules))").split()
    ours = [name for name in loaded if name.startswith("tf_ipu_shim")]
    assert ours == ["tf_ipu_shim", "tf_ipu_shim.names"]
    assert "tensorflow" not in loaded


def test_a_real_graphcore_tensorflow_is_left_alone(python):
    for package in ("", "python", "python/ipu", "compiler", "compiler/plugin", "compiler/plugin/poplar"):
        directory = python.directory / "wheel" / "tensorflow" / package
        directory.mkdir(parents=True)
        (directory / "__init__.py").touch()
    (python.directory / "wheel/tensorflow/python/ipu/utils.py").touch()
    files = python.succeeds(
        "-c",
        "import sys; sys.path.insert(0, 'wheel'); import tf_ipu_shim\n"
        "from tensorflow.python.ipu import utils; import tensorflow.compiler.plugin.poplar as poplar\n"
        "print(utils.__file__, poplar.__file__)\n"
        "try: import tensorflow.python.ipu.config\n"
        "except ModuleNotFoundError as error: print(error)\n",
    )
    assert files.count("wheel/tensorflow") == 2


def test_a_failed_import_of_ours_is_no_missing_name(tmp_path, monkeypatch):
    """An error within a module that loads late must not read as "does not emulate it yet"."""
    (tmp_path / "broken_half.py").write_text("import sys\nsys.no_such_thing\n")
    monkeypatch.syspath_prepend(tmp_path)

    def own(name):
        if name == "layers":
            return importlib.import_module("broken_half")
        raise AttributeError(name)

    lookup = unsupported_names._refusing_getattr("tf_ipu_shim.keras", "keras.ipu", own)
    with pytest.raises(ImportError, match=r"keras.ipu.layers could not be loaded. Fix .*no_such_thing"):
        lookup("layers")
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        lookup("nonsense")


def test_a_folder_that_an_older_version_left_is_no_module(tmp_path):
    (tmp_path / "tf_ipu_shim" / "ipu" / "__pycache__").mkdir(parents=True)
    assert not finder._is_installed("tf_ipu_shim.ipu", [str(tmp_path / "tf_ipu_shim")])
    (tmp_path / "tf_ipu_shim" / "ipu" / "__init__.py").touch()
    importlib.invalidate_caches()
    assert finder._is_installed("tf_ipu_shim.ipu", [str(tmp_path / "tf_ipu_shim")])
