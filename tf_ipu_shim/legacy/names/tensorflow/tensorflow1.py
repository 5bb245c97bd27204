"""`--tf1`: makes `import tensorflow` mean TensorFlow 1, for scripts written for the 1.15 wheel.

`sys.modules["tensorflow"]` becomes a module that answers with `tensorflow.compat.v1`'s names. Everything below it
(`tensorflow.python`, `tensorflow.core`, `tensorflow.compat`, ...) stays the installed TensorFlow's.
Checked on 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import multiprocessing.spawn
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from tf_ipu_shim import errors, patches
from tf_ipu_shim.imports import post_import_hooks
from tf_ipu_shim.keras2 import choice
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.legacy.names.tensorflow import dimensions

# What Graphcore's TensorFlow 1 reports; scripts choose their TensorFlow 1 branch by it.
VERSION = "1.15.5"
# Modules that `tf` had as attributes.
_PACKAGES = {
    "contrib": "tensorflow.contrib",
    "pywrap_tensorflow": "tensorflow.python.pywrap_tensorflow",
    "python": "tensorflow.python",
}
_NO_ESTIMATOR = (
    "tf.estimator: TensorFlow has no Estimator from 2.16 on; expected 2.15. Install it (Python 3.10 or 3.11), or train "
    "with an infeed and ipu.loops.repeat."
)
# Libraries that bind `tensorflow` when they are imported, expect version 2 there, and are loaded lazily by its API.
_LIBRARIES = ("tensorflow_estimator.python.estimator.api._v1.estimator",)
# Installed packages for TensorFlow 2 that look at its version when they are imported, and refuse 1.15.
_LOOK_AT_VERSION = frozenset(
    "tensorflow_addons tensorflow_datasets tensorflow_graphics tensorflow_hub tensorflow_io "
    "tensorflow_model_optimization tensorflow_probability tensorflow_recommenders tensorflow_text tf_agents".split()
)


class TensorFlow1(types.ModuleType):
    """Stands for `tensorflow` and looks every name up in `tensorflow.compat.v1`."""

    def __init__(self, tensorflow: types.ModuleType, v1: types.ModuleType):
        super().__init__("tensorflow", tensorflow.__doc__)
        self.__file__ = tensorflow.__file__
        self.__spec__ = tensorflow.__spec__
        self.__loader__ = tensorflow.__loader__
        self.__package__ = "tensorflow"
        # The version 1 directories come first: `tensorflow.keras.layers` is that of version 1.
        self.__path__ = [*v1.__path__, *(path for path in tensorflow.__path__ if path not in v1.__path__)]
        self.__version__ = self.VERSION = VERSION
        self.compat = tensorflow.compat
        self._v1 = v1

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.__dict__["_v1"], name)
        except AttributeError:
            if name in _PACKAGES:
                return importlib.import_module(_PACKAGES[name])
            if name == "estimator":
                raise errors.MissingAttributeError(_NO_ESTIMATOR) from None
            raise AttributeError(f"module 'tensorflow' has no attribute {name!r} (TensorFlow 1 mode, --tf1)") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._v1)})


def is_active() -> bool:
    """Returns whether this process runs a script for TensorFlow 1.15.

    By `--tf1`, or one that has imported `contrib` and has version 2 behaviour off.
    """
    from tf_ipu_shim.tf_private.eager import tf2

    is_replaced = isinstance(sys.modules.get("tensorflow"), TensorFlow1)
    return is_replaced or ("tensorflow.contrib" in sys.modules and not tf2.enabled())


def activate() -> None:
    """Puts TensorFlow 1 in the place of `tensorflow`, with version 2 behaviour off; a second call changes nothing.

    It must be called before the script imports TensorFlow. Keras 3 has no version 1 API: if `tf_keras` is installed
    too, it is chosen.
    """
    if isinstance(sys.modules.get("tensorflow"), TensorFlow1):
        return
    if "tensorflow" not in sys.modules and choice.is_separate_package():
        os.environ.setdefault(choice.ENVIRONMENT_VARIABLE, "1")
    import tensorflow
    import tensorflow.compat.v1 as v1

    with _without_deprecation_notes(tensorflow):
        v1.disable_v2_behavior()
    if mode.is_requested():
        dimensions.install()
        for name in ("__version__", "VERSION"):
            why = "scripts that import compat.v1 assert their version (--tf1)"
            patches.replace(v1, name, lambda _: VERSION, why=why)
        installed = functools.partial(_installed_version, v1, tensorflow.__version__)
        post_import_hooks.PostImportFinder(_looks_at_version, while_loading=installed).install(
            "packages that read the version", why="they get the installed version, and scripts get 1.15 (--tf1)"
        )
    for library in _LIBRARIES:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(library)
    patches.replace(
        multiprocessing.spawn,
        "get_preparation_data",
        _telling_processes,
        why="processes that the script starts without a fork also use TensorFlow 1 (--tf1)",
    )
    version1 = TensorFlow1(tensorflow, v1)
    patches.change(
        "sys.modules['tensorflow']",
        lambda: sys.modules.update(tensorflow=version1),
        lambda: sys.modules.update(tensorflow=tensorflow),
        why="`import tensorflow` means TensorFlow 1 (--tf1)",
        undone="it is the installed TensorFlow again; `disable_v2_behavior`, its own switch, stays",
    )


class _Activation:
    """The start-up of a process that reads it: TensorFlow 1 is set up before the script is imported."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return activate, ()


def _telling_processes(stock: Callable[[str], dict[str, Any]]) -> Callable[[str], dict[str, Any]]:
    @functools.wraps(stock)
    def preparation_data(name: str) -> dict[str, Any]:
        return {**stock(name), "tf_ipu_shim": _Activation()}

    return preparation_data


def _looks_at_version(fullname: str) -> bool:
    return fullname.partition(".")[0] in _LOOK_AT_VERSION


@contextlib.contextmanager
def _installed_version(v1: types.ModuleType, version: str) -> Iterator[None]:
    """Sets the version that `tf` and `compat.v1` report while such a package is executed; they may import each
    other.
    """
    modules: list[Any] = [v1, sys.modules["tensorflow"]]
    before = [module.__version__ for module in modules]
    for module in modules:
        module.__version__ = module.VERSION = version
    try:
        yield
    finally:
        for module, previous in zip(modules, before):
            module.__version__ = module.VERSION = previous


@contextlib.contextmanager
def _without_deprecation_notes(tensorflow: types.ModuleType) -> Any:
    """Suppresses TensorFlow's deprecation notes on calls that the script's author chose."""
    logger: logging.Logger = tensorflow.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
