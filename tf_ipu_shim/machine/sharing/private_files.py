"""Checks that files and directories cannot have been written by another user.

Libraries that are loaded, programs that are run and files that are written must be the user's (or root's). A directory
that its group or other users may write to is not trusted, and neither is anything in it. In a sticky directory, such as
the shared temporary directory, no user can delete or replace another user's files.
"""

from __future__ import annotations

import errno
import os
import pathlib
import secrets
import stat

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def distrust_of_directory(path: str | os.PathLike[str]) -> str:
    """Returns why another user could have placed a file in a directory, or could replace the directory.

    Example:
        >>> distrust_of_directory("/")
        ''
    """
    last = pathlib.Path(os.path.abspath(path))
    for directory in _parents(last):
        try:
            status = directory.lstat()
        except OSError as error:
            return f"{directory}: {error.strerror}"
        reason = _distrust(status, is_last=directory == last)
        if reason:
            return f"{directory} {reason}"
    return "" if last.is_dir() else f"{last} is no directory"


def distrust_of_file(status: os.stat_result) -> str:
    """Returns why another user could have written an open file."""
    return _distrust(status, is_last=True) if stat.S_ISREG(status.st_mode) else "is no file"


def open_own(path: str | os.PathLike[str], flags: int) -> int:
    """Opens a file of the user's, made if it is missing and the flags say so; never through a symbolic link."""
    try:
        # A FIFO would have its opener wait for a writer.
        file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PermissionError(errno.EACCES, "it is a symbolic link, which is not followed", str(path)) from None
        raise
    status = os.fstat(file)
    reason = "is no file" if not stat.S_ISREG(status.st_mode) else ""
    if not reason and status.st_uid != os.getuid():
        reason = f"belongs to user {status.st_uid}, and this process is user {os.getuid()}"
    if reason:
        os.close(file)
        raise PermissionError(errno.EACCES, f"it {reason}", str(path))
    return file


def replace(path: pathlib.Path, content: bytes) -> None:
    """Writes a file atomically; a symbolic link in its place is replaced, and a failure leaves nothing."""
    unfinished = path.with_name(f".{secrets.token_hex(8)}.unfinished")
    file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(file, "wb") as opened:
            opened.write(content)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _parents(path: pathlib.Path) -> list[pathlib.Path]:
    """The directories that a path depends on: itself, its parents, and the directories of links."""
    directories = [*reversed(path.parents), path]
    real = pathlib.Path(os.path.realpath(path))
    return directories if real == path else [*directories, *reversed(real.parents), real]


def _distrust(status: os.stat_result, is_last: bool) -> str:
    if status.st_uid not in (os.getuid(), 0):
        return f"belongs to user {status.st_uid}, and this process is user {os.getuid()}"
    if stat.S_ISLNK(status.st_mode) or not status.st_mode & _OTHERS_WRITE:
        return ""
    if not is_last and status.st_mode & stat.S_ISVTX:
        return ""
    return "may be written to by others (chmod go-w)"
