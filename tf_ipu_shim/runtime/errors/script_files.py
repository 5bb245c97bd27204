"""Tells a script's own source files from library and generated ones."""

from __future__ import annotations

import functools
import importlib.util
import os
import pathlib
import site
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any, NamedTuple

_OWN = str(pathlib.Path(__file__).resolve().parents[2])
_STANDARD = (sysconfig.get_path("stdlib"), "<frozen ")
# Only directories of packages: of this environment, of its base, of the user (`pip install --user`).
_PACKAGES = tuple(
    {
        sysconfig.get_path("purelib"),
        sysconfig.get_path("platlib"),
        *site.getsitepackages(),
        site.getusersitepackages(),
        *(entry for entry in sys.path if os.path.basename(entry) in ("site-packages", "dist-packages")),
    }
)
# Files of the command that runs a script.
RUNNER = os.path.join(_OWN, "cli") + os.sep
# Packages that TensorFlow and Keras call, and that call TensorFlow, so that their frames are between the script and it.
_CALLED = ("numpy", "h5py")
_RUNNING_MODELS = tuple(os.path.join(_OWN, *path, "") for path in (("frontend", "keras"), ("legacy", "old_keras")))
_GENERATED = "__autograph_generated_file"


def _directories(*names: str) -> tuple[str, ...]:
    """Directories of packages, each with a separator at the end; `pip install --target` puts them next to scripts."""
    spec = importlib.util.find_spec("tensorflow")  # of the others it would ask our own finders, which act on it
    locations = spec.submodule_search_locations if spec is not None else None
    homes = {*_PACKAGES, *map(os.path.dirname, (locations or [])[:1])}
    return tuple(os.path.join(home, name) + os.sep for name in names for home in sorted(homes))


# Files whose frames say nothing to a script's user: TensorFlow's, Keras' and ours.
HIDDEN = (_OWN + os.sep, *_directories("tensorflow", "tensorflow_estimator", "keras", "tf_keras"))
_CALLED_FILES = _directories(*_CALLED)


@functools.lru_cache(maxsize=8192)  # of each op's stack, again and again
def is_users(file: str) -> bool:
    """Returns whether a source file is the user's.

    Example:
        >>> is_users("/home/me/train.py"), is_users(os.__file__)
        (True, False)
    """
    if is_generated(file):
        return False
    return not file.startswith((*_STANDARD, *_PACKAGES, *HIDDEN, *_CALLED_FILES))


def is_training_loop(file: str) -> bool:
    """Returns whether a source file implements Keras' `fit`, `evaluate` or `predict` here.

    Example:
        >>> is_training_loop("train.py")
        False
    """
    return file.startswith(_RUNNING_MODELS)


def is_of_python(file: str) -> bool:
    """Returns whether a source file is of Python's own library.

    Example:
        >>> is_of_python(os.__file__)
        True
    """
    return file.startswith(_STANDARD) and not file.startswith(_PACKAGES)


def is_of_called_package(file: str) -> bool:
    """Returns whether a source file is of a package between TensorFlow and scripts, such as NumPy.

    Example:
        >>> is_of_called_package("h5py/h5f.pyx"), is_of_called_package("train.py")
        (True, False)
    """
    if not os.path.isabs(file):
        return file.startswith(tuple(f"{name}/" for name in _CALLED)) and file.endswith(".pyx")
    return file.startswith(_CALLED_FILES)


def is_generated(file: str) -> bool:
    """Returns whether autograph has made a source file.

    Example:
        >>> is_generated("/var/tmp/__autograph_generated_file1.py")
        True
    """
    return os.path.basename(file).startswith(_GENERATED)


class SourceLine(NamedTuple):
    """A line of a script."""

    file: str
    line: int
    function: str
    source: str


def origin(file: str, line: int) -> SourceLine | None:
    """Returns the script line from which autograph generated a line.

    Example:
        >>> origin("/var/tmp/__autograph_generated_file1.py", 12) is None
        True
    """
    for factory in _factories():
        source_map = getattr(factory, "source_map", None) or {}
        if getattr(getattr(factory, "module", None), "__file__", None) != file:
            continue
        for position, origin_info in source_map.items():
            if position.lineno == line:
                return SourceLine(
                    origin_info.loc.filename,
                    origin_info.loc.lineno,
                    origin_info.function_name or "<module>",
                    origin_info.source_code_line,
                )
    return None


def _factories() -> Iterator[Any]:
    """Yields the functions that AutoGraph generated from each function."""
    if "tensorflow.python.autograph.impl.api" in sys.modules:
        from tf_ipu_shim.tf_private import autograph

        yield from autograph.conversions()
