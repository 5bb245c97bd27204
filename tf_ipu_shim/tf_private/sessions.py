"""Imports TensorFlow internals of sessions, and the C functions that run them."""

from __future__ import annotations

from collections.abc import Callable

from tensorflow.python.client import (
    pywrap_tf_session,  # closes and deletes a session that has been left
    session,  # BaseSession, which is patched, and its subclasses
)


def is_local(a_session: session.BaseSession) -> bool:
    """Returns whether a session runs in this process."""
    return not getattr(a_session, "_target", True)


def is_closed(a_session: session.BaseSession) -> bool:
    """Returns whether a session has been closed."""
    return a_session._closed


def refuse_runs(a_session: session.BaseSession) -> None:
    """Makes TensorFlow refuse to run a session, without closing it."""
    a_session._closed = True


def close_later(a_session: session.BaseSession) -> None:
    """Closes the C session of a session that already refuses to run."""
    pywrap_tf_session.TF_CloseSession(a_session._session)


def restart(a_session: session.BaseSession) -> None:
    """Replaces a session's C session by a new one, which finds the current devices."""
    stale = a_session._session
    session.BaseSession.__init__(a_session, "", a_session._graph, a_session._config)
    pywrap_tf_session.TF_CloseSession(stale)
    pywrap_tf_session.TF_DeleteSession(stale)


def before_preparing(a_session: session.BaseSession, first: Callable[[], None]) -> None:
    """Calls `first` before each preparation of a run in a session, until `as_stock` is called."""
    a_session._extend_graph = first


def as_stock(a_session: session.BaseSession) -> None:
    """Makes a session prepare its runs as in TensorFlow."""
    vars(a_session).pop("_extend_graph", None)


def prepare(a_session: session.BaseSession) -> None:
    """Tells the C session of the graph's new ops."""
    a_session._extend_graph()
