"""`tensorflow.python.ipu.ipu_infeed_queue`: what programs take from a dataset while they run."""

from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue, IPUIterator, IPUOwnedIterator

__all__ = [
    "IPUInfeedQueue",
    "IPUIterator",
    "IPUOwnedIterator",
]
