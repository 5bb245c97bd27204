"""Rebuilds sessions created before the script first named an IPU, so that they have the IPU device.

A session of TensorFlow has the devices that exist when it is made, and Graphcore's TensorFlow has an IPU from the
start. A session that has run something keeps its devices, because its variables are there.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

_idle: weakref.WeakSet[Any] = weakref.WeakSet()
"""Sessions of this process that have the devices of stock TensorFlow, and have run nothing."""


def patch_session_init(construct: Callable[..., None]) -> Callable[..., None]:
    """Returns a session's constructor that notes it until it runs something."""

    @functools.wraps(construct)
    def noted(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        construct(self, target, graph, config)
        if not target:
            _record_session(self)

    return noted


def _record_session(session: Any) -> None:
    """Each run, and each preparation of one, first extends the session by the graph's new ops."""
    from tf_ipu_shim.tf_private import sessions

    reference = weakref.ref(session)

    def first() -> None:
        running: Any = reference()
        _unrecord_session(running)
        sessions.prepare(running)

    sessions.before_preparing(session, first)
    _idle.add(session)


def _unrecord_session(session: Any) -> None:
    from tf_ipu_shim.tf_private import sessions

    _idle.discard(session)
    sessions.as_stock(session)


def rebuild_sessions() -> None:
    """Rebuilds recorded sessions with the current devices."""
    from tf_ipu_shim.tf_private import sessions

    for session in list(_idle):
        _unrecord_session(session)
        if not sessions.is_closed(session):
            sessions.restart(session)
