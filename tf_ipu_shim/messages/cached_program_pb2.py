"""Defines the message in each executable-cache file; see `docs/how_to/run/executable_cache.md`."""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

__getattr__ = _schema.getter(__name__)
