"""Patches Keras 2 modules as they load to behave as in 2.6: batch norm, penalties, policies, loss scaling, seeds.

Checked on `keras` 2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from tensorflow.compat.v2 import distribute as distribute_lib
from tensorflow.compat.v2 import dtypes, nest

from tf_ipu_shim import patches
from tf_ipu_shim.frontend.keras.models import untraced_losses
from tf_ipu_shim.frontend.keras.stages import layer_construction
from tf_ipu_shim.frontend.strategies import delegation
from tf_ipu_shim.legacy.keras_2_6 import loss_scale_classes, methods, seeds
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.tf_private.operations import array_ops, init_ops_v2
from tf_ipu_shim.tf_private.tensors import tensor, tensor_util
from tf_ipu_shim.tf_private.variables import variables

_ROOTS = ("keras", "tf_keras")
_LOSS_SCALING, _POLICY = "mixed_precision.loss_scale_optimizer", "mixed_precision.policy"
_LAYER, _LAYER_V1, _PENALTIES = "engine.base_layer", "engine.base_layer_v1", "regularizers"
_BATCH_NORM = "layers.normalization.batch_normalization"
_BACKEND, _DATA_ADAPTER = "backend", "engine.data_adapter"
_SERIALIZATION, _NAMES = "saving.serialization_lib", "_keras_api_names"
INTERNAL = tuple(
    f"{root}.src.{part}"
    for root in _ROOTS
    for part in (
        _LOSS_SCALING,
        _POLICY,
        _LAYER,
        _LAYER_V1,
        _PENALTIES,
        _BATCH_NORM,
        _BACKEND,
        _DATA_ADAPTER,
        _SERIALIZATION,
    )
)


def loaded(name: str, module: Any) -> None:
    """Changes a module of `INTERNAL` that has been loaded.

    Args:
        name: its name.
        module: the module.
    """
    if name.endswith(_LOSS_SCALING):
        patches.replace(module, "strategy_supports_loss_scaling", _with_ours, why="an IPUStrategy has it")
        loss_scale_classes.loaded(module)
    elif name.endswith(_PENALTIES):
        patches.replace(module, "_check_penalty_number", _of_tensors, why="tensors as regularization penalties")
    elif name.endswith(_BATCH_NORM):
        if not hasattr(module, "BatchNormalizationBase"):
            return  # Keras 3
        why = "batch normalisation of float16 keeps float16 parameters, as on IPUs"
        patches.replace(module.BatchNormalizationBase, "_param_dtype", _of_the_layer, why=why)
    elif name.endswith(_LAYER_V1):
        methods.layers_loaded(module.Layer)
    elif name.endswith(_LAYER):
        layer_construction.install(module.Layer)
        methods.layers_loaded(module.Layer)
        delegation.install(module.Layer, name.removesuffix(f".{_LAYER}"))
        untraced_losses.install(module.Layer)
        patches.replace(
            module, "KerasExtension", lambda _: delegation.KerasExtension, why="a name of Graphcore's Keras"
        )
        patches.replace(
            module, "extension_delegate", lambda _: delegation.extension_delegate, why="a name of Graphcore's Keras"
        )
    elif name.endswith(_BACKEND):
        seeds.loaded(module)
    elif name.endswith(_SERIALIZATION):
        if not hasattr(module, "in_tf_saved_model_scope"):
            return  # Keras 3
        _call_as_in_keras(importlib.import_module(f"{name.removesuffix(_SERIALIZATION)}initializers"))
    elif name.endswith(_DATA_ADAPTER):
        patches.replace(module, "expand_1d", lambda _: _expand_1d, why="the name in Keras 2.6")
    elif name.endswith(_POLICY):
        patches.replace(module, "set_policy", lambda _: _set_policy(module), why="the name in Keras 2.6")


def _of_tensors(stock: Callable[[Any], None]) -> Callable[[Any], None]:
    """A penalty may be a scalar tensor or variable, which Keras casts like a number; Keras 2.3 looked at none."""

    @functools.wraps(stock)
    def check_penalty_number(penalty: Any) -> None:
        is_tensor = tensor_util.is_tf_type(penalty) or isinstance(penalty, (variables.Variable, np.number))
        if not (mode.is_requested() and is_tensor and penalty.shape == ()):
            stock(penalty)

    return check_penalty_number


def _call_as_in_keras(initializers: Any) -> None:
    """Makes Keras save TensorFlow's initializers under the names by which it loads them.

    A layer made of the configuration of another one then has the same configuration, as with Keras 2.6.
    """
    why = "Keras saves TensorFlow's initializers under its own names, as it reads them"
    for name, initializer in vars(init_ops_v2).items():
        own = vars(initializers).get(name)
        names = vars(own).get(_NAMES) if isinstance(own, type) else None
        if names and isinstance(initializer, type) and issubclass(initializer, init_ops_v2.Initializer):
            patches.replace(initializer, _NAMES, _always(names), why=why)


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def _of_the_layer(stock: property) -> property:
    """Keras raises the parameters of a float16 layer to float32. An IPU's batch normalisation keeps them in float16,
    and old scripts write optimizers for that."""

    def _param_dtype(layer: Any) -> Any:
        is_half = mode.is_requested() and layer.dtype == dtypes.float16
        return dtypes.float16 if is_half else stock.__get__(layer)

    return property(_param_dtype)


def _expand_1d(data: Any) -> Any:
    """Adds a second dimension of size 1 to one-dimensional tensors in the structure of a batch; keeps all else
    unchanged."""

    def expanded(value: Any) -> Any:
        is_flat = isinstance(value, tensor.Tensor) and value.shape.rank == 1
        return array_ops.expand_dims(value, -1) if is_flat else value

    return nest.map_structure(expanded, data)


def _set_policy(module: Any) -> Callable[[Any], None]:
    def set_policy(policy: Any) -> None:
        module.set_global_policy(policy)

    return set_policy


def _with_ours(stock: Callable[[], bool]) -> Callable[[], bool]:
    """Keras expects one copy of each variable for each replica, as an `IPUStrategy` has."""

    @functools.wraps(stock)
    def strategy_supports_loss_scaling() -> bool:
        return hasattr(distribute_lib.get_strategy(), "_enable_keras_extensions") or stock()

    return strategy_supports_loss_scaling
