"""Sessions and the C functions below them."""

from __future__ import annotations

from tensorflow.python.client import (
    pywrap_tf_session,  # closes and deletes a session that has been left
    session,  # BaseSession, which is patched, and its subclasses
)
