"""Restores methods of Keras layers and models that existed in TensorFlow 2.1 to 2.6.

Checked on `keras` 2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tf_ipu_shim import patches
from tf_ipu_shim.legacy.names import mode


def layers_loaded(layer: Any) -> None:
    """Restores the removed methods of a Keras package's base class of layers."""
    if not mode.is_requested():
        return
    patches.replace(layer, "add_update", _with_inputs, why="`add_update(updates, inputs)` of a script's layers")
    for name, method in (("get_updates_for", _get_updates_for), ("get_losses_for", _get_losses_for)):
        if not hasattr(layer, name):
            patches.replace(layer, name, functools.partial(_instead, method), why=f"`{name}`, as in Keras 2.6")


def models_loaded(module: Any) -> None:
    """Restores the removed methods of `Sequential`."""
    sequential = vars(module).get("Sequential")
    if sequential is None or not mode.is_requested():
        return
    for name, method in (("predict_classes", _predict_classes), ("predict_proba", _predict_proba)):
        if not hasattr(sequential, name):
            patches.replace(sequential, name, functools.partial(_instead, method), why=f"`{name}`, as in Keras 2.5")


def _instead(method: Callable[..., Any], _: Any) -> Callable[..., Any]:
    return method


def _with_inputs(stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def add_update(self: Any, updates: Any, inputs: Any = None) -> None:
        stock(self, updates)

    return add_update


def _get_updates_for(self: Any, inputs: Any) -> Any:
    return self.updates


def _get_losses_for(self: Any, inputs: Any) -> Any:
    return self.losses


def _predict_proba(self: Any, x: Any, batch_size: int | None = 32, verbose: Any = 0) -> Any:
    """Returns the predictions."""
    return self.predict(x, batch_size=batch_size, verbose=verbose)


def _predict_classes(self: Any, x: Any, batch_size: int | None = 32, verbose: Any = 0) -> Any:
    """The class of each prediction: the largest one's index, or of a single output whether it is above a half."""
    probabilities = _predict_proba(self, x, batch_size, verbose)
    return probabilities.argmax(axis=-1) if probabilities.shape[-1] > 1 else (probabilities > 0.5).astype(np.int32)
