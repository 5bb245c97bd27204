"""Maps embedding ids to host tables, for Graphcore's embedding ops that name a table by its id."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops.embeddings import host_embedding, replica_turns
from tf_ipu_shim.frontend.ops.embeddings.deferred_tables import DeferredTable
from tf_ipu_shim.frontend.ops.embeddings.host_embedding import HostEmbeddingOptimizerSpec, tables
from tf_ipu_shim.frontend.tracing import host_ops
from tf_ipu_shim.tf_private import tensors as tf_tensors

_OPTIMIZER = "SGD"
_GATHERING = "SGD+GA"
_HELD = "_ipu_held_tables"


def register_table(embedding_id: str, table: Any, optimizer: str = _OPTIMIZER) -> Any:
    """Registers a table under an id, replacing an earlier one; returns the table as a tensor."""
    in_graph = not tf.executing_eagerly()
    if optimizer != _OPTIMIZER and not (in_graph and optimizer == _GATHERING):
        raise ValueError(
            f"The optimizer of host embedding {embedding_id!r} is {optimizer!r}; expected 'SGD', or "
            "'SGD+GA' in a session's graph. Use 'SGD'."
        )
    is_variable = hasattr(table, "handle")
    if not is_variable and not (in_graph and tf_tensors.is_ref_dtype(getattr(table, "dtype", None))):
        raise ValueError(
            f"The table of host embedding {embedding_id!r} is a {type(table).__name__}; expected a "
            "resource variable, which lookups read and updates write. Create it with use_resource=True."
        )
    registered = tables.get(embedding_id)
    if in_graph and (not is_variable or optimizer == _GATHERING or isinstance(registered, DeferredTable)):
        registered = _get_deferred_table(embedding_id, table.shape, table.dtype.base_dtype)
        _check_table_spec(embedding_id, registered, table.shape, table.dtype)
        return registered.load_variable(table, optimizer == _GATHERING)
    tables[embedding_id] = table
    return tf.identity(table)


def deregister_table(embedding_id: str, table: Any = None) -> Any:
    """Unregisters the table of an id; returns it as a tensor."""
    registered = tables[_find_registration(embedding_id)]
    if isinstance(registered, DeferredTable):
        return registered.store_variable(table)
    return tf.identity(tables.pop(embedding_id))


def lookup_rows(embedding_id: str, shape: Any, dtype: Any, indices: Any) -> tf.Tensor:
    """Rows of a table, read on the host; they have no gradient."""
    rows = replica_turns.wait_for_all(tf.convert_to_tensor(indices))
    return host_embedding.gather_rows(_find_table(embedding_id, shape, dtype), rows)


def lookup_trainable(
    embedding_id: str, shape: Any, dtype: Any, indices: Any, dummy: Any, optimizer: str, learning_rate: float
) -> tf.Tensor:
    """Rows of a table, read on the host; computing the gradient of `dummy` updates the table."""
    if optimizer != _OPTIMIZER:
        raise ValueError(
            f"The optimizer of host embedding {embedding_id!r} is {optimizer!r}; expected 'SGD'. Use 'SGD'."
        )
    spec = HostEmbeddingOptimizerSpec(learning_rate)
    return spec.trainable_lookup(_find_table(embedding_id, shape, dtype), tf.convert_to_tensor(indices), [], dummy)


def update_add(embedding_id: str, shape: Any, dtype: Any, after: Any, rows: Any, indices: Any) -> Any:
    """Adds values to rows of a table, on the host."""
    table = _find_table(embedding_id, shape, dtype)

    def add() -> Any:
        with host_ops.host_placement("host_embedding_update"), tf.control_dependencies([tf.convert_to_tensor(after)]):
            updates, row_indices = tf.reshape(rows, [-1, table.shape[1]]), tf.reshape(indices, [-1])
            if isinstance(table, DeferredTable):
                return table.add(updates, row_indices)
            return host_embedding.call_update(_add_rows, table, [], row_indices, updates)

    return replica_turns.in_turns(add, [tf.convert_to_tensor(value) for value in (after, rows, indices)])


def apply_pending_updates(embedding_id: str) -> Any:
    """Applies the pending updates of a registered table."""
    table = tables.get(embedding_id)
    if isinstance(table, DeferredTable):
        with host_ops.host_placement("host_embedding_update"):
            return table.apply_pending()
    _find_registration(embedding_id)
    return tf.no_op()


def _add_rows(table: Any, slots: Any, indices: Any, rows: Any) -> Any:
    return host_embedding.add_rows(table, indices, rows)


def _find_registration(embedding_id: str) -> str:
    if embedding_id not in tables:
        raise ValueError(
            f"There is no host embedding {embedding_id!r}; there are: {', '.join(sorted(tables)) or 'none'}. Make it "
            "with create_host_embedding, or register its variable with ipu_host_embedding_register, first."
        )
    return embedding_id


def _find_table(embedding_id: str, shape: Any, dtype: Any) -> Any:
    table = tables.get(embedding_id)
    # One that another graph holds is held by this graph too: that one may be gone before this one registers it.
    if (table is None or isinstance(table, DeferredTable)) and _is_session_graph():
        table = _get_deferred_table(embedding_id, tf.TensorShape(shape), tf.as_dtype(dtype))
    elif table is None:
        _find_registration(embedding_id)  # it is not, and that says which there are
    _check_table_spec(embedding_id, table, shape, dtype)
    return table


def _check_table_spec(embedding_id: str, table: Any, shape: Any, dtype: Any) -> None:
    expected_dtype = tf.as_dtype(dtype).base_dtype
    if not table.shape.is_compatible_with(tf.TensorShape(shape)) or table.dtype.base_dtype != expected_dtype:
        raise ValueError(
            f"Host embedding {embedding_id!r} is {table.dtype.base_dtype.name} of the shape "
            f"{table.shape}, and the op was given {expected_dtype.name} of the shape {tf.TensorShape(shape)}; "
            "both must be equal. Pass the dtype and shape of the table."
        )


def _is_session_graph() -> bool:
    with tf.init_scope():
        return not tf.executing_eagerly()


def _get_deferred_table(embedding_id: str, shape: tf.TensorShape, dtype: tf.DType) -> DeferredTable:
    """Returns the table that ops of a session's graph find by an id; it lives as long as the graph does."""
    with tf.init_scope():
        graph = tf.compat.v1.get_default_graph()
    of_graph = getattr(graph, _HELD, {})
    table = of_graph.get(embedding_id) or tables.get(embedding_id)
    if embedding_id not in of_graph and isinstance(table, DeferredTable):
        # Another graph's, which may be gone: one of another form is not the table of this graph.
        table = table if table.shape.is_compatible_with(shape) and table.dtype.base_dtype == dtype else None
    if not isinstance(table, DeferredTable):
        table = DeferredTable(embedding_id, shape, dtype)
    tables[embedding_id] = table
    setattr(graph, _HELD, {**of_graph, embedding_id: table})
    return table
