"""Detects `add_loss` calls inside a script's own `tf.function`, which the model's loss would miss.

Keras notes a loss when Python runs `add_loss`. A function that was traced before is called again without its Python
code. Checked on `keras` 2.15, `tf_keras` 2.21, and `Graph._functions` of TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import patches
from tf_ipu_shim.tf_private import functions as tf_functions
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.tensors import errors_impl

_ADDED = "_ipu_added_losses"  # of a graph: layers' names with the tensors that they added


def install(layer: type) -> None:
    """Notes which graphs have the losses of a Keras package's layers."""
    patches.replace(
        layer, "add_loss", _patch_add_loss, why="a loss that a script adds inside a tf.function is an error"
    )


def _patch_add_loss(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def add_loss(self: Any, losses: Any, *args: Any, **kwargs: Any) -> Any:
        graph = ops.get_default_graph()
        if graph.building_function:
            added = [(self.name, loss) for loss in nest.flatten(losses) if getattr(loss, "graph", None) is graph]
            setattr(graph, _ADDED, [*getattr(graph, _ADDED, ()), *added])
        return stock(self, losses, *args, **kwargs)

    return add_loss


def check_losses(program: Any) -> None:
    """Refuses a program that calls functions in which layers add losses that nothing reads."""
    for function in tf_graphs.functions_by_name(program.graph).values():
        graph: Any = tf_functions.source_graph(function)
        returned = {id(tensor) for tensor in getattr(graph, "outputs", ())}
        for layer, loss in getattr(graph, _ADDED, ()):
            if not loss.consumers() and id(loss) not in returned:
                raise errors_impl.InaccessibleTensorError(
                    f"The layer or model {layer} adds a loss in the tf.function {graph.name}, which the model calls: "
                    f"{loss!r} is out of scope there. The model's loss would leave it out. "
                    "Remove `@tf.function` from that `call`: Keras compiles the whole step."
                )
