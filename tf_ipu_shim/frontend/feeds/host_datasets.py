"""Traces the functions of datasets, such as `map`'s, for the host although the script's scope names an IPU.

TensorFlow 2 moves their ops to the host itself; a session places ops on the devices that they name, or fails.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.tf_private.datasets import structured_function
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops


def install() -> None:
    """Traces functions of datasets without the device of a scope around them."""
    patches.replace(
        structured_function.StructuredFunctionWrapper, "__init__", _on_host, why="functions of datasets run on the host"
    )


def _on_host(stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        if context.executing_eagerly():
            stock(self, *args, **kwargs)
            return
        with ops.device(None):
            stock(self, *args, **kwargs)

    return construct
