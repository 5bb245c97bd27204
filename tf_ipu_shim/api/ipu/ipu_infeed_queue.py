"""`tensorflow.python.ipu.ipu_infeed_queue`: feeds dataset elements to running programs."""

from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue, IPUIterator, IPUOwnedIterator

__all__ = [
    "IPUInfeedQueue",
    "IPUIterator",
    "IPUOwnedIterator",
]
