"""Serves `ipu_tensorflow_addons.util._dependency_versions`: the versions of the installed TensorFlow and Keras.

Graphcore's build writes that file; a checkout of the addons' sources does not have it.
"""

from __future__ import annotations

import importlib
from typing import Any

_PACKAGES = {"TENSORFLOW_VERSION": "tensorflow", "KERAS_VERSION": "keras"}


def __getattr__(name: str) -> Any:
    if name not in _PACKAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(_PACKAGES[name]).__version__
