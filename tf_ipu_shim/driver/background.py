"""Runs a computation in a background thread while the caller is blocked in C++ without the GIL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

Made = TypeVar("Made")


class BackgroundTask(Generic[Made]):
    """A computation that starts at `begin` in a thread, or at `result`; ends with its `with` block.

    Args:
        make: makes it. Its exceptions are raised in the caller.
    """

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._thread: threading.Thread | None = None
        self._made: list[Made] = []
        self._error: BaseException | None = None

    def __enter__(self) -> BackgroundTask[Made]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._thread.join()

    def begin(self) -> None:
        """Starts the computation, once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ipu_beside")
            self._thread.start()

    def result(self) -> Made:
        """Returns the result, computing it now if not started."""
        if self._thread is None:
            return self._make()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._made[0]

    def _run(self) -> None:
        try:
            self._made.append(self._make())
        except BaseException as error:  # raised where it is asked for
            self._error = error
