"""`tensorflow.python.ipu.ipu_outfeed_queue`: sends tensors from running programs to the host."""

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
