"""Connects and authenticates the processes of a job.

On one machine they are Unix sockets in a directory that no other user can enter. Between machines a process listens
only at its own address of the job and accepts connections only from the job's machines. Each side proves that it has
the job's key. A frame is a header of JSON and bytes. Nothing that is read is run or unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import pathlib
import secrets
import socket
import struct
import threading
from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.runtime import log
from tf_ipu_shim.runtime.jobs import job

KEY = "TF_IPU_SHIM_JOB_KEY"
_HELLO_SECONDS = 10.0
_MOST_HELLOS = 64  # at a time: of strangers, where any come
_NONCE_BYTES = 32
_LENGTHS = struct.Struct("<IQ")
_RANK = struct.Struct("<I")
_MOST_HEADER_BYTES = 2**20
_CREDENTIALS = struct.Struct("3i")


class UntrustedPeer(OSError):
    """A peer that is not a process of this job."""


class Listener:
    """Accepts connections from other processes of the job.

    Args:
        directory: the directory of the job, if all of it is on this machine; else it listens at its address.

    Raises:
        OSError: another process listens there.
    """

    def __init__(self, current_job: job.Job, directory: pathlib.Path | None) -> None:
        self._here, self._directory = current_job, directory
        self._key = job_key(current_job)
        self._hosts: frozenset[str] = frozenset()
        self._hellos = threading.BoundedSemaphore(_MOST_HELLOS)
        if directory is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_path(directory, current_job.rank))
            self._socket = socket.socket(socket.AF_UNIX)
            with _ShortPaths(directory) as inside:
                self._socket.bind(inside.place(current_job.rank))
        else:
            host, port = _split(current_job.addresses[current_job.rank])
            self._hosts = frozenset(
                host for address in current_job.addresses for host in _addresses(_split(address)[0])
            )
            self._socket = socket.create_server((host, port), family=_family(host))
            _warn_of_open_ports(current_job)
        self._socket.listen(current_job.size + _MOST_HELLOS)

    def accept(self) -> tuple[socket.socket, Any]:
        """Waits for a connection; `greet` returns the rank of its process."""
        return self._socket.accept()

    def close(self) -> None:
        """Ends listening in this process, which may be a fork of a process that continues."""
        self._socket.close()

    def greet(self, connection: socket.socket, address: Any) -> int:
        """Verifies that a connection's peer is a process of the job; returns its rank."""
        if not self._hellos.acquire(blocking=False):
            connection.close()
            raise UntrustedPeer("too many at a time")
        try:
            connection.settimeout(_HELLO_SECONDS)
            self._check_origin(connection, address)
            rank = self._greet(connection)
            connection.settimeout(None)
            return rank
        except BaseException:
            connection.close()
            raise
        finally:
            self._hellos.release()

    def _check_origin(self, connection: socket.socket, address: Any) -> None:
        if self._directory is not None:
            size = _CREDENTIALS.size
            _, user, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
            if user != os.getuid():
                raise UntrustedPeer(f"user {user} is not user {os.getuid()}")
        elif address[0] not in self._hosts:
            raise UntrustedPeer(f"{address[0]} is not a machine of this job")
        else:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _greet(self, connection: socket.socket) -> int:
        mine = secrets.token_bytes(_NONCE_BYTES)
        connection.sendall(mine)
        hello = _receive_exactly(connection, _RANK.size + _NONCE_BYTES)
        rank, theirs = _RANK.unpack(hello[: _RANK.size])[0], bytes(hello[_RANK.size :])
        proof = _receive_exactly(connection, hashlib.sha256().digest_size)
        if not hmac.compare_digest(proof, _proof(self._key, b"from", rank, mine, theirs)) or rank >= self._here.size:
            connection.sendall(bytes(len(proof)))  # so that it hears why, and doesn't try again
            raise UntrustedPeer("a process without this job's key")
        connection.sendall(_proof(self._key, b"to", rank, theirs, mine))
        return int(rank)


def connect(current_job: job.Job, directory: pathlib.Path | None, rank: int, seconds: float) -> socket.socket:
    """Connects to another process of the job."""
    if directory is not None:
        connection = socket.socket(socket.AF_UNIX)
        with _ShortPaths(directory) as inside:
            _closing_on_failure(connection, lambda: connection.connect(inside.place(rank)))
    else:
        connection = socket.create_connection(_split(current_job.addresses[rank]), timeout=seconds)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.settimeout(max(seconds, 0.1))
    _closing_on_failure(connection, lambda: _introduce(connection, current_job))
    connection.settimeout(None)
    return connection


def send(connection: socket.socket, header: dict[str, Any], payload: bytes | memoryview = b"") -> None:
    """Sends a frame."""
    head = json.dumps(header).encode()
    connection.sendall(_LENGTHS.pack(len(head), len(payload)) + head)
    if len(payload):
        connection.sendall(payload)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytearray]:
    """Receives a frame; returns header and payload."""
    head, length = _LENGTHS.unpack(_receive_exactly(connection, _LENGTHS.size))
    if head > _MOST_HEADER_BYTES:
        raise UntrustedPeer("no frame")
    header = json.loads(bytes(_receive_exactly(connection, head)))
    return header, _receive_exactly(connection, length)


def job_key(current_job: job.Job) -> bytes:
    """Returns the secret by which processes of a job authenticate."""
    common = ",".join(current_job.addresses) or current_job.name
    return hashlib.sha256(f"{common}/{os.environ.get(KEY, '')}".encode()).digest()


def _introduce(connection: socket.socket, current_job: job.Job) -> None:
    key, mine = job_key(current_job), secrets.token_bytes(_NONCE_BYTES)
    theirs = bytes(_receive_exactly(connection, _NONCE_BYTES))
    proof = _proof(key, b"from", current_job.rank, theirs, mine)
    connection.sendall(_RANK.pack(current_job.rank) + mine + proof)
    answer = _receive_exactly(connection, len(proof))
    if not hmac.compare_digest(answer, _proof(key, b"to", current_job.rank, mine, theirs)):
        raise UntrustedPeer("a process without this job's key")


def _proof(key: bytes, direction: bytes, rank: int, theirs: bytes, mine: bytes) -> bytes:
    return hmac.digest(key, direction + _RANK.pack(rank) + theirs + mine, "sha256")


def _closing_on_failure(connection: socket.socket, step: Any) -> None:
    """Runs a connection step; closes the connection if it fails."""
    try:
        step()
    except BaseException:
        connection.close()
        raise


def _receive_exactly(connection: socket.socket, length: int) -> bytearray:
    received = bytearray(length)
    view = memoryview(received)
    while len(view):
        count = connection.recv_into(view)
        if not count:
            raise ConnectionResetError("the process has ended")
        view = view[count:]
    return received


def _path(directory: pathlib.Path, rank: int) -> str:
    return str(directory / f"{rank}.socket")


class _ShortPaths:
    """A directory whose sockets have short paths: a socket path has at most 107 bytes."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._file = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> _ShortPaths:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def place(self, rank: int) -> str:
        """Returns the name of a process's socket."""
        return f"/proc/self/fd/{self._file}/{rank}.socket"


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _addresses(host: str) -> Sequence[str]:
    """Returns the addresses of a machine, by number."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def _family(host: str) -> socket.AddressFamily:
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]


def _warn_of_open_ports(current_job: job.Job) -> None:
    machines = ", ".join(sorted({_split(address)[0] for address in current_job.addresses}))
    proof = (
        f"processes prove that they know {KEY}"
        if os.environ.get(KEY)
        else f"without a key all users of these machines can send it wrong arrays. Set {KEY} to one secret for all "
        "processes"
    )
    log.warning(
        f"Process {current_job.rank} of a job over several machines listens at "
        f"{current_job.addresses[current_job.rank]}, for {machines} only; nothing is encrypted, {proof}"
    )
