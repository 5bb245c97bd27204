"""Sessions of a process that was forked: TensorFlow's threads are in the parent alone, and a run would wait for ever.

All sessions of a process share one pool of threads, which is made with the first of them; a session has one of its own
where its `ConfigProto` says so, and none where it runs on the thread that calls it. What runs eagerly is refused by the
plugin (`csrc/forks`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches

_shared_pool_of: int | None = None  # the process that made it


def install() -> None:
    """Has sessions refuse to run where their threads are not."""
    from tensorflow.python.client import session

    why = "a session says that its threads are in the process that this one was forked from"
    patches.replace(session.BaseSession, "_do_run", _checked, why=why)


def note(session: Any, config: Any) -> None:
    """Notes in which process a new session's threads are.

    Args:
        session: of this process; it runs in no other.
        config: its `ConfigProto`, or None.
    """
    global _shared_pool_of
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
            from tensorflow.python.framework import errors

            raise errors.FailedPreconditionError(
                None,
                None,
                f"A session cannot run in this process: it was forked from process {process}, in which sessions had "
                "been made, and has none of the threads that TensorFlow started there. Fork before TensorFlow is "
                "used, or start processes anew: multiprocessing.get_context('spawn').",
            )
        return stock(self, *args, **kwargs)

    return run
