"""Patches Keras' layer and node constructors to record pipeline stages and source lines, and to accept any `trainable`.

`super().__init__(name)` is a mistake that Keras 2.6 let pass: the first argument is `trainable`. Checked on `keras`
2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.legacy.names import activation
from tf_ipu_shim.runtime.errors import layer_lines
from tf_ipu_shim.tf_private.functions import tf_decorator
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.tensors import tensor
from tf_ipu_shim.tf_private.variables import variables

ATTRIBUTE = "_pipeline_stage"  # of a layer or node
_TRAINABLE = "trainable"


class _CurrentStage(threading.local):
    """This thread's current stage, and the number of stages entered."""

    stage: int | None = None
    entered = 0


current = _CurrentStage()


def install(layer: type) -> None:
    """Patches a Keras package's layers to accept any `trainable` and to record their stage and source line."""
    why = "layers record their `PipelineStage` and the script's line, and accept `trainable` of any type"

    def constructor(stock: Callable[..., None]) -> Callable[..., None]:
        constructor_patch = _patch_recording_init(stock)
        return _patch_trainable(constructor_patch) if activation.is_requested() else constructor_patch

    patches.replace(layer, "__init__", constructor, why=why)
    patches.replace(layer, "_name_scope", _patch_name_scope, why="remembers which layer a name scope belongs to")


def patch_stage_recording(stock: Callable[..., None]) -> Callable[..., None]:
    """Returns a constructor whose objects remember the stage in which they were made."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        stage = current.stage  # before: a layer's constructor may enter stages itself
        stock(self, *args, **kwargs)
        _record_stage(self, stage)

    # Keras reads the constructor's arguments for the configuration of a layer; this keeps them as they read.
    return tf_decorator.make_decorator(stock, init)  # type: ignore[no-any-return]


def _patch_recording_init(stock: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        stage = current.stage
        stock(self, *args, **kwargs)
        _record_stage(self, stage)
        layer_lines.remember(self)

    return tf_decorator.make_decorator(stock, init)  # type: ignore[no-any-return]


def _patch_name_scope(stock: Callable[[Any], str]) -> Callable[[Any], str]:
    """Returns the name scope of a layer's call; Keras reads it when it makes a graph."""

    def scope(layer: Any) -> str:
        name = stock(layer)
        layer_lines.note_call(layer, ops.get_default_graph(), name)
        return name

    return scope


def _record_stage(layer: Any, stage: int | None) -> None:
    if stage is not None:
        object.__setattr__(layer, ATTRIBUTE, stage)


def _patch_trainable(stock: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if args:
            args = (_to_bool(args[0]), *args[1:])
        elif _TRAINABLE in kwargs:
            kwargs[_TRAINABLE] = _to_bool(kwargs[_TRAINABLE])
        stock(self, *args, **kwargs)

    return tf_decorator.make_decorator(stock, init)  # type: ignore[no-any-return]


def _to_bool(trainable: Any) -> Any:
    return trainable if isinstance(trainable, (tensor.Tensor, variables.Variable)) else bool(trainable)
