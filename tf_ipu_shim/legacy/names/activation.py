"""Activates the old names that must exist before TensorFlow is loaded.

It is imported whenever a process imports TensorFlow: all that is slow to import is imported by the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType

from tf_ipu_shim.legacy.names import mode

is_active, is_stock, is_requested = mode.active, mode.is_stock, mode.is_requested
# The environment variable that can leave TensorFlow and Keras as they are installed.
ENVIRONMENT_VARIABLE, MEANINGS, current = mode.ENVIRONMENT_VARIABLE, mode.MEANINGS, mode.current
HALF_NORM_CAST = mode.HALF_NORM_CAST


def find(fullname: str, is_for_ipus: Callable[[], bool]) -> ModuleSpec | None:
    """Returns the spec of a module that no package has under this name today, or None."""
    from tf_ipu_shim.legacy.names import module_finder

    return module_finder.find(fullname, is_for_ipus)


def find_below_alias(fullname: str, is_for_ipus: Callable[[], bool]) -> ModuleSpec | None:
    """Works like `find`, for a module of a package that exists under a further name."""
    from tf_ipu_shim.legacy.names import module_finder

    return module_finder.find_moved(fullname) or module_finder.find_in_contrib(fullname, is_for_ipus)


def is_empty_package(fullname: str) -> bool:
    """Returns whether a package that stock TensorFlow lacks holds nothing but names served here."""
    from tf_ipu_shim.legacy.names.tensorflow import stock_moves

    return fullname in stock_moves.EMPTY_PACKAGES


def is_contrib(fullname: str) -> bool:
    """Returns whether a module is `tensorflow.contrib`, or in it."""
    return fullname.startswith("tensorflow.contrib")


def tensorflow_loaded(tensorflow: ModuleType) -> None:
    """Restores names that TensorFlow has moved, after an IPU script has imported it."""
    del tensorflow
    from tf_ipu_shim.legacy.names.keras import one_keras
    from tf_ipu_shim.legacy.names.tensorflow import stock_aliases

    stock_aliases.install_attributes()
    one_keras.install()


def ipu_loaded(fullname: str) -> None:
    """Restores attributes and methods, once a script has imported `ipu` under a name of Graphcore's or ours."""
    from tf_ipu_shim.legacy.names.tensorflow import stock_aliases, variable_methods

    if fullname == "tensorflow.python.ipu":
        stock_aliases.install_attributes()
    variable_methods.install()


def install_for_runner(tf1: bool) -> None:
    """Switches on old names for a script under the runner, from its first line on."""
    from tf_ipu_shim.legacy.names.keras import one_keras
    from tf_ipu_shim.legacy.names.tensorflow import stock_aliases

    if tf1:
        from tf_ipu_shim.legacy.names.tensorflow import tensorflow1

        tensorflow1.activate()
    stock_aliases.install_with_tensorflow()
    one_keras.install_with_tensorflow()


def is_tensorflow1() -> bool:
    """Returns whether the process is one for TensorFlow 1."""
    from tf_ipu_shim.legacy.names.tensorflow import tensorflow1

    return tensorflow1.is_active()
