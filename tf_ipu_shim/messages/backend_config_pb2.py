"""Serves the names of the attributes that `ipu.scopes` sets on ops, as in Graphcore's `backend_config_pb2`.

The rest of that file belongs to the compiler.
"""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

globals().update(_schema.contents(__name__))
__getattr__ = _schema.getter(__name__)
