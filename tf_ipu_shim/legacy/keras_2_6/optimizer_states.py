"""Keeps the state of OptimizerV2 classes in files of the format `.keras`.

Keras writes and reads the variables of its later optimizers only. A loaded model with an OptimizerV2 would continue
without its momentum, from iteration zero. Checked on `keras` 2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.configuration import warnings
from tf_ipu_shim.tf_private import keras_members

_WHY = "a `.keras` file has the state of an OptimizerV2"


def loaded(root: str, optimizer: Any) -> None:
    """Changes a Keras package that has been loaded.

    Args:
        root: its root, such as `keras.src`.
        optimizer: its class OptimizerV2.
    """
    saving = sys.modules[f"{root}.saving.saving_lib"]
    model = sys.modules[f"{root}.engine.training"].Model
    patches.replace(saving, "_is_keras_trackable", functools.partial(_or_optimizer, optimizer), why=_WHY)
    patches.replace(optimizer, "save_own_variables", lambda _: _save, why=_WHY)
    patches.replace(optimizer, "load_own_variables", lambda _: _load, why=_WHY)
    patches.replace(model, "compile_from_config", functools.partial(_with_slots, optimizer), why=_WHY)


def _or_optimizer(optimizer: type, stock: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda obj: stock(obj) or isinstance(obj, optimizer)


def _with_slots(optimizer: type, stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def compile_from_config(self: Any, config: Any) -> None:
        stock(self, config)
        chosen = getattr(self, "optimizer", None)
        if isinstance(chosen, optimizer) and self.built:
            keras_members.create_all_weights(chosen, self.trainable_variables)

    return compile_from_config


def _save(self: Any, store: Any) -> None:
    for index, value in enumerate(self.get_weights()):
        store[str(index)] = value


def _load(self: Any, store: Any) -> None:
    values = [store[str(index)] for index in range(len(store.keys()))]
    if len(values) != len(self.weights):
        warnings.warn(
            f"The state of {type(self).__name__} is not read: the file has {len(values)} variables of the optimizer, "
            f"and the one of this model has {len(self.weights)}. It starts without a state; weights of layers are read."
        )
        return
    self.set_weights(values)
