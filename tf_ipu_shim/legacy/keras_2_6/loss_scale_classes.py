"""Supports subclasses of `tf.keras.mixed_precision.LossScaleOptimizer`, which was a class in Keras 2.6.

The current public class constructs one of two other classes and has no constructor. The arguments that a subclass
passes to `super().__init__` reach `object.__init__`, which accepts none. A script's subclass is therefore derived from
the class of 2.6, which wraps the optimizers of `tf.keras.optimizers` in a process that uses `ipu`. Checked on `keras`
2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.legacy.names import mode


def loaded(module: Any) -> None:
    """Changes how subclasses are made and constructed."""
    public = getattr(module, "BaseLossScaleOptimizer", None)
    if public is None or not mode.has_graphcore_optimizers():
        return  # Keras 3, or a script of today
    of_the_time = module.LossScaleOptimizer
    why = "a script's subclass of `LossScaleOptimizer` has its constructor, as in Keras 2.6"
    patches.replace(type(public), "__new__", lambda _: _with_other_base(public, of_the_time), why=why)
    patches.replace(type(public), "__call__", functools.partial(_by_their_constructors, public), why=why)


def _with_other_base(public: type, of_the_time: type) -> Callable[..., type]:
    def __new__(meta: type, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> type:
        meant = tuple(of_the_time if base is public else base for base in bases)
        return type.__new__(meta, name, meant, namespace, **options)

    return __new__


def _by_their_constructors(public: type, stock: Callable[..., Any]) -> Callable[..., Any]:
    """Limits Keras' call, which names the first argument, to the public class: subclasses use their constructors."""

    @functools.wraps(stock)
    def __call__(cls: type, *args: Any, **kwargs: Any) -> Any:
        return stock(cls, *args, **kwargs) if cls is public else type.__call__(cls, *args, **kwargs)

    return __call__
