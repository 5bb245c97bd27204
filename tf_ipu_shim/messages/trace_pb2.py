"""Messages of Graphcore's `trace_pb2`: trace events of the device.

Strings are bytes, which scripts decode.
"""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

globals().update(_schema.contents(__name__))
__getattr__ = _schema.getter(__name__)
