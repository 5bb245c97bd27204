"""Lets a session's graph use a host embedding table by its id before the session registers its variable."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.tracing import host_ops
from tf_ipu_shim.frontend.tracing.internal_variables import internal
from tf_ipu_shim.tf_private.variables import gen_resource_variable_ops

_SCOPE = "host_embedding"
_HANDLES = "_ipu_held_handles"
_CHANGES = "_ipu_table_changes"


class DeferredTable:
    """A table with a name derived from its id, so that ops can refer to it before it exists.

    It is a copy of the registered variable, with the sum of the additions that are not applied yet.

    Example:
        >>> DeferredTable("words", tf.TensorShape([1000, 4]), tf.float32).shape.rank
        2
    """

    def __init__(self, embedding_id: str, shape: tf.TensorShape, dtype: tf.DType) -> None:
        self.shape = shape
        self.dtype = dtype
        self._name = f"{_SCOPE}/{embedding_id}"

    @property
    def handle(self) -> tf.Tensor:
        """The copy's handle, in the current graph."""
        return self._handle("table", self.shape)

    def load_variable(self, variable: Any, gathers: bool) -> tf.Tensor:
        """Initializes the table from a variable; returns the variable's value."""
        with tf.device("/device:CPU:0"):
            value = tf.identity(variable)
            with tf.control_dependencies(
                [
                    _write_handle(self.handle, value),
                    _write_handle(self._handle("sum", self.shape), tf.zeros_like(value)),
                    _write_handle(self._handle("gathers", tf.TensorShape([])), tf.cast(gathers, self.dtype)),
                ]
            ):
                return tf.identity(value)

    def store_variable(self, variable: Any) -> tf.Tensor:
        """Writes the table into a variable and drops the table; returns its value."""
        parts = [self.handle, self._handle("sum", self.shape), self._handle("gathers", tf.TensorShape([]))]
        with tf.device("/device:CPU:0"):
            value = _read_handle(parts[0], self.dtype)
            with tf.control_dependencies([tf.compat.v1.assign(variable, value)]):
                destroyed = [gen_resource_variable_ops.destroy_resource_op(part) for part in parts]
            with tf.control_dependencies(destroyed):
                return tf.identity(value)

    def add(self, rows: Any, indices: Any) -> Any:
        """Adds rows to the table, or to its pending changes."""
        with self._in_order() as changes:
            gathers = _read_handle(self._handle("gathers", tf.TensorShape([])), self.dtype)
            total = self._handle("sum", self.shape)
            changes[self._name] = tf.group(
                gen_resource_variable_ops.resource_scatter_add(self.handle, indices, rows * (1 - gathers)),
                gen_resource_variable_ops.resource_scatter_add(total, indices, rows * gathers),
            )
        return changes[self._name]

    def apply_pending(self) -> Any:
        """Adds the pending changes to the table."""
        with self._in_order() as changes:
            total = self._handle("sum", self.shape)
            gathered = _read_handle(total, self.dtype)
            added = gen_resource_variable_ops.assign_add_variable_op(self.handle, gathered)
            with tf.control_dependencies([added]):
                changes[self._name] = _write_handle(total, tf.zeros_like(gathered))
        return changes[self._name]

    @contextlib.contextmanager
    def _in_order(self) -> Iterator[dict[str, Any]]:
        """Yields the last change of each table in the current graph, inner changes after this table's."""
        graph = tf.compat.v1.get_default_graph()
        changes: dict[str, Any] = dict(getattr(graph, _CHANGES, {}))
        with tf.control_dependencies([changes[self._name]] if self._name in changes else []):
            yield changes
        setattr(graph, _CHANGES, changes)

    def _handle(self, part: str, shape: tf.TensorShape) -> tf.Tensor:
        # One op in each graph, by which TensorFlow sees what touches the same table.
        name = f"{self._name}/{part}"
        graph = tf.compat.v1.get_default_graph()
        handles: dict[str, tf.Tensor] = getattr(graph, _HANDLES, {})
        if name not in handles:
            with tf.control_dependencies(None), host_ops.host_placement(_SCOPE):
                handle = internal(gen_resource_variable_ops.var_handle_op(self.dtype, shape, shared_name=name))
            handles = {**handles, name: handle}
            setattr(graph, _HANDLES, handles)
        return handles[name]


def _read_handle(handle: Any, dtype: tf.DType) -> tf.Tensor:
    return gen_resource_variable_ops.read_variable_op(handle, dtype)


def _write_handle(handle: Any, value: Any) -> Any:
    return gen_resource_variable_ops.assign_variable_op(handle, value)
