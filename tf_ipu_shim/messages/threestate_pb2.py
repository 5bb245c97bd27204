"""Serves the enum of Graphcore's `threestate_pb2`: undefined, on or off."""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

globals().update(_schema.contents(__name__))
__getattr__ = _schema.getter(__name__)
