"""Finds Keras 2 in the installed TensorFlow, whichever package contains it.

TensorFlow 2.15 has it as `keras`, 2.21 as `tf_keras`; both also carry an older copy as `tensorflow.python.keras`. They
have the same modules below a root: `keras.src`, `tf_keras.src`, `tensorflow.python.keras`. Checked on 2.15.1 and
2.21.0.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import os
import pathlib
from typing import Any

from tf_ipu_shim import errors

ROOTS = ("keras.src", "tf_keras.src", "tensorflow.python.keras")
_ENGINE = ".engine.training"


@functools.cache
def root() -> str:
    """Returns the root of the Keras 2 that `tf.keras` is, or would be with `TF_USE_LEGACY_KERAS=1`.

    TensorFlow reads that variable when `tf.keras` is first used; if it is set, `tf_keras` is used instead of `keras`.

    Example:
        >>> root() in ("keras.src", "tf_keras.src")
        True
    """
    legacy = os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1")
    for name in reversed(ROOTS[:2]) if legacy else ROOTS[:2]:
        if has_engine(name):
            return name
    raise errors.UnsupportedError(
        "Keras 2 is needed and not installed: TensorFlow from 2.16 on comes with Keras 3. Install tf_keras of the same "
        "version as TensorFlow, `pip install --no-deps tf_keras==2.21.*` for 2.21; it is then used automatically."
    )


def module(name: str, package: str | None = None) -> Any:
    """Returns a module of Keras 2.

    Example:
        >>> module("engine.training").Model.__name__
        'Model'
    """
    return importlib.import_module(f"{package or root()}.{name}")


def public_module() -> Any:
    """Returns the public Keras 2 module: `keras` or `tf_keras`.

    Example:
        >>> type(public_module().layers.Dense(4)).__name__
        'Dense'
    """
    return importlib.import_module(root().partition(".")[0])


def root_of_class(kind: type) -> str | None:
    """Returns the root of the Keras package that defines a class of models; None if it is not a Keras 2 model.

    Example:
        >>> root_of_class(tf.keras.Sequential) == root()
        True
    """
    for base in kind.__mro__:
        if base.__name__ == "Model" and base.__module__.endswith(_ENGINE):
            return base.__module__[: -len(_ENGINE)]
    return None


def has_engine(name: str) -> bool:
    """Returns whether a root is installed and Keras 2's.

    Looks for the file: importing Keras 3 takes seconds, and fails under `--tf1`. Only the installed package counts, not
    an alias in this process (`names/keras_alias`).

    Example:
        >>> has_engine(root())
        True
    """
    package, _, below = name.partition(".")
    spec = importlib.machinery.PathFinder.find_spec(package)
    file = pathlib.Path(below, *_ENGINE.strip(".").split(".")).with_suffix(".py")
    return spec is not None and any(
        (pathlib.Path(path) / file).exists() for path in spec.submodule_search_locations or ()
    )
