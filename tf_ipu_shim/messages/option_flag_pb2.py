"""Messages of Graphcore's `option_flag_pb2`: one Poplar or PopLibs option."""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

globals().update(_schema.contents(__name__))
__getattr__ = _schema.getter(__name__)
