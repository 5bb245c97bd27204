"""Table of the effect of each argument of infeeds, outfeeds, iterators and their raw ops."""

from __future__ import annotations

from tf_ipu_shim.configuration.arguments.call import Call, recorded

_LATENCY = "nothing is faster for it here"
_QUEUE = "an outfeed's queue grows with what is in it"
_AHEAD = "how far a dataset is read ahead is in the dataset that is given"
_REPLICAS = "the configuration tells how many replicas there are"
_BY_ID = "the feed id says which feed it is"

CALLS = {
    "IPUInfeedQueue": Call(
        "`IPUInfeedQueue`",
        {"optimise_latency": recorded(_LATENCY, False), "replication_factor": recorded(_REPLICAS)},
    ),
    "IPUOutfeedQueue": Call(
        "`IPUOutfeedQueue`",
        {
            "optimise_latency": recorded(_LATENCY, False),
            "buffer_depth": recorded(_QUEUE, 3),
            "io_batch_size": recorded("how many elements are sent together changes none of them"),
        },
    ),
    "IPUIterator": Call("`IPUIterator`", {"optimise_latency": recorded(_LATENCY, False)}),
    "gen_pop_datastream_ops": Call(
        "`gen_pop_datastream_ops`",
        {
            "prefetch_depth": recorded(f"{_AHEAD}; {_QUEUE}", 1),
            "optimise_latency": recorded(_LATENCY, False),
            "device_ordinal": recorded(_BY_ID, 0),
            "asynchronous": recorded("freed at once", False),
            "warn_when_unconnected": recorded("there is no warning", True),
        },
    ),
}
