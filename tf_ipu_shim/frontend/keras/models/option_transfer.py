"""Copies IPU options when Keras clones a model or loads it from a file.

Checked on `keras` 2.15.0, `tf_keras` 2.21.0 and `tensorflow.python.keras` of TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import keras2, patches
from tf_ipu_shim.frontend.strategies import delegation

_CLONING = {"tensorflow.python.keras": "models"}
_LOADING = {"tensorflow.python.keras": "saving.saved_model.load"}
CLONING = tuple(f"{root}.{_CLONING.get(root, 'models.cloning')}" for root in keras2.ROOTS)
LOADING = tuple(f"{root}.{_LOADING.get(root, 'saving.legacy.saved_model.load')}" for root in keras2.ROOTS)


def patch_module(name: str, module: Any) -> None:
    """Changes a module of `CLONING` or `LOADING` that has been loaded."""
    if name in CLONING:
        for function in ("_clone_functional_model", "_clone_sequential_model"):
            patches.replace(module, function, _patch_clone, why="a clone keeps its options for the IPU")
    else:
        why = "a model that is loaded from a SavedModel keeps its options for the IPU"
        patches.replace(
            module.KerasObjectLoader, "_reconstruct_model", functools.partial(_patch_loader, module), why=why
        )
        patches.replace(
            module.KerasObjectLoader, "finalize_objects", functools.partial(_patch_finalize, module), why=why
        )


def patch_from_config(bound: Any) -> Any:
    """Patches `from_config` of a Keras class to restore the saved IPU options."""
    stock = bound.__func__

    @functools.wraps(stock)
    def from_config(cls: type, config: dict[str, Any], custom_objects: Any = None) -> Any:
        model = stock(cls, _constructor_config(cls, config), custom_objects)
        _restore_options(model, config)
        return model

    return classmethod(from_config)


def _patch_clone(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def clone(model: Any, *args: Any, **kwargs: Any) -> Any:
        from tf_ipu_shim.frontend.keras.models import networks
        from tf_ipu_shim.frontend.keras.options import saved_options

        cloned = stock(model, *args, **kwargs)
        if hasattr(model, "_ipu") and networks.has_own_graph(model):
            entry = saved_options.options_to_config(model)
            if entry is not None and hasattr(cloned, "_ipu"):  # outside a strategy's scope it has no extensions
                saved_options.restore_options(cloned, entry)
        return cloned

    return clone


def _patch_loader(module: Any, stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def _reconstruct_model(self: Any, model_id: int, model: Any, layers: Any) -> None:
        stock(self, model_id, model, layers)
        _restore_options(model, module.json_utils.decode(self._metadata[model_id].metadata)["config"])

    return _reconstruct_model


def _patch_finalize(module: Any, stock: Callable[..., None]) -> Callable[..., None]:
    """Subclassed models, once they have their layers: their options are stored next to their configuration."""

    @functools.wraps(stock)
    def finalize_objects(self: Any) -> None:
        from tf_ipu_shim.frontend.keras.options import saved_options

        stock(self)
        for node_id, (node, _) in self.loaded_nodes.items():
            if hasattr(node, "_restore_saved_options") and node_id in self._metadata:
                entry = module.json_utils.decode(self._metadata[node_id].metadata).get(saved_options.ENTRY)
                if entry is not None:
                    node._restore_saved_options(entry)

    return finalize_objects


def _constructor_config(cls: type, config: dict[str, Any]) -> dict[str, Any]:
    """Returns the part of a configuration that a subclassed model's constructor accepts."""
    if delegation.registered_extension(cls) is None or "layers" in config:
        return config
    parameters = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return config
    return {name: value for name, value in config.items() if name in parameters}


def _restore_options(model: Any, config: dict[str, Any]) -> None:
    if hasattr(model, "_ipu") and model._deserialize_from_config_supported(config):
        model._deserialize_from_config_delegate(config)
