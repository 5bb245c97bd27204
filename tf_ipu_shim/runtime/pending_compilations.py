"""Keeps sessions alive while XLA still compiles after Ctrl-C.

TensorFlow would wait for it when a session or function is deleted, and when the process ends. Uses
`Context.remove_function`, `_context_handle`, `BaseSession.close`, `_session`, `_closed` and `TF_CloseSession`; checked
on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import atexit
import ctypes
import threading
import time
from typing import TYPE_CHECKING, Any

from tf_ipu_shim import patches

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Library

_LOOK_AGAIN = 0.1  # seconds


def install(library: Library) -> None:
    """Lets the process exit without waiting for compilations."""
    atexit.register(_leave, library)


def keep(library: Library, session: Any) -> None:
    """Keeps a session alive while a compilation of it may be running."""
    if not library.compilations_left_behind() or "close" in vars(session):
        return
    threading.Thread(target=_keep, args=(library, session), name="ipu-left-compilation", daemon=True).start()


def _keep(library: Library, session: Any) -> None:
    from tf_ipu_shim.tf_private import sessions

    def close() -> None:
        sessions.refuse_runs(session)

    session.close = close
    while library.compilations_left_behind():
        time.sleep(_LOOK_AGAIN)
    del session.close
    if sessions.is_closed(session):
        sessions.close_later(session)


def _leave(library: Library) -> None:
    if library.compilations_left_behind():
        keep_context()


def keep_context() -> None:
    """Keeps TensorFlow's eager context and its functions alive when the process ends: threads still use them."""
    from tf_ipu_shim.tf_private import eager as tf_eager

    why = "threads may still use its functions when the process ends"
    patches.replace(tf_eager.context.Context, "remove_function", lambda _: lambda self, name: None, why=why)
    context = tf_eager.context.context_safe()
    if context is not None and tf_eager.context_handle(context) is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(tf_eager.context_handle(context)))
