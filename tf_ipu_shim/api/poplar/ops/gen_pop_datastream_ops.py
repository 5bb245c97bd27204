"""`gen_pop_datastream_ops`: the ops behind feeds and host embeddings, with Graphcore's arguments.

Scripts use `IPUInfeedQueue` and `IPUOutfeedQueue`; these wrappers reach the same iterators and queues by their feed id,
and the tables of `create_host_embedding` by their names.
Names that are not here are refused by name.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import plugin
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops.embeddings import embedding_ids
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.tf_private.datasets import gen_dataset_ops
from tf_ipu_shim.tf_private.variables import resource_variable_ops

_HOST = "/device:CPU:0"


def ipu_create_dataset_iterator(
    input_dataset: Any,
    feed_id: str,
    output_types: Any,
    output_shapes: Any,
    device_ordinal: int = 0,
    prefetch_depth: int = 1,
    optimise_latency: bool = False,
    name: Any = None,
) -> Any:
    """Starts a dataset, given as its variant tensor, under a feed id; how far it reads ahead is in the dataset."""
    note_arguments(
        "gen_pop_datastream_ops",
        device_ordinal=device_ordinal,
        prefetch_depth=prefetch_depth,
        optimise_latency=optimise_latency,
    )
    with tf.device(_HOST), tf.name_scope(name or "IPUCreateDatasetIterator"):
        return gen_dataset_ops.make_iterator(input_dataset, _iterator(feed_id, output_types, output_shapes))


def ipu_delete_dataset_iterator(
    feed_id: str, device_ordinal: int = 0, asynchronous: bool = False, name: Any = None
) -> Any:
    """Frees the iterator of a feed id."""
    note_arguments("gen_pop_datastream_ops", device_ordinal=device_ordinal, asynchronous=asynchronous)
    with tf.device(_HOST), tf.name_scope(name or "IPUDeleteDatasetIterator"):
        return resource_variable_ops.destroy_resource_op(
            _iterator(feed_id, [tf.float32], [None]), ignore_lookup_error=False
        )


def pop_datastream_infeed_dequeue(
    feed_id: str,
    output_types: Any,
    output_shapes: Any,
    prefetch_depth: int = 1,
    optimise_latency: bool = False,
    name: Any = None,
) -> Any:
    """Returns the next element of an infeed, as a list of tensors."""
    note_arguments("gen_pop_datastream_ops", prefetch_depth=prefetch_depth, optimise_latency=optimise_latency)
    with tf.device(_HOST):
        return gen_dataset_ops.iterator_get_next(
            _iterator(feed_id, output_types, output_shapes), output_types, output_shapes, name=name
        )


def pop_datastream_outfeed_enqueue(
    inputs: Any,
    output_shapes: Any,
    feed_id: str,
    outfeed_mode: str = "all",
    prefetch_depth: int = 1,
    optimise_latency: bool = False,
    name: Any = None,
) -> Any:
    """Sends a list of tensors to the queue of a feed id; `outfeed_mode` is `"all"` or `"get_last"`."""
    note_arguments("gen_pop_datastream_ops", prefetch_depth=prefetch_depth, optimise_latency=optimise_latency)
    with tf.device(_HOST):
        return plugin.load().ops.pop_datastream_outfeed_enqueue(
            inputs=inputs,
            output_shapes=output_shapes,
            feed_id=feed_id,
            outfeed_mode=outfeed_mode,
            name=name,
        )


def pop_datastream_outfeed_dequeue(
    output_types: Any,
    output_shapes: Any,
    feed_id: str,
    device_ordinal: int = 0,
    outfeed_mode: str = "all",
    prefetch_depth: int = 1,
    warn_when_unconnected: bool = True,
    optimise_latency: bool = False,
    name: Any = None,
) -> Any:
    """Dequeues the elements that programs sent to a feed id; with mode `"all"` iterations are the first axis."""
    note_arguments(
        "gen_pop_datastream_ops",
        prefetch_depth=prefetch_depth,
        warn_when_unconnected=warn_when_unconnected,
        optimise_latency=optimise_latency,
    )
    with tf.device(_HOST):
        return plugin.load().ops.pop_datastream_outfeed_dequeue(
            output_types=output_types,
            output_shapes=output_shapes,
            device_ordinal=device_ordinal,
            feed_id=feed_id,
            outfeed_mode=outfeed_mode,
            may_be_replicated=True,
            is_synthetic=flags.current().is_synthetic("outfeed"),
            name=name,
        )


def ipu_delete_outfeed(feed_id: str, device_ordinal: int = 0, asynchronous: bool = False, name: Any = None) -> Any:
    """Deletes the queue of a feed id with its elements."""
    note_arguments("gen_pop_datastream_ops", asynchronous=asynchronous)
    with tf.device(_HOST):
        return plugin.load().ops.ipu_delete_outfeed(feed_id=feed_id, device_ordinal=device_ordinal, name=name)


def ipu_host_embedding_register(
    ref: Any, embedding_id: str, device_ordinal: int = 0, optimizer: str = "SGD", name: Any = None
) -> Any:
    """Registers a variable on the host under an id, also for ops below that were created before; returns its value."""
    note_arguments("device_embeddings", device_ordinal=device_ordinal)
    with tf.name_scope(name or "IpuHostEmbeddingRegister"):
        return embedding_ids.register_table(embedding_id, ref, optimizer)


def ipu_host_embedding_deregister(ref: Any, embedding_id: str, device_ordinal: int = 0, name: Any = None) -> Any:
    """Removes the table of an id for the ops below; returns the table's value, after `ref`."""
    note_arguments("device_embeddings", device_ordinal=device_ordinal)
    with tf.name_scope(name or "IpuHostEmbeddingDeregister"), tf.control_dependencies([tf.convert_to_tensor(ref)]):
        return embedding_ids.deregister_table(embedding_id, ref)


def ipu_device_embedding_lookup(
    indices: Any,
    embedding_id: str,
    embedding_shape: Any,
    dtype: Any,
    partition_strategy: str = "ENCODING",
    name: Any = None,
) -> Any:
    """Rows of a host table, which have no gradient: shape [*indices.shape, encoding]."""
    note_arguments("device_embeddings", partition_strategy=partition_strategy)
    with tf.name_scope(name or "IpuDeviceEmbeddingLookup"):
        return embedding_ids.lookup_rows(embedding_id, embedding_shape, dtype, indices)


def ipu_device_embedding_lookup_trainable(
    dummy: Any,
    indices: Any,
    embedding_id: str,
    embedding_shape: Any,
    optimizer: str,
    learning_rate: float,
    partition_strategy: str = "ENCODING",
    name: Any = None,
) -> Any:
    """Rows of a host table; computing the gradient of `dummy`, a scalar of the table's dtype, updates it."""
    note_arguments("device_embeddings", partition_strategy=partition_strategy)
    with tf.name_scope(name or "IpuDeviceEmbeddingLookupTrainable"):
        value = tf.convert_to_tensor(dummy)
        return embedding_ids.lookup_trainable(
            embedding_id, embedding_shape, value.dtype, indices, value, optimizer, learning_rate
        )


def ipu_device_embedding_update_add(
    ins: Any,
    grads: Any,
    indices: Any,
    embedding_id: str,
    embedding_shape: Any,
    partition_strategy: str = "ENCODING",
    name: Any = None,
) -> Any:
    """Adds `grads` to rows of a host table, after `ins`; an operation."""
    note_arguments("device_embeddings", partition_strategy=partition_strategy)
    with tf.name_scope(name or "IpuDeviceEmbeddingUpdateAdd"):
        rows = tf.convert_to_tensor(grads)
        return embedding_ids.update_add(embedding_id, embedding_shape, rows.dtype, ins, rows, indices)


def ipu_device_embedding_notify(embedding_id: str, device_ordinal: int = 0, name: Any = None) -> Any:
    """Notes that a program no longer uses a host table, which must exist; an operation."""
    note_arguments("device_embeddings", device_ordinal=device_ordinal)
    with tf.name_scope(name or "IpuDeviceEmbeddingNotify"):
        return embedding_ids.apply_pending_updates(embedding_id)


def _iterator(feed_id: str, types: Any, shapes: Any) -> Any:
    return gen_dataset_ops.iterator_v2(shared_name=feed_id, container="", output_types=types, output_shapes=shapes)
