"""Where the processes of a job on one machine find each other, if nothing says their addresses.

Each writes its address to a file named by its rank, in a directory of the user's own, and holds the file's `flock`
while it lives: what an ended job has left there counts for nothing.
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

from tf_ipu_shim.machine import private_files
from tf_ipu_shim.runtime import job

WAIT_SECONDS = 120
_HOST = "127.0.0.1"
_POLL_SECONDS = 0.05
_LOCK_SECONDS = 2


class MeetingError(RuntimeError):
    """Processes of a job that do not find each other."""


def meet(here: job.Job) -> tuple[str, ...]:
    """Takes a port on this machine, and waits for the other processes' addresses.

    Args:
        here: the job, all of it on this machine.

    Returns:
        `host:port` of each process, by rank.

    Raises:
        MeetingError: another process has this rank, or one does not come.

    Example:
        >>> import uuid
        >>> len(meet(job.Job(uuid.uuid4().hex, rank=0, size=1, local_rank=0, local_size=1)))
        1
    """
    directory = _directory(here.name)
    _say(directory, here.rank)
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        found = [_read(directory / str(rank)) for rank in range(here.size)]
        if all(found):
            return tuple(found)
        if time.monotonic() > deadline:
            missing = ", ".join(str(rank) for rank, address in enumerate(found) if not address)
            raise MeetingError(
                f"Of the {here.size} processes of this job, those of rank {missing} were not found in "
                f"{WAIT_SECONDS} s. Start all of them, with the same TF_IPU_SHIM_JOB where no launcher names it."
            )
        time.sleep(_POLL_SECONDS)


def free_addresses(hosts: Sequence[str]) -> list[str]:
    """Ports of this machine that nobody listens at.

    Args:
        hosts: addresses or names of this machine.

    Returns:
        `host:port` for each.

    Raises:
        OSError: a host is not this machine.

    Example:
        >>> len(set(free_addresses(["127.0.0.1", "127.0.0.1"])))
        2
    """
    with contextlib.ExitStack() as until_all_have_one:
        taken = [until_all_have_one.enter_context(socket.socket()) for _ in hosts]
        for one, host in zip(taken, hosts):
            one.bind((host, 0))
        return [f"{host}:{one.getsockname()[1]}" for one, host in zip(taken, hosts)]


def _say(directory: pathlib.Path, rank: int) -> None:
    file = private_files.open_own(directory / str(rank), os.O_RDWR | os.O_CREAT)
    deadline = time.monotonic() + _LOCK_SECONDS  # another may be looking at it for a moment
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(file)
                raise MeetingError(
                    f"Two processes of this job have rank {rank}. Give each its own TF_IPU_SHIM_RANK."
                ) from None
            time.sleep(_POLL_SECONDS)
    os.ftruncate(file, 0)
    (address,) = free_addresses([_HOST])
    os.pwrite(file, f"{address}\n".encode(), 0)  # and the file stays open as long as the process lives


def _read(path: pathlib.Path) -> str:
    """The address in a file whose writer lives; empty where there is none."""
    try:
        file = private_files.open_own(path, os.O_RDONLY)
    except FileNotFoundError:
        return ""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return ""
    except BlockingIOError:
        text = os.pread(file, 256, 0).decode()
        return text.strip() if text.endswith("\n") else ""
    finally:
        os.close(file)


def _directory(name: str) -> pathlib.Path:
    """The job's directory, where no other user can put anything."""
    base = pathlib.Path(tempfile.gettempdir()) / f"tf-ipu-shim-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    status = base.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{base} must belong to you alone: processes of a job meet there. Remove it.")
    directory = base / f"job-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    directory.mkdir(mode=0o700, exist_ok=True)
    return directory
