"""Makes `import keras` mean Keras 2 in IPU scripts when Keras 2 is a separate package.

Scripts of that time import `keras` or `tensorflow.keras` interchangeably, because they were one package. From
TensorFlow 2.16 on `keras` is Keras 3, whose models run on no IPU. So in a process that uses IPUs, or in a script that
is about to, the name leads to `tf_keras`, if `tf.keras` does so too. It does not if Keras 3 is loaded already, or
chosen by the user. Checked on TensorFlow 2.21.0 with tf_keras 2.21.0; TensorFlow 2.15 has Keras 2 as `keras`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.imports import aliases
from tf_ipu_shim.keras2 import choice
from tf_ipu_shim.legacy.names import activation
from tf_ipu_shim.names import finder

NAME = "keras"
_KERAS_2 = "tf_keras"


def find_keras_spec() -> ModuleSpec | None:
    """Returns the spec of Keras 2 under the name of Keras 3, or None to keep the installed one."""
    if not choice.is_separate_package() or not finder.is_ipu_process() or activation.is_stock():
        return None
    choice.use_keras2()
    if os.environ.get(choice.ENVIRONMENT_VARIABLE) not in choice.CHOSEN:
        return None
    target = importlib.util.find_spec(_KERAS_2)
    if target is None:
        return None
    patches.change(
        f"sys.meta_path: {NAME}",
        lambda: sys.meta_path.insert(0, _below),  # type: ignore[arg-type]
        lambda: sys.meta_path.remove(_below),  # type: ignore[arg-type]
        why="`import keras` is Keras 2, as it was",
        undone="the finder is removed",
    )
    return aliases.make_alias_spec(NAME, target)


class _SubmoduleFinder:
    """Finds the modules of Keras 2 below the name."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        package, _, below = fullname.partition(".")
        if package != NAME or not below or finder.own_name(fullname) is not None:
            return None
        if sys.modules.get(NAME) is not sys.modules.get(_KERAS_2):  # somebody has asked for it, and not imported it
            return None
        try:
            spec = importlib.util.find_spec(f"{_KERAS_2}.{below}")
        except ModuleNotFoundError:  # a package that Keras has split since: names of the time are found later
            return None
        return aliases.make_alias_spec(fullname, spec) if spec is not None else None


_below = _SubmoduleFinder()
