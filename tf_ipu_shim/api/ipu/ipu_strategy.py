"""`tensorflow.python.ipu.ipu_strategy`: a distribution strategy with one IPU device as its only worker."""

from tf_ipu_shim.frontend.strategies.ipu_strategy import IPUExtended, IPUExtendedV1, IPUStrategy, IPUStrategyV1

__all__ = [
    "IPUExtended",
    "IPUExtendedV1",
    "IPUStrategy",
    "IPUStrategyV1",
]
