"""Creates variables while a model's program is traced, named as in stock Keras and without retracing.

Uses `Graph._variable_creator_scope` and the keyword by which a `tf.function` leaves a variable to the creators before
its own; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops

_AFTER_STRATEGIES = 60  # creators are called from 100, those of strategies, down to 50, that of a `tf.function`


@contextlib.contextmanager
def variable_creation_scope() -> Iterator[None]:
    """A context in which a program's step is traced, entered in the graph of its loop's body.

    Keras makes weights, metrics and slots in `init_scope`: they exist at once, so that `tf.function` need not trace
    again. Variables that `call` makes itself are handled by `tf.function`, as in stock Keras.
    """
    graph = ops.get_default_graph()
    outermost = graph.get_name_scope()

    def create(next_creator: Callable[..., Any], **arguments: Any) -> Any:
        with _relative_scope(outermost):
            if context.executing_eagerly():
                arguments["experimental_enable_variable_lifting"] = False
            return next_creator(**arguments)

    with tf_graphs.variable_creator_scope(graph, create, priority=_AFTER_STRATEGIES):
        yield


def _relative_scope(outermost: str) -> Any:
    """Returns the current name scope without the program's own part."""
    eager = context.executing_eagerly()
    current = context.context().scope_name.rstrip("/") if eager else ops.get_default_graph().get_name_scope()
    if not outermost or not f"{current}/".startswith(f"{outermost}/"):
        return contextlib.nullcontext()
    within = current[len(outermost) + 1 :]
    return ops.name_scope_v2(f"{within}/" if within else "")
