"""Collective operations between the processes of a job on this machine.

The process of rank 0 is the hub: all others send their arrays to it over a Unix socket in a directory of the user's
own, and get the result back. A call is named by its operation and the number of calls of that name before it, so that
processes may be at different places of their graphs. When a process ends, all that wait for it fail.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from multiprocessing import connection
from typing import Any

import numpy as np

from tf_ipu_shim.runtime import job

_CONNECT_SECONDS = 120
_POLL_SECONDS = 0.05
_member: Any = None
_lock = threading.Lock()
_calls: Counter[str] = Counter()


class CollectiveError(RuntimeError):
    """A collective operation that cannot complete: a process ended, or they do not agree on what is done."""


def run(kind: str, name: str, arrays: Sequence[np.ndarray], root: int = 0) -> list[np.ndarray]:
    """Does a collective operation, together with the same call in every other process of the job.

    Args:
        kind: `"sum"`, `"mean"`, `"gather"` (along the first axis) or `"broadcast"`.
        name: the same in every process for what belongs together.
        arrays: of the same types, and but for gathered ones of the same shapes, in every process.
        root: the rank that broadcasts.

    Returns:
        An array for each given one.

    Raises:
        CollectiveError: another process ended, or called with something else.

    Example:
        >>> (total,) = run("sum", "loss", [np.ones(3)])
        >>> total.tolist()  # in a job of one process
        [1.0, 1.0, 1.0]
    """
    arrays = [np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array) for array in arrays]
    with _lock:
        key = f"{name}#{_calls[name]}"
        _calls[name] += 1
    return _join().call({"kind": kind, "root": root, "key": key}, arrays)


def _join() -> Any:
    """This process's end of the hub, made at the first call."""
    global _member
    with _lock:
        if _member is None or _member.owner != os.getpid():
            here = job.current()
            _member = Hub(here) if here.rank == 0 else Spoke(here)
        return _member


def combine(call: dict[str, Any], parts: list[list[np.ndarray]]) -> list[np.ndarray]:
    """The result of a call.

    Args:
        call: its `kind` and `root`.
        parts: the arrays of each rank.

    Example:
        >>> combine({"kind": "sum", "root": 0}, [[np.ones(2)], [np.ones(2)]])
        [array([2., 2.])]
    """
    if call["kind"] == "broadcast":
        return parts[call["root"]]
    if call["kind"] == "gather":
        return [np.concatenate([np.atleast_1d(array) for array in arrays]) for arrays in zip(*parts)]
    results = []
    for arrays in zip(*parts):
        total = arrays[0].copy()
        for array in arrays[1:]:
            total = total + array  # in the order of ranks, so that every run gives the same
        if call["kind"] == "mean":
            total = total // len(arrays) if total.dtype.kind in "iu" else total / len(arrays)
        results.append(np.asarray(total, arrays[0].dtype))
    return results


def disagreement(calls: list[dict[str, Any]], parts: list[list[np.ndarray]]) -> str:
    """What processes do not agree on; empty where they do."""
    for rank, (call, arrays) in enumerate(zip(calls, parts)):
        given = (call["kind"], call["root"], [_form(call, array) for array in arrays])
        first = (calls[0]["kind"], calls[0]["root"], [_form(calls[0], array) for array in parts[0]])
        if given != first:
            return f"Mismatched collective operation {call['key']}: rank 0 has {first}, rank {rank} has {given}."
    return ""


def _form(call: dict[str, Any], array: np.ndarray) -> tuple[Any, ...]:
    return (array.dtype.name, array.shape[1:] if call["kind"] == "gather" else array.shape)


class Hub:
    """Rank 0: gathers what all ranks give, and answers them.

    Args:
        here: the job.
    """

    def __init__(self, here: job.Job) -> None:
        self.owner = os.getpid()
        self._size = here.size
        self._given: dict[str, dict[int, tuple[Any, Any, Callable[..., None]]]] = {}
        self._broken = ""
        self._ranks = {0}
        self._lock = threading.Lock()
        if self._size > 1:
            address = _address(here.name)
            pathlib.Path(address).unlink(missing_ok=True)
            self._listener = connection.Listener(address, "AF_UNIX", backlog=here.size)
            threading.Thread(target=self._accept, daemon=True).start()

    def call(self, call: dict[str, Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Gives this process's arrays and waits for the result."""
        future: Future[list[np.ndarray]] = Future()
        self._give(0, call, arrays, lambda results, problem: _settle(future, results, problem))
        return future.result()

    def _accept(self) -> None:
        for _ in range(self._size - 1):
            peer = self._listener.accept()
            threading.Thread(target=self._serve, args=[peer], daemon=True).start()
        self._listener.close()

    def _serve(self, peer: Any) -> None:
        sending, rank = threading.Lock(), -1
        try:
            while True:
                call, arrays = _unpack(peer.recv_bytes())
                if rank < 0:
                    rank = call["rank"]
                    self._join(rank)

                def answer(results: Any, problem: str, key: str = call["key"]) -> None:
                    with sending:
                        peer.send_bytes(_pack({"key": key, "problem": problem}, results))

                self._give(rank, call, arrays, answer)
        except (EOFError, OSError):
            self._break(f"The process of rank {rank} has ended." if rank >= 0 else "A process has ended.")

    def _join(self, rank: int) -> None:
        with self._lock:
            twice = rank in self._ranks
            self._ranks.add(rank)
        if twice:
            self._break(f"Two processes of this job have rank {rank}. Give each its own TF_IPU_SHIM_RANK.")

    def _give(self, rank: int, call: dict[str, Any], arrays: Any, answer: Callable[..., None]) -> None:
        with self._lock:
            given = self._given.setdefault(call["key"], {})
            given[rank] = (call, arrays, answer)
            if self._broken:
                problem, results = self._broken, []
            elif len(given) < self._size:
                return
            else:
                calls = [given[r][0] for r in range(self._size)]
                parts = [given[r][1] for r in range(self._size)]
                problem = disagreement(calls, parts)
                results = [] if problem else combine(calls[0], parts)
            del self._given[call["key"]]
        # Rank 0 is told last: once it knows, it may end, and the others must have their answers.
        for r in sorted(given, reverse=True):
            _tell(given[r][2], results, problem)

    def _break(self, problem: str) -> None:
        with self._lock:
            self._broken = self._broken or problem
            waiting = [(rank, answer) for given in self._given.values() for rank, (_, _, answer) in given.items()]
            self._given.clear()
        for _, answer in sorted(waiting, key=lambda one: -one[0]):
            _tell(answer, [], problem)


class Spoke:
    """Any other rank.

    Args:
        here: the job.
    """

    def __init__(self, here: job.Job) -> None:
        self.owner = os.getpid()
        self._rank = here.rank
        self._waiting: dict[str, Future[list[np.ndarray]]] = {}
        self._broken = ""
        self._lock = threading.Lock()
        self._peer = _connect(_address(here.name))
        threading.Thread(target=self._receive, daemon=True).start()

    def call(self, call: dict[str, Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
        """Gives this process's arrays and waits for the result."""
        future: Future[list[np.ndarray]] = Future()
        with self._lock:
            if self._broken:
                raise CollectiveError(self._broken)
            self._waiting[call["key"]] = future
            self._peer.send_bytes(_pack({**call, "rank": self._rank}, arrays))
        return future.result()

    def _receive(self) -> None:
        try:
            while True:
                answer, results = _unpack(self._peer.recv_bytes())
                with self._lock:
                    future = self._waiting.pop(answer["key"])
                _settle(future, results, answer["problem"])
        except (EOFError, OSError):
            with self._lock:
                self._broken = "The process of rank 0 has ended."
                waiting = list(self._waiting.values())
            for future in waiting:
                _settle(future, [], self._broken)


def _settle(future: Future[list[np.ndarray]], results: list[np.ndarray], problem: str) -> None:
    if problem:
        future.set_exception(CollectiveError(problem))
    else:
        future.set_result(results)


def _tell(answer: Callable[..., None], results: Any, problem: str) -> None:
    try:
        answer(results, problem)
    except OSError:
        return  # that process has ended; its own thread here reports it


def _pack(header: dict[str, Any], arrays: Sequence[np.ndarray]) -> bytes:
    forms = [(array.dtype.name, array.shape) for array in arrays]
    head = json.dumps({**header, "arrays": forms}).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *(array.tobytes() for array in arrays)])


def _unpack(message: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    start = 8 + int.from_bytes(message[:8], "little")
    header = json.loads(message[8:start])
    arrays = []
    for kind, shape in header.pop("arrays"):
        dtype = np.dtype(kind)
        count = int(np.prod(shape))
        arrays.append(np.frombuffer(message, dtype, count, start).reshape(shape))
        start += count * dtype.itemsize
    return header, arrays


def _address(name: str) -> str:
    """The hub's socket, where no other user can put one."""
    directory = pathlib.Path(tempfile.gettempdir()) / f"tf-ipu-shim-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{directory} must belong to you alone: processes of a job meet there. Remove it.")
    return str(directory / f"job-{hashlib.sha256(name.encode()).hexdigest()[:16]}")


def _connect(address: str) -> Any:
    deadline = time.monotonic() + _CONNECT_SECONDS
    while True:
        try:
            return connection.Client(address, "AF_UNIX")
        except OSError as error:
            if time.monotonic() > deadline:
                raise CollectiveError(
                    f"The process of rank 0 was not found in {_CONNECT_SECONDS} s. Start all processes of the job, "
                    "with the same TF_IPU_SHIM_JOB where no launcher names it."
                ) from error
            time.sleep(_POLL_SECONDS)
