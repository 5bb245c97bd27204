"""Records the waits of each process of a job, to explain collectives that time out.

The others ask, with a short deadline. A separate thread of the process answers with the current wait and the last
operation that it took part in. It answers even while the script is busy, unless the whole process is stopped.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from tf_ipu_shim.runtime.errors import script_files

_LONGEST_TICK = 1.0
_ANSWER_SECONDS = 4.0
_MOST_NAMED = 4
_MOST_READERS = 16
# The answer of a process: a state, or why there is none.
_State = dict[str, Any]
_Report = _State | str


class Waits:
    """The wait of this process, and the state that others report.

    Args:
        size: how many processes there are.
        seconds: how long operations wait.
        ask: requests a process's `state` within a number of seconds; None if it does not answer, OSError if it has
            ended.
    """

    def __init__(self, size: int, rank: int, seconds: float, ask: Callable[[int, float], _State | None]) -> None:
        self._others = [other_rank for other_rank in range(size) if other_rank != rank]
        self._ask_one = ask
        self._tick = min(_LONGEST_TICK, seconds / 4)
        self._lock = threading.Lock()
        self._waiting: dict[int, _Wait] = {}
        self._numbers = itertools.count()
        self._last = ""
        self._heard: dict[int, tuple[float, _Report]] = {}
        self._reading = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="waits of this process", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    @contextlib.contextmanager
    def waiting(self, call: str, title: str, place: str = "") -> Iterator[None]:
        """Records that this thread waits in a collective.

        A failed wait stays recorded: the others may still ask for it.
        """
        wait = _Wait(call, title, place)
        with self._lock:
            wait_id = next(self._numbers)
            self._waiting[wait_id] = wait
        try:
            yield
        except BaseException:
            wait.freeze()
            raise
        with self._lock:
            del self._waiting[wait_id]
            self._last = title

    def missing_participants(self, call: str) -> str:
        """Describes which processes have not reached a collective, and their activity."""
        self._ask()
        descriptions = [(rank, _describe(call, *self._heard[rank])) for rank in self._others]
        late = [f" Rank {rank} {state}." for rank, state in descriptions if state]
        return "".join(late) or " The others have reached it, earlier or in the meantime."

    def was_waiting_in(self, rank: int, call: str) -> bool:
        """Returns whether a process was last heard of waiting in a collective."""
        _, heard = self._heard.get(rank, (0.0, ""))
        return not isinstance(heard, str) and any(wait["call"] == call for wait in heard["waits"])

    def last_activity(self, rank: int) -> str:
        """Describes the last activity of an ended process, or nothing."""
        when, heard = self._heard.get(rank, (0.0, ""))
        return "" if isinstance(heard, str) else f" {_past_tense(when, heard)}."

    def _end(self) -> None:
        self._ended.set()
        self._thread.join(2 * _ANSWER_SECONDS)

    def state(self) -> _State:
        """This process's own state."""
        line = _line_of_script()
        with self._lock:
            waits, last = list(self._waiting.values()), self._last
        return {"waits": [wait.state(line) for wait in waits], "last": last, "line": line}

    def _watch(self) -> None:
        """Polls the others while this process waits, as they may end earlier."""
        ask_after = self._tick
        while not self._ended.wait(self._tick):
            with self._lock:
                since = min((wait.since for wait in self._waiting.values()), default=None)
            longest = 0.0 if since is None else time.monotonic() - since
            if longest < self._tick:
                ask_after = self._tick
            elif longest >= ask_after:
                ask_after *= 2
                with contextlib.suppress(RuntimeError):  # no thread is started in a process that ends
                    self._ask()

    def _ask(self) -> None:
        """Polls all others once."""
        with self._reading, concurrent.futures.ThreadPoolExecutor(min(len(self._others), _MOST_READERS)) as pool:
            for rank, answer in zip(self._others, pool.map(self._read, self._others)):
                _, before = self._heard.get(rank, (0.0, ""))
                if isinstance(answer, str) and isinstance(before, dict):
                    self._heard[rank] = self._heard[rank][0], {**before, "silent": answer}
                else:
                    self._heard[rank] = time.monotonic(), answer

    def _read(self, rank: int) -> _Report:
        try:
            state = self._ask_one(rank, _ANSWER_SECONDS)
        except OSError:
            return "has ended, or cannot be reached"
        return state or "does not answer: its process is stopped, or its machine is overloaded"


class _Wait:
    """A thread that waits in a collective."""

    def __init__(self, call: str, title: str, place: str) -> None:
        self.since = time.monotonic()
        self._call, self._title, self._place = call, title, place
        self._thread = threading.get_ident()

    def freeze(self) -> None:
        """Fixes the recorded line, as the thread will move on."""
        self._place = self._place or _line_of_thread(self._thread) or _line_of_script()

    def state(self, line: str) -> dict[str, str]:
        """Returns the report to the others; `line` is the script's, for threads of TensorFlow."""
        place = self._place or _line_of_thread(self._thread) or line
        return {"call": self._call, "title": self._title, "place": place}


def _line_of_thread(thread: int | None) -> str:
    return line_of(sys._current_frames().get(thread or 0))


def _line_of_script() -> str:
    return _line_of_thread(threading.main_thread().ident)


def line_of(frame: FrameType | None) -> str:
    """Returns the innermost script line of a thread's frame.

    Example:
        >>> line_of(None)
        ''
    """
    while frame is not None:
        code = frame.f_code
        if script_files.is_users(code.co_filename):
            return f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}"
        frame = frame.f_back
    return ""


def _describe(call: str, when: float, heard: _Report) -> str:
    """Describes the activity of a process that has not reached a collective; empty if it has."""
    if isinstance(heard, str):
        return heard
    if any(wait["call"] == call for wait in heard["waits"]):
        return ""
    if "silent" in heard:
        return f"{heard['silent']}. {_past_tense(when, heard)}"
    return f"{'waits' if heard['waits'] else 'is'} in {_activity(heard)}"


def _past_tense(when: float, heard: _State) -> str:
    did = "waited" if heard["waits"] else "was"
    return f"{time.monotonic() - when:.0f} s ago it {did} in {_activity(heard)}"


def _activity(heard: _State) -> str:
    """Returns the words after `waits in` or `is in`."""
    waits = heard["waits"]
    if not waits:
        last, line = heard["last"], heard["line"]
        return f"no collective operation{last and ' since ' + last}{line and ', but at ' + line}"
    titles = [f"{wait['title']}{wait['place'] and ' at ' + wait['place']}" for wait in waits[:_MOST_NAMED]]
    return " and ".join(titles) + (f" and {len(waits) - len(titles)} more" if len(waits) > len(titles) else "")
