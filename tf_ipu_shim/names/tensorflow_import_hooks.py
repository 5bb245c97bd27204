"""Selects Keras 2 before a script imports TensorFlow, and restores moved names after an IPU script did.

Most scripts import TensorFlow first, parts of it then, and `ipu` after those: `tensorflow.python.framework.ops`
precedes it alphabetically. For them the names that `ipu` would restore exist from the first line on, as under the
runner.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from tf_ipu_shim.keras2 import choice
from tf_ipu_shim.legacy.names import activation


def find_tensorflow_spec(path: Sequence[str] | None, target: Any) -> ModuleSpec | None:
    """Finds TensorFlow, as a finder of `sys.meta_path` does."""
    if not activation.is_stock():
        choice.use_keras2()
    if not _is_for_ipus():
        return None
    from tf_ipu_shim.imports import post_import_hooks

    spec = PathFinder.find_spec("tensorflow", path, target)
    if spec is not None and spec.loader is not None:
        post_import_hooks.call_after_loading(spec.loader, activation.tensorflow_loaded)
    return spec


def _is_for_ipus() -> bool:
    from tf_ipu_shim import errors
    from tf_ipu_shim.names import finder, ipu_script_detection

    try:
        return activation.is_requested() and ipu_script_detection.is_import_in_progress(finder.is_graphcore_name)
    except errors.UnsupportedError:  # the import of `ipu` says so
        return False
