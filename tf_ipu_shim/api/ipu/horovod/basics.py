"""`tensorflow.python.ipu.horovod.basics`: the older name of `distributed.basics`."""

from tf_ipu_shim.api.ipu.distributed.basics import HorovodBasics

__all__ = ["HorovodBasics"]
