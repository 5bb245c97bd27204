"""Runs the compilers of a build; a signal that interrupts the build ends them too.

Each compiler leads a process group, because a compiler's driver ends without the programs that it runs.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_SECONDS_BETWEEN_SIGNALS = 0.2
_running: set[subprocess.Popen[str]] = set()


class _Interrupted(BaseException):
    """A signal of `_ENDING` arrived."""


def run(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a command and returns its output; an exception in this thread ends the command and its children."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, errors="replace", env=environment, start_new_session=True
    ) as process:
        _running.add(process)
        try:
            output, told = process.communicate()
        except BaseException:
            _end(process)
            raise
        finally:
            _running.discard(process)
    return subprocess.CompletedProcess(command, process.returncode, output, told)


def map_in_parallel(function: Callable[[Item], Result], items: Iterable[Item], count: int) -> list[Result]:
    """Returns the results of `function`, `count` calls at a time; at an exception ends what the calls run.

    Example:
        >>> map_in_parallel(abs, [-1, 2], count=2)
        [1, 2]
    """
    threads: list[threading.Thread] = []
    with concurrent.futures.ThreadPoolExecutor(
        count, initializer=lambda: threads.append(threading.current_thread())
    ) as pool:
        try:
            futures = [pool.submit(function, item) for item in items]
            return [future.result() for future in futures]
        except BaseException:  # an interruption may become another one in the locks of a thread that starts
            pool.shutdown(wait=False, cancel_futures=True)
            # A call may start its process only now.
            while alive := [thread for thread in threads if thread.is_alive()]:
                for process in tuple(_running):
                    _end(process)
                alive[0].join(_SECONDS_BETWEEN_SIGNALS)
            raise


@contextlib.contextmanager
def cleaned_up_at_signals() -> Iterator[None]:
    """Raises an exception when a signal would end the process; the signal ends it after the clean-up.

    Signals that are handled or ignored stay so, and other threads than the main one cannot change them.
    """
    own: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        own = [number for number in _ENDING if signal.getsignal(number) == signal.SIG_DFL]
    received: list[int] = []

    def interrupt(signal_number: int, _frame: FrameType | None) -> None:
        received.append(signal_number)
        raise _Interrupted

    for number in own:
        signal.signal(number, interrupt)
    try:
        yield
    except BaseException:
        if not received:
            raise
    finally:
        for number in own:
            signal.signal(number, signal.SIG_DFL)
        for signal_number in received:
            os.kill(os.getpid(), signal_number)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
