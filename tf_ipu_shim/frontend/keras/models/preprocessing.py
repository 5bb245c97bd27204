"""Lets preprocessing layers adapt to data on the host in a strategy's scope, where the last batch may be smaller."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import keras2, patches

MODULES = tuple(f"{root}.engine.base_preprocessing_layer" for root in keras2.ROOTS)


def patch_module(module: Any) -> None:
    """Patches `PreprocessingLayer.adapt`, which the layers' own call."""
    patches.replace(
        module.PreprocessingLayer,
        "adapt",
        _patch_adapt,
        why="a preprocessing layer adapts to data of any shape, also in a strategy's scope",
    )


def _patch_adapt(stock: Callable[..., None]) -> Callable[..., None]:
    from tf_ipu_shim.frontend.feeds import ipu_iterators  # imports TensorFlow, which Keras has done now

    @functools.wraps(stock)
    def adapt(self: Any, *arguments: Any, **keywords: Any) -> None:
        with ipu_iterators.stock_iterators():
            stock(self, *arguments, **keywords)

    return adapt
