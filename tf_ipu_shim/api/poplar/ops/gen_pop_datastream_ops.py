"""`gen_pop_datastream_ops`: the ops behind infeeds and outfeeds, with the arguments of Graphcore's.

Scripts use `IPUInfeedQueue` and `IPUOutfeedQueue`; these wrappers reach the same iterators and queues by their feed id.
Names that are not here are refused by name.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf
from tensorflow.python.ops import gen_dataset_ops, resource_variable_ops

from tf_ipu_shim import plugin
from tf_ipu_shim.configuration.arguments import note_arguments

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
    """The next element of an infeed, as a list of tensors."""
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
    """Takes what programs have sent to the queue of a feed id; with mode `"all"` iterations are the first axis."""
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
            name=name,
        )


def ipu_delete_outfeed(feed_id: str, device_ordinal: int = 0, asynchronous: bool = False, name: Any = None) -> Any:
    """Drops the queue of a feed id and what is in it."""
    note_arguments("gen_pop_datastream_ops", asynchronous=asynchronous)
    with tf.device(_HOST):
        return plugin.load().ops.ipu_delete_outfeed(feed_id=feed_id, device_ordinal=device_ordinal, name=name)


def _iterator(feed_id: str, types: Any, shapes: Any) -> Any:
    return gen_dataset_ops.iterator_v2(shared_name=feed_id, container="", output_types=types, output_shapes=shapes)
