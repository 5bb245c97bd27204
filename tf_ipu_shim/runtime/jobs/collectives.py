"""Runs collective operations between the processes of a job.

Every process gathers all contributions and computes the result itself, in the order of ranks: all get the same, in
every run. Each message names its operation, so that all processes learn of a mismatch.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np

from tf_ipu_shim import errors
from tf_ipu_shim.runtime.jobs import job
from tf_ipu_shim.runtime.jobs.peers import CollectiveError, Peers

__all__ = ["CollectiveError", "among", "combine", "disagreement", "finish", "run", "start"]

_NUMBER_BYTES = 8
# The numbers that a process sends first: the length of its message, and its beginning. Most messages end there. Those
# of one name are mostly as long as the last time, and every process knows all lengths.
_LEAST_BEGINNING = 512
_beginnings: dict[str, int] = {}
_peers: Peers | None = None
# Between which ranks operations are; None: all.
_members: list[int] | None = None
_lock = threading.Lock()
_turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_Results = Future[list[np.ndarray]]
# Collectives that were started and not finished, by name and number: a graph whose result is unused never finishes
# them.
_started: defaultdict[str, dict[int, _Results]] = defaultdict(dict)
_numbers = itertools.count()
_MOST_UNFINISHED = 64


@contextlib.contextmanager
def among(ranks: Collection[int]) -> Iterator[None]:
    """Restricts collectives of this process to some ranks.

    Example:
        >>> with among({0}):
        ...     (total,) = run("sum", "mine", [np.ones(3)])
    """
    global _members
    before, _members = _members, None if len(ranks) == job.current().size else sorted(ranks)
    try:
        yield
    finally:
        _members = before


def _check_alone(members: Sequence[int], name: str, kind: str, root: int, current_job: job.Job) -> None:
    """Refuses an operation among several but not all of the job's processes."""
    if len(members) > 1:
        raise errors.UnsupportedError(
            f"Collective operation {_title(kind, name)} in popdist.execute_on_instances({set(members)}, ...): "
            f"operations between some of the {current_job.size} instances are not emulated. Do it in all instances, or "
            "in one."
        )
    if kind == "broadcast" and root != current_job.rank:
        raise ValueError(
            f"Rank {root} broadcasts {name!r}, and only instance {current_job.rank} takes part. Broadcast from an "
            "instance "
            "that takes part."
        )


def run(
    kind: str, name: str, arrays: Sequence[np.ndarray], root: int = 0, title: str = "", line: str = ""
) -> list[np.ndarray]:
    """Runs a collective together with the same call in every other process of the job.

    Example:
        >>> (total,) = run("sum", "loss", [np.ones(3)])
        >>> total.tolist()  # in a job of one process
        [1.0, 1.0, 1.0]
    """
    arrays = [np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array) for array in arrays]
    current_job = job.current()
    call = {"kind": kind, "root": root}
    members = _members
    if members is not None:
        _check_alone(members, name, kind, root, current_job)
    if current_job.size == 1 or members is not None:
        return combine({**call, "root": 0}, [arrays])
    sends = kind != "broadcast" or current_job.rank == root
    message = _pack({**call, "name": name, "gives": sends}, arrays)
    with _lock:
        turn = _turns[name]
    with turn:
        received = [
            _unpack(message_bytes) for message_bytes in _exchange(name, message, title or _title(kind, name), line)
        ]
    calls, parts = [header for header, _ in received], [values for _, values in received]
    problem = disagreement(calls)
    if problem:
        raise CollectiveError(problem)
    return combine(call, parts)


def start(kind: str, name: str, arrays: Sequence[np.ndarray], root: int = 0, line: str = "") -> int:
    """Starts a collective without waiting, so that processes may start theirs in different orders.

    Operations of one name run in the order in which they started.

    Example:
        >>> (total,) = finish("loss", start("sum", "loss", [np.ones(3)]))
        >>> total.tolist()  # in a job of one process
        [1.0, 1.0, 1.0]
    """
    # TensorFlow may use the memory of what it gave for something else.
    arrays = [np.array(array) for array in arrays]
    result: _Results = Future()
    with _lock:
        call_id = next(_numbers)
        unfinished = _started[name]
        before = list(unfinished.values())[-1] if unfinished else None
        unfinished[call_id] = result
        for old in list(unfinished)[:-_MOST_UNFINISHED]:
            if unfinished[old].done():
                del unfinished[old]

    def work() -> None:
        if before is not None:
            before.exception()  # waits, whatever comes of it
        try:
            result.set_result(run(kind, name, arrays, root, line=line))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=work, name=_title(kind, name), daemon=True).start()
    return call_id


def finish(name: str, call_id: int) -> list[np.ndarray]:
    """Waits for a started collective."""
    with _lock:
        result = _started[name][int(call_id)]
    try:
        return result.result()
    finally:
        with _lock:
            _started[name].pop(int(call_id), None)


def _title(kind: str, name: str) -> str:
    return f"{kind} of {name!r}"


def _join() -> Peers:
    """Connects this process to its peers at the first call."""
    global _peers
    with _lock:
        if _peers is None:
            _peers = Peers(job.current())
        return _peers


def _exchange(name: str, message: bytes, title: str, line: str) -> list[bytes]:
    """Returns the messages of all ranks, of any lengths."""
    peers = _join()
    elements = np.zeros(-(-len(message) // _NUMBER_BYTES), np.int64)
    elements.view(np.uint8)[: len(message)] = np.frombuffer(message, np.uint8)
    beginning = _beginnings.get(name, _LEAST_BEGINNING)
    first = np.zeros(beginning, np.int64)
    first[0] = len(message)
    first[1 : len(elements) + 1] = elements[: beginning - 1]
    beginnings = peers.gather(name, first, name, title, line)
    lengths = beginnings[:, 0]
    parts = [beginnings[:, 1:]]
    chunk_count = 1 + -(-int(lengths.max()) // _NUMBER_BYTES)
    _beginnings[name] = max(chunk_count, _LEAST_BEGINNING)
    remaining = chunk_count - beginning
    if remaining > 0:
        rest = np.zeros(remaining, np.int64)
        rest[: max(0, len(elements) - (beginning - 1))] = elements[beginning - 1 :]
        parts.append(peers.gather(f"{name}/rest", rest, name, title, line))
    rows = np.ascontiguousarray(np.concatenate(parts, axis=1)).view(np.uint8)
    return [row[:length].tobytes() for row, length in zip(rows, lengths)]


def combine(call: dict[str, Any], parts: list[list[np.ndarray]]) -> list[np.ndarray]:
    """Returns the result of a collective from all ranks' parts.

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


def disagreement(calls: Sequence[dict[str, Any]]) -> str:
    """Describes how processes disagree on a collective; empty if they agree.

    Example:
        >>> call = {"kind": "sum", "root": 0, "name": "loss", "arrays": [["float32", [2]]]}
        >>> disagreement([call, call])
        ''
    """
    first = _form(calls[0])
    for rank, call in enumerate(calls):
        if _form(call) != first:
            return (
                f"Mismatched collective operation {call['name']}: Tensor layouts did not match on all instances. "
                f"Rank 0 has {first}, rank {rank} has {_form(call)}."
            )
    return ""


def _form(call: dict[str, Any]) -> tuple[Any, ...]:
    skipped = 1 if call["kind"] == "gather" else 0
    return call["kind"], call["root"], [(dtype, tuple(shape[skipped:])) for dtype, shape in call["arrays"]]


def _pack(header: dict[str, Any], arrays: Sequence[np.ndarray]) -> bytes:
    forms = [(array.dtype.name, array.shape) for array in arrays]
    head = json.dumps({**header, "arrays": forms}).encode()
    values = [array.tobytes() for array in arrays] if header["gives"] else []
    return b"".join([len(head).to_bytes(_NUMBER_BYTES, "little"), head, *values])


def _unpack(message: bytes) -> tuple[dict[str, Any], list[np.ndarray]]:
    start = _NUMBER_BYTES + int.from_bytes(message[:_NUMBER_BYTES], "little")
    header = json.loads(message[_NUMBER_BYTES:start])
    arrays = []
    for kind, shape in header["arrays"] if header["gives"] else []:
        dtype = np.dtype(kind)
        count = int(np.prod(shape))
        arrays.append(np.frombuffer(message, dtype, count, start).reshape(shape))
        start += count * dtype.itemsize
    return header, arrays
