"""Host tables by their ids: what Graphcore's ops on embeddings are told in the place of a table."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.building import host_ops
from tf_ipu_shim.building.ops import host_embedding
from tf_ipu_shim.building.ops.host_embedding import HostEmbeddingOptimizerSpec, tables

_OPTIMIZER = "SGD"


def register(embedding_id: str, table: Any, optimizer: str = _OPTIMIZER) -> Any:
    """Has ops find a table by its id, in place of one that was there; the table itself as a tensor.

    Args:
        embedding_id: by which ops name it.
        table: a resource variable on the host, shape [tokens, encoding].
        optimizer: `"SGD"`.

    Raises:
        ValueError: it is another optimizer, or no variable.
    """
    if optimizer != _OPTIMIZER:
        raise ValueError(f"The optimizer of host embedding {embedding_id!r} is {optimizer!r}: there is 'SGD' alone.")
    if not hasattr(table, "handle"):
        raise ValueError(
            f"The table of host embedding {embedding_id!r} is a {type(table).__name__}: give a resource variable, "
            "which lookups read and updates write."
        )
    tables[embedding_id] = table
    return tf.identity(table)


def deregister(embedding_id: str) -> Any:
    """Has ops find no table by an id any more; the table as a tensor."""
    return tf.identity(tables.pop(_known(embedding_id)))


def lookup(embedding_id: str, shape: Any, dtype: Any, indices: Any) -> tf.Tensor:
    """Rows of a table, read on the host; they have no gradient."""
    return host_embedding.gather_rows(_table(embedding_id, shape, dtype), tf.convert_to_tensor(indices))


def lookup_trainable(
    embedding_id: str, shape: Any, dtype: Any, indices: Any, dummy: Any, optimizer: str, learning_rate: float
) -> tf.Tensor:
    """Rows of a table, read on the host; their gradient updates it, when that of `dummy` is computed."""
    if optimizer != _OPTIMIZER:
        raise ValueError(f"The optimizer of host embedding {embedding_id!r} is {optimizer!r}: there is 'SGD' alone.")
    spec = HostEmbeddingOptimizerSpec(learning_rate)
    return spec.trainable_lookup(_table(embedding_id, shape, dtype), tf.convert_to_tensor(indices), [], dummy)


def update_add(embedding_id: str, shape: Any, dtype: Any, after: Any, rows: Any, indices: Any) -> Any:
    """Adds rows to those of a table, on the host.

    Args:
        embedding_id: of the table.
        shape: of the table.
        dtype: of the table.
        after: a tensor that is computed before.
        rows: what is added, shape [*indices.shape, encoding].
        indices: of the rows in the table.
    """
    table = _table(embedding_id, shape, dtype)
    with host_ops.on_host("host_embedding_update"), tf.control_dependencies([tf.convert_to_tensor(after)]):
        given = tf.reshape(rows, [-1, table.shape[1]])
        return host_embedding.updated(_add, table, [], tf.reshape(indices, [-1]), given)


def notify(embedding_id: str) -> Any:
    """What a program says when it has done with a table: nothing happens, but that there has to be one."""
    _known(embedding_id)
    return tf.no_op()


def _add(table: Any, slots: Any, indices: Any, rows: Any) -> Any:
    return host_embedding.add_rows(table, indices, rows)


def _known(embedding_id: str) -> str:
    if embedding_id not in tables:
        raise ValueError(
            f"There is no host embedding {embedding_id!r}; there are: {', '.join(sorted(tables)) or 'none'}. Make it "
            "with create_host_embedding, or register its variable with ipu_host_embedding_register, first."
        )
    return embedding_id


def _table(embedding_id: str, shape: Any, dtype: Any) -> Any:
    table = tables[_known(embedding_id)]
    if not table.shape.is_compatible_with(tf.TensorShape(shape)) or table.dtype != tf.as_dtype(dtype):
        raise ValueError(
            f"Host embedding {embedding_id!r} is {table.dtype.name} of the shape {table.shape}, and the op is told "
            f"{tf.as_dtype(dtype).name} of the shape {tf.TensorShape(shape)}."
        )
    return table
