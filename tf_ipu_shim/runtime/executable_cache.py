"""Reads and writes the executable cache directory (`--executable_cache_path`).

A file begins with a mark and the digest of the rest, so a truncated or changed file is noticed. It gets its name when
it is complete. If the directory or a file cannot be used, the program is compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import tempfile
import threading

from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.machine.sharing import private_files
from tf_ipu_shim.runtime import log

SUFFIX = ".ipu_program"
_MARK = b"tf_ipu_shim cached program 1\n"
_lock = threading.Lock()
_directories: dict[str, CacheDirectory | None] = {}


class CacheDirectory:
    """A readable cache directory; writes may fail."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self._writable = True

    def file_of(self, key: bytes) -> pathlib.Path:
        """Returns the file of a key."""
        return self.path / f"{hashlib.sha256(key).hexdigest()[:32]}{SUFFIX}"

    def read(self, key: bytes) -> bytes | None:
        """Returns the trusted content under a key, or None."""
        path = self.file_of(key)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                reason = private_files.distrust_of_file(os.fstat(handle))
                content = b"" if reason else _read_all(handle)
            finally:
                os.close(handle)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning(f"Executable cache: {path} cannot be read ({error.strerror}).")
            return None
        digest, payload = content[len(_MARK) : len(_MARK) + 32], content[len(_MARK) + 32 :]
        if not reason and (not content.startswith(_MARK) or hashlib.sha256(payload).digest() != digest):
            reason = "is broken"
        if reason:
            log.warning(f"Executable cache: {path} is not used: it {reason}.")
            return None
        return payload

    def write(self, key: bytes, content: bytes) -> pathlib.Path | None:
        """Stores content under a key."""
        if not self._writable:
            return None
        path, temporary = self.file_of(key), ""
        try:
            handle, temporary = tempfile.mkstemp(
                prefix=".writing_", dir=self.path
            )  # only the user may read or write it
            with open(handle, "wb") as file:
                file.write(_MARK + hashlib.sha256(content).digest() + content)
            os.replace(temporary, path)
        except OSError as error:
            self._writable = False
            log.warning(f"Executable cache: nothing can be written to {self.path} ({error.strerror}).")
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            return None
        return path


def current() -> CacheDirectory | None:
    """Returns the configured cache directory, or None."""
    setting = flags.current().executable_cache_path
    if not setting:
        return None
    path = os.path.abspath(os.path.expanduser(setting))
    with _lock:
        if path not in _directories or not os.path.isdir(path):
            _directories[path] = _opened(pathlib.Path(path))
        return _directories[path]


def _read_all(handle: int) -> bytes:
    with open(handle, "rb", closefd=False) as file:
        return file.read()


def _opened(path: pathlib.Path) -> CacheDirectory | None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        reason = private_files.distrust_of_directory(path)
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        log.warning(
            f"Executable cache: {path} is not used: {reason}. Give --executable_cache_path a directory that you own "
            "and no other user may write to (chmod go-w)."
        )
        return None
    return CacheDirectory(path)
