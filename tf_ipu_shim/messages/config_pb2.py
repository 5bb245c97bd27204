"""Messages of Graphcore's `config_pb2`: the configuration of the IPU system.

`ipu.config.IPUConfig` and the older functions of `ipu.utils` both fill an `IpuOptions`; `runtime.devices` reads it.
"""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

globals().update(_schema.contents(__name__))
__getattr__ = _schema.getter(__name__)
