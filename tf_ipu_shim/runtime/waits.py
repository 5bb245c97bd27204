"""What each process of a job waits for, for the others to read where a collective operation does not come about.

A process keeps it in a variable on its own TensorFlow server: what it has waited for for a while, and the last
operation that it took part in. The others read it through a session on that server, with a short deadline: the server
answers whatever the process's own threads do, unless the whole process is stopped. Checked on TensorFlow 2.15.1 and
2.21.0.
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import itertools
import json
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import dtypes, errors_impl, ops
from tensorflow.python.ops import array_ops, gen_resource_variable_ops

from tf_ipu_shim.runtime import script_files

_VARIABLE = "tf_ipu_shim_waits"
_LONGEST_TICK = 1.0
_ANSWER_SECONDS = 4.0
_MOST_NAMED = 4
_MOST_READERS = 16
# What is heard of a process: a state, or why there is none.
_State = dict[str, Any]
_Heard = _State | str


class Waits:
    """What this process waits for, and what the others say of themselves.

    Args:
        task: the name of the job's tasks in TensorFlow's cluster.
        addresses: of all processes, by rank.
        rank: of this process.
        seconds: how long operations wait.
    """

    def __init__(self, task: str, addresses: Sequence[str], rank: int, seconds: float) -> None:
        self._task, self._addresses, self._rank = task, addresses, rank
        self._tick = min(_LONGEST_TICK, seconds / 4)
        self._lock = threading.Lock()
        self._waiting: dict[int, _Wait] = {}
        self._numbers = itertools.count()
        self._last = ""
        self._heard: dict[int, tuple[float, _Heard]] = {}
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._ended = threading.Event()
        self._written = ""
        self._writer: tuple[Any, Any, Any] | None = None
        self._thread = threading.Thread(target=self._watch, name="waits of this process", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    @contextlib.contextmanager
    def at(self, call: str, title: str, place: str = "") -> Iterator[None]:
        """Notes that this thread waits for the other processes.

        What fails stays noted: the others may still ask for it.

        Args:
            call: what the others call the operation too.
            title: what is said of it.
            place: where the script calls it, if not this thread does.
        """
        wait = _Wait(call, title, place)
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = wait
        try:
            yield
        except BaseException:
            wait.freeze()
            raise
        with self._lock:
            del self._waiting[number]
            self._last = title

    def others(self, call: str) -> str:
        """Which processes have not come to an operation, and what they do instead.

        Args:
            call: the operation.

        Returns:
            Sentences, each with a space before it.
        """
        self._write(0)
        self._ask()
        ranks = [rank for rank in range(len(self._addresses)) if rank != self._rank]
        told = [(rank, _told(call, *self._heard[rank])) for rank in ranks]
        late = [f" Rank {rank} {text}." for rank, text in told if text]
        return "".join(late) or " The others have come to it, too early or by now."

    def was_at(self, rank: int, call: str) -> bool:
        """Whether a process has waited in an operation when it was last heard of."""
        _, heard = self._heard.get(rank, (0.0, ""))
        return not isinstance(heard, str) and any(wait["call"] == call for wait in heard["waits"])

    def before_its_end(self, rank: int) -> str:
        """What a process did that has ended, if it was heard of: a sentence with a space before it, or nothing."""
        when, heard = self._heard.get(rank, (0.0, ""))
        return "" if isinstance(heard, str) else f" {_past(when, heard)}."

    def _end(self) -> None:
        self._ended.set()
        self._thread.join(2 * _ANSWER_SECONDS)

    def _watch(self) -> None:
        """Writes what is waited for when that has changed; now and then asks the others, who may end earlier."""
        ask_after = self._tick
        while not self._ended.wait(self._tick):
            longest = self._write(self._tick)
            if longest < self._tick:
                ask_after = self._tick
            elif longest >= ask_after:
                ask_after *= 2
                with contextlib.suppress(RuntimeError):  # no thread is started in a process that ends
                    self._ask()

    def _write(self, least: float) -> float:
        """Has the others see what is waited for; returns for how long the oldest of it is."""
        now = time.monotonic()
        with self._writing:  # operations that begin and end meanwhile do not wait for it
            with self._lock:
                waits, last = [wait for wait in self._waiting.values() if now - wait.since >= least], self._last
            line = _line_of_script()
            state = json.dumps({"waits": [wait.state(line) for wait in waits], "last": last, "line": line})
            if state != self._written:
                with contextlib.suppress(errors_impl.OpError):  # the next time, then
                    if self._writer is None:
                        self._writer = self._open(self._rank)
                    session, assigned, given = self._writer
                    session.run(assigned, {given: state})
                    self._written = state
        return max((now - wait.since for wait in waits), default=0.0)

    def _open(self, rank: int) -> tuple[Any, Any, Any]:
        """A session on a process's server, and in it the variable: what writes it and is fed, or what reads it."""
        own = rank == self._rank
        device = f"/job:{self._task}/replica:0/task:{rank}/device:CPU:0"
        with ops.Graph().as_default() as graph, ops.device(device):
            variable = gen_resource_variable_ops.var_handle_op(dtypes.string, [], shared_name=_VARIABLE)
            given = array_ops.placeholder(dtypes.string, []) if own else None
            made = gen_resource_variable_ops.assign_variable_op(variable, given) if own else None
            read = None if own else gen_resource_variable_ops.read_variable_op(variable, dtypes.string)
        config = config_pb2.ConfigProto(
            device_count={"IPU": 0, "GPU": 0},
            device_filters=[f"/job:{self._task}/task:{rank}"],
            operation_timeout_in_ms=int(1000 * _ANSWER_SECONDS),
        )
        session = session_lib.Session(f"grpc://{self._addresses[rank]}", graph=graph, config=config)
        return session, made, given if own else read

    def _ask(self) -> None:
        """Asks all others at once."""
        ranks = [rank for rank in range(len(self._addresses)) if rank != self._rank]
        with self._reading, concurrent.futures.ThreadPoolExecutor(min(len(ranks), _MOST_READERS)) as pool:
            for rank, answer in zip(ranks, pool.map(self._read, ranks)):
                _, before = self._heard.get(rank, (0.0, ""))
                if isinstance(answer, str) and isinstance(before, dict):
                    self._heard[rank] = self._heard[rank][0], {**before, "silent": answer}
                else:
                    self._heard[rank] = time.monotonic(), answer

    def _read(self, rank: int) -> _Heard:
        if not is_listening(self._addresses[rank], _ANSWER_SECONDS):  # TensorFlow would try again and again
            return "has ended, or cannot be reached"
        try:
            session, _, read = self._open(rank)
            with session:
                return dict(json.loads(session.run(read)))
        except errors_impl.FailedPreconditionError:
            return {"waits": [], "last": "", "line": ""}  # it has written nothing yet
        except errors_impl.OpError:
            return "does not answer: its process is stopped, or its machine has no time for it"


class _Wait:
    """A thread that waits at an operation."""

    def __init__(self, call: str, title: str, place: str) -> None:
        self.since = time.monotonic()
        self._call, self._title, self._place = call, title, place
        self._thread = threading.get_ident()

    def freeze(self) -> None:
        """Keeps the place, as the thread will go on, and the script, which waits for one of TensorFlow's."""
        self._place = self._place or _line_of_thread(self._thread) or _line_of_script()

    def state(self, line: str) -> dict[str, str]:
        """What the others are told; `line` is that of the script, for threads that are TensorFlow's."""
        place = self._place or _line_of_thread(self._thread) or line
        return {"call": self._call, "title": self._title, "place": place}


def _line_of_thread(thread: int | None) -> str:
    return line_of(sys._current_frames().get(thread or 0))


def _line_of_script() -> str:
    return _line_of_thread(threading.main_thread().ident)


def is_listening(address: str, seconds: float) -> bool:
    """Whether the system of a process takes connections for it, which it does while the process is stopped, too.

    Args:
        address: `host:port`.
        seconds: how long to try.

    Example:
        >>> is_listening("127.0.0.1:9", 1.0)
        False
    """
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except OSError:
        return False
    return True


def line_of(frame: FrameType | None) -> str:
    """The script's innermost line of a thread.

    Args:
        frame: of the thread.

    Returns:
        Such as `"train.py:42, in step"`; empty where the script has none in it.

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


def _told(call: str, when: float, heard: _Heard) -> str:
    """What a process does instead of an operation; empty where it has come to it."""
    if isinstance(heard, str):
        return heard
    if any(wait["call"] == call for wait in heard["waits"]):
        return ""
    if "silent" in heard:
        return f"{heard['silent']}. {_past(when, heard)}"
    return f"{'waits' if heard['waits'] else 'is'} in {_doing(heard)}"


def _past(when: float, heard: _State) -> str:
    did = "waited" if heard["waits"] else "was"
    return f"{time.monotonic() - when:.0f} s ago it {did} in {_doing(heard)}"


def _doing(heard: _State) -> str:
    """What follows on `waits in` or `is in`."""
    waits = heard["waits"]
    if not waits:
        last, line = heard["last"], heard["line"]
        return f"no collective operation{last and ' since ' + last}{line and ', but at ' + line}"
    titles = [f"{wait['title']}{wait['place'] and ' at ' + wait['place']}" for wait in waits[:_MOST_NAMED]]
    return " and ".join(titles) + (f" and {len(waits) - len(titles)} more" if len(waits) > len(titles) else "")
