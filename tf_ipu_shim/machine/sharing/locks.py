"""Locks chips between threads and between processes of one user.

Each IPU has a file; anyone who holds the file's `flock` has the IPU. The kernel lets go of it when the holder dies.
The file's content (process, command, start time) is only for people: it is valid while a process holds the lock.

Several chips are taken together under one short guard lock. So two processes cannot block each other, and a query of
the holders is never mistaken for a holder.

A lock belongs to the open file, which a forked child shares with its parent. A child that outlived its parent would
keep the chips busy, and a child that unlocked would free them. So a child closes its copies at once, which does
neither, and no fork happens while locks are being taken.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import json
import os
import pathlib
import stat
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable, Iterator

from tf_ipu_shim.errors import ShimError
from tf_ipu_shim.machine.sharing import private_files

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_LOCK_DIR"
GUARD_TIMEOUT_SECONDS = 10.0


class LockDirectoryError(ShimError, OSError):
    """The directory of the lock files cannot be used; the message names the variable to set."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Holder:
    """The user of an IPU."""

    pid: int
    """Process id; 0 if the holder did not write it."""
    command: str
    """Its command line."""
    since: float
    """When it attached, seconds since 1970."""
    device_id: int
    """Poplar device through which it holds the IPU."""


class ChipLocks:
    """Some chips, taken together. `release()` frees them; so does the end of the object or the process."""

    def __init__(self, files: list[int]) -> None:
        """Stores open files whose locks this process has; only `take` calls it."""
        self._files = files
        _live.add(self)

    @property
    def held(self) -> bool:
        """Returns whether this process holds the chips still."""
        return bool(self._files)

    def release(self) -> None:
        """Releases the chips. A second call, or a call in a forked child, does nothing."""
        with _process_lock.lock:
            files, self._files = self._files, []
            for file in files:
                with contextlib.suppress(OSError):
                    os.ftruncate(file, 0)
            _unlock(files)

    def __del__(self) -> None:
        """Frees the chips of an object that was lost."""
        if not sys.is_finalizing():
            self.release()


class _ProcessLock:
    """Guards locking and unlocking; re-entrant, as garbage collection in between may release locks."""

    def __init__(self) -> None:
        self.lock = threading.RLock()


_process_lock = _ProcessLock()
_live: weakref.WeakSet[ChipLocks] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    _process_lock.lock = threading.RLock()
    for locks in list(_live):
        files, locks._files = locks._files, []
        for file in files:
            os.close(file)


os.register_at_fork(
    before=lambda: _process_lock.lock.acquire(),
    after_in_parent=lambda: _process_lock.lock.release(),
    after_in_child=_after_fork_in_child,
)


def directory(system_name: str) -> pathlib.Path:
    """Returns the directory of a system's chip locks: the user's, or under `TF_IPU_SHIM_LOCK_DIR`."""
    root = os.environ.get(ENVIRONMENT_VARIABLE)
    base = pathlib.Path(root) if root else pathlib.Path(tempfile.gettempdir()) / f"tf_ipu_shim-{os.getuid()}"
    return base / "".join(c if c.isalnum() or c in "-_." else "_" for c in system_name)


def take(system_name: str, ipus: Iterable[int], device_id: int) -> ChipLocks | None:
    """Locks all of these IPUs, or none."""
    folder = directory(system_name)
    _make_private(folder)
    holder = Holder(pid=os.getpid(), command=_command_line(), since=time.time(), device_id=device_id)
    record = json.dumps(dataclasses.asdict(holder)).encode()
    with _guard(folder):
        files: list[int] = []
        try:
            for ipu in sorted(set(ipus)):
                file = private_files.open_own(_path(folder, ipu), os.O_RDWR | os.O_CREAT)
                files.append(file)
                if not _try_lock(file):
                    _unlock(files)
                    return None
            for file in files:
                os.ftruncate(file, 0)
                os.pwrite(file, record, 0)
        except BaseException:
            _unlock(files)
            raise
        return ChipLocks(files)


def holders(system_name: str, num_ipus: int) -> dict[int, Holder]:
    """Returns the current holder of each IPU; free IPUs are left out."""
    folder = directory(system_name)
    try:
        if not (folder / "guard.lock").exists():
            return {}
    except OSError as error:
        raise _unusable(folder, error) from error
    holder_of = {}
    with _guard(folder):
        for ipu in range(num_ipus):
            try:
                file = private_files.open_own(_path(folder, ipu), os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                if not _try_lock(file):
                    holder_of[ipu] = _read(os.pread(file, 1 << 16, 0))
            finally:
                _unlock([file])
    return holder_of


def _path(folder: pathlib.Path, ipu: int) -> pathlib.Path:
    return folder / f"ipu{ipu}.lock"


def _read(record: bytes) -> Holder:
    try:
        return Holder(**json.loads(record))
    except (ValueError, TypeError):
        return Holder(pid=0, command="", since=0.0, device_id=-1)


def _unlock(files: list[int]) -> None:
    for file in files:
        # Only closing it would leave the lock to a copy that a subprocess has for a moment between fork and exec.
        fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def _guard(folder: pathlib.Path) -> Iterator[None]:
    with _process_lock.lock:
        try:
            file = private_files.open_own(folder / "guard.lock", os.O_RDONLY | os.O_CREAT)
        except OSError as error:
            raise _unusable(folder, error) from error
        try:
            deadline = time.monotonic() + GUARD_TIMEOUT_SECONDS
            while not _try_lock(file):
                if time.monotonic() > deadline:
                    raise LockDirectoryError(
                        errno.ETIMEDOUT,
                        f"Another process has been looking for free IPUs in {folder} for {GUARD_TIMEOUT_SECONDS:g} s, "
                        f"which normally takes a moment; it is probably stopped. Continue or end it, or set "
                        f"{ENVIRONMENT_VARIABLE} to a directory of this process's own.",
                    )
                time.sleep(0.001)
            yield
        except OSError as error:
            if isinstance(error, LockDirectoryError):
                raise
            raise _unusable(folder, error) from error
        finally:
            _unlock([file])


def _make_private(folder: pathlib.Path) -> None:
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The shared temporary directory is anybody's to write to: a name we would use may be somebody else's trap.
        if not os.environ.get(ENVIRONMENT_VARIABLE):
            _check_own(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        _check_own(folder)
    except OSError as error:
        raise _unusable(folder, error) from error


def _check_own(folder: pathlib.Path) -> None:
    status = folder.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise PermissionError(errno.EACCES, "it is a symbolic link, which is not followed", str(folder))
    if status.st_uid != os.getuid():
        raise PermissionError(errno.EACCES, "it belongs to another user", str(folder))
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(errno.EACCES, "others may write to it (chmod go-w)", str(folder))


def _unusable(folder: pathlib.Path, error: OSError) -> LockDirectoryError:
    reason = error.strerror or str(error)
    where = f" ({error.filename})" if error.filename and str(error.filename) != str(folder) else ""
    return LockDirectoryError(
        error.errno,
        f"IPUs are shared between processes through lock files in {folder}, which cannot be used: {reason}{where}. Set "
        f"{ENVIRONMENT_VARIABLE} to a directory that this process may write to.",
    )


def _command_line() -> str:
    try:
        words = pathlib.Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return " ".join(word.decode(errors="replace") for word in words)[:4096]
    except OSError:
        return " ".join(sys.argv)[:4096]
