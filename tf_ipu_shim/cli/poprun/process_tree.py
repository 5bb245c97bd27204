"""Ends processes with their descendants, and makes a child process end with its parent.

A shell ends without the program that it runs, so signals go to each descendant.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

GRACE_SECONDS = 10
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl


def end_with_parent() -> Callable[[], None]:
    """Returns a `preexec_fn` by which a child gets SIGTERM when this process ends, however it ends."""
    parent, library = os.getpid(), ctypes.CDLL(None)

    def ask_for_signal() -> None:
        library.prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGTERM))
        if os.getppid() != parent:  # it has ended in between
            os._exit(1)

    return ask_for_signal


def terminate(processes: Sequence[subprocess.Popen[str]], seconds: float = GRACE_SECONDS) -> None:
    """Ends processes and their descendants: by SIGTERM, and by SIGKILL if they live `seconds` later."""
    running = [process for process in processes if process.poll() is None]
    started = [child for process in running for child in _descendants(process.pid)]
    for process in running:
        process.terminate()
    _send_signal(started, signal.SIGTERM)
    wait_or_kill(running, time.monotonic() + seconds)
    _send_signal(started, signal.SIGKILL)


def wait_or_kill(processes: Sequence[subprocess.Popen[str]], deadline: float) -> None:
    """Waits for processes until a time of `time.monotonic`, then kills the rest."""
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _descendants(process: int) -> list[tuple[int, str]]:
    """Returns all that a process has started, each with its start time: another may have its number later."""
    descendants: list[tuple[int, str]] = []
    for directory in pathlib.Path(f"/proc/{process}/task").glob("*"):
        try:
            children = [int(word) for word in (directory / "children").read_text().split()]
        except OSError:  # it has ended
            continue
        for child in children:
            descendants += [(child, _start_time(child)), *_descendants(child)]
    return descendants


def _start_time(process: int) -> str:
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _send_signal(processes: Sequence[tuple[int, str]], signal_number: signal.Signals) -> None:
    for process, began in processes:
        if began and _start_time(process) == began:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal_number)
