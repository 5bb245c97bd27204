"""`tensorflow.python.ipu.ipu_strategy`: a distribution strategy whose one worker is an IPU device."""

from tf_ipu_shim.frontend.strategies.ipu_strategy import IPUExtended, IPUExtendedV1, IPUStrategy, IPUStrategyV1

__all__ = [
    "IPUExtended",
    "IPUExtendedV1",
    "IPUStrategy",
    "IPUStrategyV1",
]
