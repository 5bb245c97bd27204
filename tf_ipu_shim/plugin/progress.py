"""Shows the progress of a build: a bar on a terminal, elsewhere one line at its start and one at its end."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType

_TICK = 0.2
_BAR = 24


class BuildProgress:
    """Reports a build on stderr at every log level, because it is slow and happens once.

    Args:
        title: the first line.
        files: how many files are compiled.
        seconds: how long the build is expected to take.
        subject: the built object, as the last line names it.

    Example:
        >>> with BuildProgress("Building the IPU plugin", files=2, seconds=1) as progress:
        ...     progress.compiled(2)
        ...     progress.finished("/tmp/plugin.so")
    """

    def __init__(self, title: str, files: int, seconds: float, subject: str = "The IPU plugin") -> None:
        self._title, self._files, self._expected = title, files, max(1.0, seconds)
        self._subject = subject
        self._named = f"{files} file{'' if files == 1 else 's'}"
        self._done = 0
        self._outcome = f"{subject} was not built"
        self._started = time.monotonic()
        self._stopped = threading.Event()
        self._drawing: threading.Thread | None = None

    def compiled(self, files: int) -> None:
        """Counts files that were compiled."""
        self._done += files

    def finished(self, path: str) -> None:
        """Names the library in the last line."""
        self._outcome = f"{self._subject} is built: {path}"

    def bar(self) -> str:
        """Returns the current bar, as wide as the terminal."""
        seconds = time.monotonic() - self._started
        part = min(seconds / self._expected, 0.99)
        # A compiler tells of its files only at its end: until then the time says how far it is.
        filled = round(_BAR * max(part, 0.9 * self._done / self._files))
        later = "" if seconds <= self._expected else ", longer than expected"
        line = (
            f"[{'#' * filled}{'.' * (_BAR - filled)}] {self._done} of {self._named}, "
            f"{seconds:.0f} s of about {self._expected:.0f} s{later}"
        )
        return line[: max(10, shutil.get_terminal_size().columns - 1)]

    def __enter__(self) -> BuildProgress:
        write(f"{self._title}: {self._named}, about {self._expected:.0f} s ...\n")
        if sys.stderr is not None and sys.stderr.isatty():
            self._drawing = threading.Thread(target=self._draw, name="build-progress", daemon=True)
            self._drawing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        if self._drawing is not None:
            self._drawing.join()
        if kind is not None and not issubclass(kind, Exception):
            self._outcome += ": the build was interrupted, the next use starts it again"
        write(f"{self._outcome} ({time.monotonic() - self._started:.0f} s)\n")

    def _draw(self) -> None:
        longest = 0
        while not self._stopped.wait(_TICK):
            line = self.bar()
            longest = max(longest, len(line))
            write(f"\r{line:<{longest}}")
        write(f"\r{'':<{longest}}\r")


def write(text: str) -> None:
    """Writes to the error stream at once, if the process has one."""
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()
