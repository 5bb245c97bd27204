"""Makes `tensorflow.python.keras` the same Keras 2 as `tf.keras`.

In Graphcore's TensorFlow 2.6 and before they were one. Today's TensorFlow contains an old copy of Keras under that
name, which its own modules use. Layers of one are not layers of the other. Once a process uses `ipu`, the name leads to
the Keras of `tf.keras`. Objects that a script imported from the copy before are replaced in its modules. TensorFlow
keeps the copy: its modules hold it already. Checked on TensorFlow 2.15.1 with keras 2.15.0 and 2.21.0 with tf_keras
2.21.0.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

from tf_ipu_shim import errors, keras2, patches
from tf_ipu_shim.imports import post_import_hooks
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.legacy.names.keras import keras_modules

NAME = "tensorflow.python.keras"
# Packages whose modules are not scripts.
_LIBRARIES = {"tensorflow", "tensorflow_estimator", "keras", "tf_keras", "tf_ipu_shim", *sys.stdlib_module_names}
_copy: dict[str, types.ModuleType] = {}


class _Finder:
    """Finds modules below `NAME`: Keras', or one of the copy that Keras does not have."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if fullname != NAME and not fullname.startswith(f"{NAME}."):
            return None
        below = fullname[len(NAME) + 1 :]
        public = ".".join(filter(None, (_public(), below)))
        # Modules of TensorFlow's API are loaded late, too, and take names from the copy that Keras has no more.
        spec = keras_modules.spec(fullname, below, public, _copy.get(fullname))
        if spec is None and fullname in _copy:
            return ModuleSpec(fullname, _CopyLoader())
        return spec


class _CopyLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _copy[spec.name]

    def exec_module(self, module: types.ModuleType) -> None:
        return None


_finder = _Finder()
# TensorFlow's own modules are to have the copy: so it is when TensorFlow has been imported.
_with_tensorflow = post_import_hooks.PostImportFinder(lambda name: name == "tensorflow", lambda _: install())


def install_with_tensorflow() -> None:
    """Works like `install`, before the script that is to be run imports TensorFlow."""
    if "tensorflow" in sys.modules:
        install()
    elif mode.is_requested():
        _with_tensorflow.install("TensorFlow", why=f"`{NAME}` is `tf.keras` from a script's first line on")


def install() -> None:
    """Makes the name lead to Keras; calling it again changes nothing. TensorFlow is imported already."""
    if not mode.is_requested() or not _has_keras_2():
        return
    patches.change(
        f"sys.modules['{NAME}']",
        _take_the_name,
        _restore_keras,
        why="layers, models and optimizers of `tensorflow.python.keras` are those of `tf.keras`, as in TensorFlow 2.5",
        undone="it is TensorFlow's copy again",
    )
    exchange(_counterpart, "of `tensorflow.python.keras`, and imported before `ipu`")


def exchange(counterpart: Callable[[Any], Any], label: str) -> None:
    """Replaces objects that script modules have imported, or derived classes from."""
    modules: list[Any] = [*dict(sys.modules).values()]
    for module in modules:
        if not isinstance(module, types.ModuleType):
            continue
        if str(vars(module).get("__name__")).partition(".")[0] in _LIBRARIES:
            continue
        for name, value in list(vars(module).items()):
            replacement = counterpart(value)
            if replacement is not value:
                patches.replace(module, name, functools.partial(_instead, replacement), why=f"it is {label}")
            elif issubclass(type(value), type) and _module_of(value) == vars(module).get("__name__"):
                _derive(value, counterpart, label)


def _derive(derived: type, counterpart: Callable[[Any], Any], label: str) -> None:
    """Makes a script's class one of the counterparts of its bases; its instances follow."""
    before = derived.__bases__
    bases = tuple(counterpart(base) for base in before)
    if bases == before:
        return
    with contextlib.suppress(TypeError):  # such as a class of both: it stays what it is
        patches.change(
            f"{derived.__module__}.{derived.__qualname__}.__bases__",
            functools.partial(setattr, derived, "__bases__", bases),
            functools.partial(setattr, derived, "__bases__", before),
            why=f"the class is derived from {label}",
            undone="the bases are restored",
        )


def _instead(replacement: Any, before: Any) -> Any:
    del before
    return replacement


def _counterpart(value: Any) -> Any:
    """Returns Keras' counterpart of a class, function or module of the copy, or the value itself."""
    # Reading an attribute of any other object could run its code, such as that of flags. So does `isinstance`, which
    # reads its class.
    if issubclass(type(value), types.ModuleType):
        name, attribute = vars(value).get("__name__"), None
        is_copy = name in _copy and _copy[name] is value
    elif issubclass(type(value), (type, types.FunctionType)):
        name, attribute = _module_of(value), value.__name__
        is_copy = name in _copy and vars(_copy[name]).get(attribute) is value
    else:
        return value
    if not is_copy or name is None or importlib.util.find_spec(name) is None:
        return value
    module = importlib.import_module(name)
    return module if attribute is None else getattr(module, attribute, value)


def _module_of(value: Any) -> str | None:
    """Returns the name of a class's or function's module; a class that `type` made in code of no module has none."""
    return getattr(value, "__module__", None)


def _has_keras_2() -> bool:
    try:
        return bool(keras2.root())
    except errors.UnsupportedError:
        return False


def _public() -> str:
    """Returns the module of Keras' public API that `tf.keras` is."""
    from tf_ipu_shim.tf_private.eager import tf2

    return f"{keras2.root().partition('.')[0]}.api._v{2 if tf2.enabled() else 1}.keras"


def _take_the_name() -> None:
    for name in [name for name in sys.modules if name == NAME or name.startswith(f"{NAME}.")]:
        _copy[name] = sys.modules.pop(name)
    vars(sys.modules["tensorflow.python"]).pop("keras", None)
    sys.meta_path.insert(0, _finder)  # type: ignore[arg-type]


def _restore_keras() -> None:
    sys.meta_path.remove(_finder)  # type: ignore[arg-type]
    for name in [name for name in sys.modules if name == NAME or name.startswith(f"{NAME}.")]:
        del sys.modules[name]
    sys.modules.update(_copy)
    if NAME in _copy:
        sys.modules["tensorflow.python"].keras = _copy[NAME]  # type: ignore[attr-defined]
    _copy.clear()
