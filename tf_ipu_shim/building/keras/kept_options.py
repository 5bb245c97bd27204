"""Where Keras makes a model of another one, or of a file: what `saved_options` wrote goes over to it.

Checked on `keras` 2.15.0, `tf_keras` 2.21.0 and `tensorflow.python.keras` of TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import keras2, patches

_CLONING = {"tensorflow.python.keras": "models"}
_LOADING = {"tensorflow.python.keras": "saving.saved_model.load"}
CLONING = tuple(f"{root}.{_CLONING.get(root, 'models.cloning')}" for root in keras2.ROOTS)
LOADING = tuple(f"{root}.{_LOADING.get(root, 'saving.legacy.saved_model.load')}" for root in keras2.ROOTS)


def loaded(name: str, module: Any) -> None:
    """Changes a module of `CLONING` or `LOADING` that has been loaded.

    Args:
        name: its name.
        module: the module.
    """
    if name in CLONING:
        for function in ("_clone_functional_model", "_clone_sequential_model"):
            patches.replace(module, function, _cloning, why="a clone keeps its options for the IPU")
    else:
        why = "a model that is loaded from a SavedModel keeps its options for the IPU"
        patches.replace(module.KerasObjectLoader, "_reconstruct_model", functools.partial(_loading, module), why=why)


def reading(bound: Any) -> Any:
    """Lets a class of Keras' own, where it has a `from_config`, read what `saved_options` wrote.

    Args:
        bound: the class method.
    """
    stock = bound.__func__

    @functools.wraps(stock)
    def from_config(cls: type, config: dict[str, Any], custom_objects: Any = None) -> Any:
        model = stock(cls, config, custom_objects)
        _read(model, config)
        return model

    return classmethod(from_config)


def _cloning(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def clone(model: Any, *args: Any, **kwargs: Any) -> Any:
        from tf_ipu_shim.building.keras import networks, saved_options

        made = stock(model, *args, **kwargs)
        if hasattr(model, "_ipu") and networks.has_own_graph(model):
            entry = saved_options.to_config(model)
            if entry is not None and hasattr(made, "_ipu"):  # outside a strategy's scope it has no extensions
                saved_options.restore(made, entry)
        return made

    return clone


def _loading(module: Any, stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def _reconstruct_model(self: Any, model_id: int, model: Any, layers: Any) -> None:
        stock(self, model_id, model, layers)
        _read(model, module.json_utils.decode(self._metadata[model_id].metadata)["config"])

    return _reconstruct_model


def _read(model: Any, config: dict[str, Any]) -> None:
    if hasattr(model, "_ipu") and model._deserialize_from_config_supported(config):
        model._deserialize_from_config_delegate(config)
