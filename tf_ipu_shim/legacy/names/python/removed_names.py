"""Restores NumPy and `collections` names of the TensorFlow 1.15 to 2.6 era, for scripts only.

Installed packages read some of them to learn the version. They get the values of the installed version, as does every
name that it has. Checked on NumPy 1.26 and 2.4, and Python 3.11.
"""

from __future__ import annotations

import builtins
import collections
import collections.abc
import functools
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.imports import import_callers

# Name of the time -> what it was: of Python's own, or NumPy's under the name that it has kept.
BUILTIN = {
    "bool": "bool",
    "complex": "complex",
    "float": "float",
    "int": "int",
    "long": "int",
    "object": "object",
    "str": "str",
    "unicode": "str",
}
KEPT = {
    "Inf": "inf",
    "Infinity": "inf",
    "NaN": "nan",
    "PINF": "inf",
    "alltrue": "all",
    "bool8": "bool_",
    "cfloat": "complex128",
    "clongfloat": "clongdouble",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "infty": "inf",
    "int0": "intp",
    "longcomplex": "clongdouble",
    "longfloat": "longdouble",
    "mat": "asmatrix",
    "object0": "object_",
    "product": "prod",
    "round_": "round",
    "singlecomplex": "complex64",
    "sometrue": "any",
    "string_": "bytes_",
    "typeDict": "sctypeDict",
    "uint0": "uintp",
    "unicode_": "str_",
}
# Of `numpy.exceptions`.
EXCEPTIONS = ("AxisError", "ComplexWarning", "RankWarning", "VisibleDeprecationWarning")
_IMPORTING = "<frozen importlib"  # `from numpy import long` asks from there first


def install() -> None:
    """Serves the names to modules that are no installed package's."""
    import numpy

    from tf_ipu_shim.legacy.names.python import removed_numpy  # it imports NumPy

    builtin_types = {name: getattr(builtins, meant) for name, meant in BUILTIN.items()}
    builtin_types.update({name: getattr(numpy, meant) for name, meant in KEPT.items()})
    builtin_types["NINF"] = -numpy.inf
    exceptions = vars(getattr(numpy, "exceptions", types.SimpleNamespace()))  # of NumPy 1.25 and later
    builtin_types.update({name: exceptions[name] for name in EXCEPTIONS if name in exceptions})
    builtin_types.update({name: getattr(removed_numpy, name) for name in removed_numpy.FUNCTIONS})
    patches.replace(
        numpy, "__getattr__", lambda stock: serving("numpy", builtin_types, stock), why="`np.int` and the like"
    )
    why = "`np.save` of arrays of different lengths, of scripts"
    patches.replace(
        numpy, "save", functools.partial(removed_numpy.saving_objects, import_callers.is_script_file), why=why
    )
    moved = {name: getattr(collections.abc, name) for name in collections.abc.__all__}
    patches.replace(
        collections,
        "__getattr__",
        lambda stock: serving("collections", moved, stock),
        why="`collections.Mapping` and the like",
    )


def serving(module: str, names: Mapping[str, Any], stock: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """Returns a `__getattr__` of a module that answers scripts.

    Args:
        module: its name.
        names: the names that scripts find there.
        stock: the module's own, if it has one.
    """

    def __getattr__(name: str) -> Any:
        if name in names:
            frame: types.FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename.startswith(_IMPORTING):
                frame = frame.f_back
            if frame is not None and import_callers.is_script_file(frame.f_code.co_filename):
                return names[name]
        if stock is not None:
            return stock(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
