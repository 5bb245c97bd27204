"""Stores built plugin libraries: trusted directories, locking between processes, integrity checks.

A library ends in a mark with the digest of the bytes before it. ELF ignores bytes after its last section, and a file
that was cut short or changed has no valid mark. So one rename publishes library and proof together.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator

from tf_ipu_shim import errors
from tf_ipu_shim.machine.sharing import private_files

if sys.platform != "win32":
    import fcntl

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_PLUGIN_CACHE_DIR"
_MARK = b"\ntf_ipu_shim sha256 "
PREBUILT_DIRECTORY = pathlib.Path(__file__).with_name("prebuilt")
"""The environment that the package was installed into."""
KEPT_DIRECTORY = pathlib.Path(__file__).with_name("kept")
"""A copy of the built library, only in a checkout: pip must know all files of an installed package."""
_SCRATCH = ".building-"
"""Begins the names of directories to build in; the library's name and a random part follow."""
_BUILD_BYTES = 16 << 20  # of object files and libraries, rounded up
_FOR_ALL_USERS = 0o755  # of files next to the package; the rest is one user's


def cache_directories() -> list[pathlib.Path]:
    """Returns the places a library may be built in, best first.

    Only ``TF_IPU_SHIM_PLUGIN_CACHE_DIR`` if it is set; else the user's cache directory (``XDG_CACHE_HOME`` or
    ``~/.cache``), then a directory of the user's below the temporary one.
    """
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        return [pathlib.Path(chosen).expanduser()]
    directories = []
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # The specification says to ignore a relative one.
        directories.append(pathlib.Path(base))
    else:
        with contextlib.suppress(RuntimeError):  # No home directory.
            directories.append(pathlib.Path.home() / ".cache")
    directories = [directory / "tf_ipu_shim" for directory in directories]
    return [*directories, pathlib.Path(tempfile.gettempdir()) / f"tf_ipu_shim-{os.getuid()}"]


def find_library(name: str) -> pathlib.Path | None:
    """Returns the intact library of this file name, or None. A library that is part of the package is used first."""
    for directory in _trusted_directories():
        path = directory / name
        if is_intact(path):
            return path
    return None


def find_library_of_any_compiler(stem: str) -> pathlib.Path | None:
    """Returns an intact library for the same TensorFlow and sources, whichever compiler made it, or None."""
    for directory in _trusted_directories():
        for path in sorted(directory.glob(f"{stem}-*.so")):
            if is_intact(path):
                return path
    return None


def _trusted_directories() -> Iterator[pathlib.Path]:
    """Directories from which libraries may be loaded, this package's own included."""
    yield PREBUILT_DIRECTORY
    directories = (
        cache_directories() if os.environ.get(ENVIRONMENT_VARIABLE) else [KEPT_DIRECTORY, *cache_directories()]
    )
    yield from (directory for directory in directories if not private_files.distrust_of_directory(directory))


def is_intact(path: pathlib.Path) -> bool:
    """Returns whether the file exists, belongs to this user, and has the published bytes."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, "rb") as opened:
            if path.parent != PREBUILT_DIRECTORY and private_files.distrust_of_file(os.fstat(file)):
                return False
            content = opened.read()
    except OSError:
        return False
    library, end_mark, digest = content.rpartition(_MARK)
    return bool(end_mark) and hashlib.sha256(library).hexdigest().encode() == digest


def publish_library(library: pathlib.Path, target: pathlib.Path) -> None:
    """Marks `library` and moves it to `target`, both on one file system: readers see the whole file or none."""
    if target.parent == PREBUILT_DIRECTORY:
        library.chmod(_FOR_ALL_USERS)
    content = library.read_bytes()
    with library.open("ab") as file:
        file.write(_MARK + hashlib.sha256(content).hexdigest().encode())
        file.flush()
        os.fsync(file.fileno())
    library.replace(target)


def copy_to_cache(library: pathlib.Path) -> None:
    """Puts a copy of a library into a checkout, as Python does with bytecode: processes with another `HOME` find it.

    Libraries of other sources for the same TensorFlow are deleted. No file is kept in a checkout that is another user's
    or read-only, or if `TF_IPU_SHIM_PLUGIN_CACHE_DIR` is set.
    """
    if library.parent in (PREBUILT_DIRECTORY, KEPT_DIRECTORY) or os.environ.get(ENVIRONMENT_VARIABLE):
        return
    with contextlib.suppress(OSError):
        package = KEPT_DIRECTORY.parent
        if not (package.parent.parent / "setup.cfg").is_file():
            return
        if package.stat().st_uid != os.getuid() or private_files.distrust_of_directory(package):
            return
        KEPT_DIRECTORY.mkdir(exist_ok=True)
        KEPT_DIRECTORY.chmod(_FOR_ALL_USERS)
        with tempfile.TemporaryDirectory(dir=KEPT_DIRECTORY) as scratch:
            copy = shutil.copyfile(library, pathlib.Path(scratch) / library.name)
            copy.chmod(_FOR_ALL_USERS)
            copy.replace(KEPT_DIRECTORY / library.name)
        version = "-".join(library.name.split("-")[:3])
        for cached_library in KEPT_DIRECTORY.glob(f"{version}-*.so"):
            if cached_library.name != library.name:
                cached_library.unlink()


def first_writable_directory(directories: Iterable[pathlib.Path], subject: str = "IPU plugin") -> pathlib.Path:
    """Returns the first of `directories` that can be written; made if it is missing."""
    reasons = []
    for directory in directories:
        try:
            if directory == PREBUILT_DIRECTORY:
                directory.mkdir(exist_ok=True)
                directory.chmod(_FOR_ALL_USERS)
            else:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                pass
            free = shutil.disk_usage(directory).free
        except OSError as error:
            reasons.append(f"  {directory}: {error.strerror or error}")
            continue
        if free < _BUILD_BYTES:
            reasons.append(f"  {directory}: {free >> 20} MiB are free, and a build needs {_BUILD_BYTES >> 20}")
            continue
        reason = "" if directory == PREBUILT_DIRECTORY else private_files.distrust_of_directory(directory)
        if not reason:
            return directory
        reasons.append(f"  {directory}: a library in it is not safe to load, because {reason}")
    raise errors.PluginError(
        f"There is no directory to keep the built {subject} in:\n"
        + "\n".join(reasons)
        + f"\nSet {ENVIRONMENT_VARIABLE} to a directory that this user alone can write."
    )


@contextlib.contextmanager
def scratch_path(target: pathlib.Path) -> Iterator[pathlib.Path]:
    """A directory next to `target` to build in, deleted afterwards, also when the build is interrupted.

    Directories that killed processes left are removed too, whichever target they were for.
    """
    _remove_leftovers(target)
    with tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{target.name}-", dir=target.parent) as directory:
        yield pathlib.Path(directory)


def _remove_leftovers(target: pathlib.Path) -> None:
    """Removes scratch directories whose lock no process holds, and those of `target`, whose lock the caller holds."""
    for leftover in target.parent.glob(f"{_SCRATCH}*"):
        name = leftover.name.removeprefix(_SCRATCH).rpartition("-")[0]
        if name == target.name:
            shutil.rmtree(leftover, ignore_errors=True)
            continue
        with contextlib.suppress(OSError), open(_lock_file(target.parent, name, os.O_WRONLY), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(leftover, ignore_errors=True)


@contextlib.contextmanager
def build_lock(directory: pathlib.Path, name: str, before_waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the right to build `name` there. The system frees it when the process ends, however it ends."""
    file = _lock_file(directory, name, os.O_WRONLY | os.O_CREAT)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            before_waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # A file system without locks: two builds at once cost time, but each publishes a whole file.
        yield
    finally:
        os.close(file)


def _lock_file(directory: pathlib.Path, name: str, flags: int) -> int:
    return private_files.open_own(directory / f"{name}.lock", flags)
