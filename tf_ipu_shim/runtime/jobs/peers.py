"""Exchanges arrays between the processes of a job, with a connection to each other process.

Each process sends its values to all others, in frames with a name and number. Calls with one name follow each other;
calls with other names may be in any order. A thread for each process receives its messages, so that no sender waits for
a process that computes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import socket
import threading
import time
from collections import defaultdict
from typing import Any

import numpy as np
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.machine.environment import collective_timeout
from tf_ipu_shim.runtime.jobs import connections, job, rendezvous
from tf_ipu_shim.runtime.jobs.waits import Waits

_MOST_SECONDS = 1e6
_POLL_SECONDS = 0.05
_TICK_SECONDS = 0.5


class CollectiveError(errors_impl.UnknownError):
    """A collective that cannot complete: a process ended, or they disagree."""

    def __init__(self, message: str) -> None:
        super().__init__(None, None, message)


class Peers:
    """This process in its job, and its connections to the others.

    Raises:
        CollectiveError: the other processes are not found.
        ValueError: `TF_IPU_SHIM_COLLECTIVE_TIMEOUT` is not a number of seconds.
    """

    def __init__(self, current_job: job.Job) -> None:
        self._seconds = collective_timeout.seconds()
        self._owner = os.getpid()
        self._here = current_job
        self._broken = ""
        self._changed = threading.Condition()
        self._counts: dict[str, itertools.count[int]] = defaultdict(itertools.count)
        self._arrived: dict[tuple[str, int], dict[int, bytearray]] = defaultdict(dict)
        self._answers: dict[tuple[int, int], dict[str, Any]] = {}
        self._questions = itertools.count()
        self._connections: dict[int, socket.socket] = {}
        self._incoming: dict[int, socket.socket] = {}
        self._lost: set[int] = set()
        self._unreachable: set[int] = set()
        self._others = [rank for rank in range(current_job.size) if rank != current_job.rank]
        self._sending = {rank: threading.Lock() for rank in self._others}
        self._waits = Waits(current_job.size, current_job.rank, self._seconds, self._ask)
        self._directory: pathlib.Path | None = None
        try:
            if current_job.local_size == current_job.size:
                self._directory = rendezvous.directory_of(current_job)
                self._lock = rendezvous.lock_rank(self._directory, current_job.rank)
            self._listener = connections.Listener(current_job, self._directory)
            threading.Thread(target=self._accept, name="connections of this job", daemon=True).start()
            if self._directory is not None:
                rendezvous.wait_for_all(current_job, self._directory, self._lock)
        except rendezvous.RendezvousError as error:
            raise CollectiveError(str(error)) from error
        except OSError as error:
            raise CollectiveError(
                f"The process of rank {current_job.rank} cannot listen at {self._place(current_job.rank)}: another "
                f"process of this job has its rank, or another program the port. Give each process a rank and a "
                f"free port: {error}"
            ) from error
        deadline = time.monotonic() + rendezvous.WAIT_SECONDS
        for rank in self._others:
            self._connections[rank] = self._reach(rank, deadline)
        os.register_at_fork(after_in_child=self._leave)

    @property
    def size(self) -> int:
        """Number of processes."""
        return self._here.size

    def gather(self, name: str, elements: np.ndarray, call: str = "", title: str = "", line: str = "") -> np.ndarray:
        """Sends an array to all processes and receives theirs."""
        if self._broken or self._owner != os.getpid():
            raise CollectiveError(
                self._broken
                or "This process was forked from one of a job, and cannot take part in it. Start it with the job."
            )
        call, title = call or name, title or name
        try:
            with self._waits.waiting(call, title, line):
                arrived = self._exchange(name, elements, call, title)
        except CollectiveError:
            raise
        except BaseException:
            self._fail(f"Collective operation {title} was interrupted, and the others went on: start the job again.")
            raise
        rows = np.empty([self.size, len(elements)], np.int64)
        for rank, row in arrived.items():
            rows[rank] = np.frombuffer(row, np.int64)
        rows[self._here.rank] = elements
        return rows

    def _exchange(self, name: str, elements: np.ndarray, call: str, title: str) -> dict[int, bytearray]:
        with self._changed:
            key = (name, next(self._counts[name]))
        payload = np.ascontiguousarray(elements).view(np.uint8).data
        for rank in self._others:
            try:
                self._send(rank, {"name": name, "number": key[1]}, payload)
            except OSError:  # what it has sent before its end counts
                self._unreachable.add(rank)
        deadline = time.monotonic() + min(self._seconds, _MOST_SECONDS)
        with self._changed:
            while len(self._arrived[key]) < len(self._others) and not self._broken:
                ended = [rank for rank in self._others if rank not in self._arrived[key] and self._has_ended(rank)]
                remaining = deadline - time.monotonic()
                if ended or remaining <= 0:
                    break
                self._changed.wait(min(remaining, _TICK_SECONDS))
            else:
                ended = []
            arrived = self._arrived.pop(key, {})
        if len(arrived) < len(self._others):
            if not self._broken:
                self._fail(self._explained(call, title, ended[0] if ended else None))
            raise CollectiveError(self._broken)
        return arrived

    def _has_ended(self, rank: int) -> bool:
        return rank in self._lost or (rank in self._unreachable and rank not in self._incoming)

    def _fail(self, why: str) -> None:
        """Fails all further collectives, as the processes are out of step."""
        with self._changed:
            self._broken = self._broken or why
            self._changed.notify_all()

    def _send(
        self, rank: int, header: dict[str, Any], payload: bytes | memoryview = b"", seconds: float = -1.0
    ) -> None:
        """Sends a frame; raises TimeoutError if a stopped peer blocks another thread's send."""
        if not self._sending[rank].acquire(timeout=seconds):
            raise TimeoutError
        try:
            connections.send(self._connections[rank], header, payload)
        finally:
            self._sending[rank].release()

    def _leave(self) -> None:
        """Closes a fork's copies of connections, so that peers notice the parent's end."""
        for connection in (*self._connections.values(), *self._incoming.values()):
            connection.close()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                connection, address = self._listener.accept()
                greeting = threading.Thread(target=self._receive_from, args=(connection, address), daemon=True)
                greeting.start()

    def _receive_from(self, connection: socket.socket, address: Any) -> None:
        """Receives another process's messages until it ends."""
        try:
            rank = self._listener.greet(connection, address)
        except (OSError, ValueError):
            return
        try:
            self._incoming[rank] = connection
            while True:
                self._handle(rank, *connections.receive(connection))
        except (OSError, ValueError, KeyError, RuntimeError):
            with self._changed:
                self._lost.add(rank)
                self._changed.notify_all()

    def _handle(self, rank: int, header: dict[str, Any], payload: bytearray) -> None:
        if "asks" in header:
            # Not this thread, which takes what the other sends meanwhile.
            threading.Thread(target=self._answer, args=(rank, header["asks"]), daemon=True).start()
            return
        with self._changed:
            if "answers" in header:
                self._answers[rank, header["answers"]] = header["state"]
            else:
                self._arrived[header["name"], header["number"]][rank] = payload
            self._changed.notify_all()

    def _answer(self, rank: int, question: int) -> None:
        with contextlib.suppress(OSError, KeyError):  # it has ended, or has yet to be connected
            self._send(rank, {"answers": question, "state": self._waits.state()})

    def _ask(self, rank: int, seconds: float) -> dict[str, Any] | None:
        """Returns another process's state, or None without an answer."""
        question = next(self._questions)
        if rank in self._lost:
            raise ConnectionResetError
        try:
            self._send(rank, {"asks": question}, seconds=seconds)
        except TimeoutError:
            return None
        deadline = time.monotonic() + seconds
        with self._changed:
            while (rank, question) not in self._answers:
                if rank in self._lost:
                    raise ConnectionResetError
                if time.monotonic() > deadline:
                    return None
                self._changed.wait(_POLL_SECONDS)
            return self._answers.pop((rank, question))

    def _reach(self, rank: int, deadline: float) -> socket.socket:
        while True:
            try:
                connection = connections.connect(self._here, self._directory, rank, rendezvous.WAIT_SECONDS)
                connection.settimeout(min(self._seconds, _MOST_SECONDS))
                return connection
            except connections.UntrustedPeer as error:
                raise CollectiveError(
                    f"The listener at {self._place(rank)} is {error}; expected the process of rank {rank}. Give all "
                    f"processes of the job the same {connections.KEY} and the same addresses."
                ) from error
            except OSError as error:
                if time.monotonic() > deadline:
                    raise CollectiveError(
                        f"The process of rank {rank} was not found at {self._place(rank)} in "
                        f"{rendezvous.WAIT_SECONDS:g} s. Start all processes of the job."
                    ) from error
            time.sleep(_POLL_SECONDS)

    def _place(self, rank: int) -> str:
        return str(self._directory) if self._directory is not None else self._here.addresses[rank]

    def _explained(self, call: str, title: str, lost: int | None) -> str:
        if lost is not None:
            # One that has waited here itself has given up before it ended.
            before = (
                self._waits.missing_participants(call)
                if self._waits.was_waiting_in(lost, call)
                else self._waits.last_activity(lost)
            )
            ended = f"The process of rank {lost} has ended, or cannot be reached at {self._place(lost)} any more."
            return f"Collective operation {title}: {ended}{before}"
        return (
            f"Collective operation {title} in the process of rank {self._here.rank}: not all {self.size} processes "
            f"came to it within {self._seconds:g} s.{self._waits.missing_participants(call)} Start the job again. "
            f"Give it more time with {collective_timeout.ENVIRONMENT_VARIABLE} if one is slow, and let all "
            "processes run the same collectives."
        )
