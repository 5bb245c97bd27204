"""`tensorflow.python.ipu.ipu_outfeed_queue`: what programs send to the host while they run."""

from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import (
    IPUOutfeedMode,
    IPUOutfeedQueue,
    IPUOutfeedQueueIterator,
    ScopedIPUOutfeedQueue,
)

__all__ = [
    "IPUOutfeedMode",
    "IPUOutfeedQueue",
    "IPUOutfeedQueueIterator",
    "ScopedIPUOutfeedQueue",
]
