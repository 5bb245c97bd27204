"""Lets the processes of a job on one machine find each other (rendezvous in a directory).

Each listens at a socket in a directory of the user. It writes a file named by its rank, and holds the file's `flock`
while it lives. Files of an ended job do not count.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import socket
import tempfile
import time
from collections.abc import Sequence

from tf_ipu_shim.machine.sharing import private_files
from tf_ipu_shim.runtime.jobs import job

WAIT_SECONDS = 120
_LISTENS = b"listens\n"
_POLL_SECONDS = 0.05
_LOCK_SECONDS = 2


class RendezvousError(RuntimeError):
    """Processes of a job that cannot find each other."""


def directory_of(current_job: job.Job) -> pathlib.Path:
    """Returns the job's private directory on this machine."""
    return _directory(current_job.name)


def wait_for_all(current_job: job.Job, directory: pathlib.Path, file: int) -> None:
    """Announces that this process listens and waits for all others."""
    os.pwrite(file, _LISTENS, 0)
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        missing = [str(rank) for rank in range(current_job.size) if not _listens(directory / str(rank))]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise RendezvousError(
                f"Of the {current_job.size} processes of this job, those of rank {', '.join(missing)} were not found "
                f"in {WAIT_SECONDS} s. Start all of them, with the same TF_IPU_SHIM_JOB where no launcher names it."
            )
        time.sleep(_POLL_SECONDS)


def free_addresses(hosts: Sequence[str]) -> list[str]:
    """Returns unused ports of this machine.

    Example:
        >>> len(set(free_addresses(["127.0.0.1", "127.0.0.1"])))
        2
    """
    with contextlib.ExitStack() as until_all_have_one:
        sockets = [until_all_have_one.enter_context(socket.socket()) for _ in hosts]
        for sock, host in zip(sockets, hosts):
            sock.bind((host, 0))
        return [f"{host}:{sock.getsockname()[1]}" for sock, host in zip(sockets, hosts)]


def lock_rank(directory: pathlib.Path, rank: int) -> int:
    """Claims a rank for this process, as long as it lives."""
    file = private_files.open_own(directory / str(rank), os.O_RDWR | os.O_CREAT)
    deadline = time.monotonic() + _LOCK_SECONDS  # another may be looking at it for a moment
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(file)
                raise RendezvousError(
                    f"Two processes of this job have rank {rank}; ranks must be unique. Set another "
                    "TF_IPU_SHIM_RANK for each."
                ) from None
            time.sleep(_POLL_SECONDS)
    os.ftruncate(file, 0)
    return file


def _listens(path: pathlib.Path) -> bool:
    """Returns whether a file announces a live listener."""
    try:
        file = private_files.open_own(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return os.pread(file, len(_LISTENS), 0) == _LISTENS
    finally:
        os.close(file)


def _directory(name: str) -> pathlib.Path:
    """Returns the job's directory, in which no other user can create files."""
    base = pathlib.Path(tempfile.gettempdir()) / f"tf-ipu-shim-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(
            f"{base} must belong only to you: processes of a job use it for their rendezvous. Remove it."
        )
    directory = base / f"job-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory
