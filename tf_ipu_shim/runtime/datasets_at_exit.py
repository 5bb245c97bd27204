"""Lets the process exit without waiting for datasets that call Python, and for infeeds that are being deleted.

At exit, Python frees a script's objects, such as the iterator in an uncaught error's frame, when other threads can no
longer run Python. TensorFlow's iterators wait for their threads, so that one whose `numpy_function`, `py_function` or
generator is under way would wait indefinitely, in stock TensorFlow too. Such iterators, and sessions that have some,
are therefore kept; the system ends their threads. An infeed whose deletion waits for a thread of its dataset
(`csrc/process/deletions`) uses the eager context, which is kept for it. Uses `script_ops._py_funcs`,
`BaseSession._target`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
from typing import TYPE_CHECKING

from tf_ipu_shim.runtime import pending_compilations

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Library


def install(library: Library) -> None:
    """Lets the process exit without waiting for datasets."""
    for leave in (_keep, _leave_deletions):
        atexit.unregister(leave)
    atexit.register(_keep)
    atexit.register(_leave_deletions, library)


def _leave_deletions(library: Library) -> None:
    if library.leave_deletions():
        pending_compilations.keep_context()


def _keep() -> None:
    from tensorflow.compat.v2 import dtypes

    from tf_ipu_shim.tf_private import operations, sessions
    from tf_ipu_shim.tf_private.graphs import ops

    if not operations.has_python_functions():
        return
    for instance in gc.get_objects():
        kind = type(instance)  # `isinstance` would ask proxies
        if issubclass(kind, ops.EagerTensor):
            waits = instance.dtype == dtypes.resource
        else:  # a session of another process keeps nothing here
            waits = issubclass(kind, sessions.session.BaseSession) and sessions.is_local(instance)
        if waits:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(instance))
