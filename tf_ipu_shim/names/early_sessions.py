"""Rebuilds sessions created before the script first named an IPU, so that they have the IPU device.

A session of TensorFlow has the devices that there are when it is made, and Graphcore's TensorFlow has an IPU from the
start. One that has run something keeps what it has: its variables are there.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

_idle: weakref.WeakSet[Any] = weakref.WeakSet()
"""Sessions of this process that have the devices of stock TensorFlow, and have run nothing."""


def noting(construct: Callable[..., None]) -> Callable[..., None]:
    """A session's constructor that notes it until it runs something.

    Args:
        construct: TensorFlow's.
    """

    @functools.wraps(construct)
    def noted(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        construct(self, target, graph, config)
        if not target:
            _note(self)

    return noted


def _note(session: Any) -> None:
    """Each run, and whatever else TensorFlow prepares for one, first tells the session of the graph's new ops."""
    here = weakref.ref(session)

    def first() -> None:
        running: Any = here()
        _forget(running)
        running._extend_graph()

    session._extend_graph = first
    _idle.add(session)


def _forget(session: Any) -> None:
    _idle.discard(session)
    session.__dict__.pop("_extend_graph", None)


def make_anew() -> None:
    """Has them find the devices that there are now."""
    for session in list(_idle):
        _forget(session)
        if not session._closed:
            _with_present_devices(session)


def _with_present_devices(session: Any) -> None:
    # Checked on TensorFlow 2.15.1 and 2.21.0.
    from tf_ipu_shim.tf_private.sessions import pywrap_tf_session
    from tf_ipu_shim.tf_private.sessions import session as sessions

    stale = session._session
    sessions.BaseSession.__init__(session, "", session._graph, session._config)
    pywrap_tf_session.TF_CloseSession(stale)
    pywrap_tf_session.TF_DeleteSession(stale)
