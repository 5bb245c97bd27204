"""What the processes of a job hand each other: TensorFlow's collective runtime, its gRPC servers and ring.

Each process has a TensorFlow server of its own and a session on it, apart from the script's graphs, sessions and
devices. Checked on TensorFlow 2.15.1 and 2.21.0:

- An op of its own for each name, run as a graph with its own `collective_graph_key`: the ranks number the runs of each
  such graph alike, so that calls of other names may come in any order.
- The instance key is the number of elements, as TensorFlow keeps the first shape that an instance had.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import threading
import time
from typing import Any

import numpy as np
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import dtypes, errors_impl, ops
from tensorflow.python.ops import array_ops, gen_collective_ops
from tensorflow.python.training import server_lib

from tf_ipu_shim.runtime import job, meeting_place
from tf_ipu_shim.runtime.waits import Waits, is_listening

SECONDS = "TF_IPU_SHIM_COLLECTIVE_SECONDS"
_DEFAULT_SECONDS = 600
_MOST_SECONDS = 1e9
_POLL_SECONDS = 0.05
_FLUSH_SECONDS = 0.1
_GOING_SECONDS = 2.0  # for a process that ends to be gone
_TASKS = "instance"
_TARGET = re.compile(rf"remote target /job:{_TASKS}/replica:0/task:(\d+)")


class CollectiveError(errors_impl.UnknownError):
    """A collective operation that cannot complete: a process ended, or they do not agree on what is done."""

    def __init__(self, message: str) -> None:
        super().__init__(None, None, message)


class Peers:
    """This process among those of its job.

    Args:
        here: the job.

    Raises:
        CollectiveError: the other processes are not found.
        ValueError: `TF_IPU_SHIM_COLLECTIVE_SECONDS` is no number of seconds.
    """

    def __init__(self, here: job.Job) -> None:
        self._seconds = _seconds()
        self._owner = os.getpid()
        self._rank = here.rank
        self._lock = threading.Lock()
        self._ops: dict[str, tuple[Any, Any, Any]] = {}
        self._broken = ""
        try:
            self._addresses = here.addresses or meeting_place.meet(here)
        except meeting_place.MeetingError as error:
            raise CollectiveError(str(error)) from error
        config = config_pb2.ConfigProto(
            device_count={"IPU": 0, "GPU": 0},
            device_filters=[f"/job:{_TASKS}/task:{here.rank}"],
            intra_op_parallelism_threads=1,
        )
        config.experimental.collective_group_leader = f"/job:{_TASKS}/replica:0/task:0"
        cluster = server_lib.ClusterSpec({_TASKS: list(self._addresses)})
        try:
            self._server = server_lib.Server(cluster, _TASKS, here.rank, config=config)
        except errors_impl.OpError as error:
            raise CollectiveError(
                f"The process of rank {here.rank} cannot listen at {self._addresses[here.rank]}: another process of "
                f"this job has its rank, or another program the port. {error.message}"
            ) from error
        for rank in range(here.size):
            self._reach(rank, meeting_place.WAIT_SECONDS)
        self._graph = ops.Graph()
        self._session = session_lib.Session(self._server.target, graph=self._graph, config=config)
        self._waits = Waits(_TASKS, self._addresses, here.rank, self._seconds)
        self._breaking = threading.Lock()
        # TensorFlow says that an array is handed on before the last of it has left this process.
        atexit.register(time.sleep, _FLUSH_SECONDS)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return len(self._addresses)

    def gather(self, name: str, numbers: np.ndarray, call: str = "", title: str = "", place: str = "") -> np.ndarray:
        """Gives numbers to all processes, and takes theirs.

        Args:
            name: the same in every process; calls of one name follow each other.
            numbers: int64, shape [numbers], as many in every process.
            call: what the whole operation is called in every process; the name when left out.
            title: what errors say of it; the name when left out.
            place: where the script calls it, if not this thread does.

        Returns:
            int64, shape [processes, numbers], by rank.

        Raises:
            CollectiveError: a process has ended, or none comes in time.
        """
        if self._broken or self._owner != os.getpid():
            raise CollectiveError(self._broken or "This process was forked from one of a job; that one is of the job.")
        given, instance, gathered = self._op(name)
        # Not the op's own `timeout_seconds`: after that TensorFlow frees what the thread of the ring still uses.
        options = config_pb2.RunOptions(timeout_in_ms=max(1, int(1000 * min(self._seconds, _MOST_SECONDS))))
        digest = hashlib.sha256(name.encode()).digest()
        options.experimental.collective_graph_key = int.from_bytes(digest[:7], "little") + 1
        try:
            with self._waits.at(call or name, title or name, place):
                result = self._session.run(gathered, {given: numbers, instance: len(numbers)}, options=options)
        except errors_impl.OpError as error:
            # TensorFlow's collective runtime works no more in this process after an error.
            with self._breaking:
                self._broken = self._broken or self._explained(call or name, title or name, error)
            raise CollectiveError(self._broken) from error
        return np.reshape(result, [self.size, len(numbers)])

    def _op(self, name: str) -> tuple[Any, Any, Any]:
        with self._lock:
            if name not in self._ops:
                # The first run asks rank 0 for its number, and would ask forever where that has ended.
                self._reach(0, 0)
                with self._graph.as_default(), ops.device(f"/job:{_TASKS}/task:{self._rank}/device:CPU:0"):
                    given = array_ops.placeholder(dtypes.int64, [None])
                    instance = array_ops.placeholder(dtypes.int32, [])
                    gathered = gen_collective_ops.collective_gather_v2(
                        given, self.size, 1, instance, [], communication_hint="ring"
                    )
                self._ops[name] = given, instance, gathered
            return self._ops[name]

    def _reach(self, rank: int, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not is_listening(self._addresses[rank], max(seconds, 1)):
            if time.monotonic() > deadline:
                self._broken = self._not_found(rank, seconds) if seconds else self._ended(rank)
                raise CollectiveError(self._broken)
            time.sleep(_POLL_SECONDS)

    def _not_found(self, rank: int, seconds: float) -> str:
        return (
            f"The process of rank {rank} was not found at {self._addresses[rank]} in {seconds:g} s. Start all "
            "processes of the job."
        )

    def _ended(self, rank: int) -> str:
        return f"The process of rank {rank} has ended, or cannot be reached at {self._addresses[rank]} any more."

    def _explained(self, call: str, title: str, error: errors_impl.OpError) -> str:
        found = _TARGET.search(error.message)
        lost = self._lost(int(found.group(1))) if found else None
        if lost is not None:
            # One that has waited here itself has given up before it ended.
            before = self._waits.others(call) if self._waits.was_at(lost, call) else self._waits.before_its_end(lost)
            return f"Collective operation {title}: {self._ended(lost)}{before}"
        if found or isinstance(error, errors_impl.DeadlineExceededError):
            return (
                f"Collective operation {title} in the process of rank {self._rank}: not all {self.size} processes "
                f"came to it within {self._seconds:g} s.{self._waits.others(call)} Start the job again: with more time "
                f"in {SECONDS} if one takes long, and with all processes going the same way through the script."
            )
        return f"Collective operation {title}: {error.message}"

    def _lost(self, named: int) -> int | None:
        """The process that has ended, where one has: the error may come a moment before, or by one that gave up for it.

        Args:
            named: whom TensorFlow's error names. What is passed on from process to process names the one that nobody
                reached first.
        """
        deadline = time.monotonic() + _GOING_SECONDS
        while True:
            for rank in (named, *range(self.size)):
                if rank != self._rank and not is_listening(self._addresses[rank], 1):
                    return rank
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_SECONDS)


def _seconds() -> float:
    text = os.environ.get(SECONDS) or str(_DEFAULT_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{SECONDS} must be a number of seconds above 0; it is {text!r}.")
    return seconds
