"""Refuses sessions in a forked process that need the parent's threads, and lets the fork exit without these.

All sessions of a process share one pool of threads, created with the first of them. A session has a separate pool if
its `ConfigProto` says so, and none if it runs on the calling thread. The plugin refuses eager ops
(`csrc/process/forks`).

A fork cannot end objects that those threads use: TensorFlow waits for them when it deletes an eager context, a session
or an iterator. A fork therefore keeps its parent's, and the system frees them with the process. Uses
`Context._context_handle`, `BaseSession.close` and `__del__`, `OwnedIterator.__init__`; checked on TensorFlow 2.15.1 and
2.21.0.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import io
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches

_shared_pool_of: int | None = None  # the process that made it
_iterators: weakref.WeakSet[Any] = weakref.WeakSet()


def install() -> None:
    """Makes sessions in a forked process refuse to run, and forks exit with their status."""
    from tf_ipu_shim.tf_private.datasets import iterator_ops
    from tf_ipu_shim.tf_private.sessions import session

    why = "a session whose threads are in the parent process raises an error"
    patches.replace(session.BaseSession, "_do_run", _checked, why=why)
    why = "a fork ends without waiting for its parent's threads"
    patches.replace(session.BaseSession, "close", _in_own_process_only, why=why)
    patches.replace(session.BaseSession, "__del__", _in_own_process_only, why=why)
    patches.replace(iterator_ops.OwnedIterator, "__init__", _noted, why=why)


def note(session: Any, config: Any) -> None:
    """Records the process that has a new session's threads."""
    global _shared_pool_of
    from tf_ipu_shim.tf_private import sessions

    session._ipu_made_in = os.getpid()
    if not sessions.is_local(session):
        return
    if config is not None and config.inter_op_parallelism_threads < 0:
        return
    if config is not None and (config.use_per_session_threads or config.session_inter_op_thread_pool):
        session._ipu_pool_of = os.getpid()
        return
    if _shared_pool_of is None:
        _shared_pool_of = os.getpid()
    session._ipu_pool_of = _shared_pool_of


def _checked(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        process = getattr(self, "_ipu_pool_of", None)
        if process is not None and process != os.getpid():
            from tensorflow.compat.v2 import errors

            raise errors.FailedPreconditionError(
                None,
                None,
                f"A session cannot run in this process: it was forked from process {process}, which had created "
                "sessions. It lacks the threads that TensorFlow started there. Fork before TensorFlow is "
                "used, or start processes with multiprocessing.get_context('spawn').",
            )
        return stock(self, *args, **kwargs)

    return run


def _in_own_process_only(stock: Callable[..., None]) -> Callable[..., None]:
    """Closes and deletes a session in the process that made it."""
    process = os.getpid  # sessions may be deleted after this module's names

    @functools.wraps(stock)
    def end(self: Any) -> None:
        if getattr(self, "_ipu_made_in", process()) == process():
            stock(self)
        else:
            self._closed = True
            _keep(vars(self))

    return end


def _noted(stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        _iterators.add(self)

    return construct


def _after_fork() -> None:
    """Keeps objects alive that would wait for threads of the parent."""
    from tf_ipu_shim.tf_private import eager as tf_eager

    context = tf_eager.context.context_safe()
    if _shared_pool_of is None and (context is None or tf_eager.context_handle(context) is None):
        return
    if context is not None and tf_eager.context_handle(context) is not None:
        _keep(tf_eager.context_handle(context))
    why = "kernels of functions do not wait for threads of the parent process"
    patches.replace(tf_eager.context.Context, "remove_function", lambda _: lambda self, name: None, why=why)
    for iterator in _iterators:
        _keep(iterator)
    atexit.unregister(_keep_all)
    atexit.register(_keep_all)


def _keep_all() -> None:
    """Keeps module contents and TensorFlow resources alive at exit."""
    from tensorflow.compat.v2 import dtypes

    from tf_ipu_shim.tf_private.graphs import ops

    files = io.IOBase.__base__ or io.IOBase  # Python's own class: asking an abstract one takes longer for each type
    for instance in gc.get_objects():
        kind = type(instance)  # `isinstance` would ask proxies
        if issubclass(kind, ops.EagerTensor) and instance.dtype in (dtypes.resource, dtypes.variant):
            _keep(instance)
        elif issubclass(kind, files):
            with contextlib.suppress(OSError, ValueError):  # closed, or not for writing
                instance.flush()
    modules = [module for name, module in sys.modules.items() if name != "__main__"]
    _keep([list(getattr(module, "__dict__", {}).values()) for module in modules])
    gc.freeze()  # else Python's last search for cycles copies the parent's memory, for most of a second


def _keep(instance: Any) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(instance))


os.register_at_fork(after_in_child=_after_fork)
