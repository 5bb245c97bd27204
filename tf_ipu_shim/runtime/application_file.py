"""Reads and writes compiled-application files: ZIP archives of data that nothing executes.

`executable.pb` is a `PoplarExecutableProto`, `weights/<n>` the row-major bytes of a tensor. No member is compressed. A
compressed member, or one longer than its tensor, is refused unread.
"""

from __future__ import annotations

import errno
import os
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from google.protobuf import message as protobuf

FORMAT = 1
SUFFIX = ".poplar_exec"
EXECUTABLE = "executable.pb"
_WEIGHTS = "weights/{}"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same application is the same bytes


def write(path: str, executable: Any, weights: Sequence[bytes]) -> str:
    """Writes an application atomically."""
    from tensorflow.compat.v2 import errors

    try:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        if not path:
            handle, path = tempfile.mkstemp(suffix=SUFFIX)
            os.close(handle)
        directory = os.path.dirname(os.path.abspath(path))
        handle, temporary = tempfile.mkstemp(prefix=".writing_", dir=directory)
    except OSError as error:
        raised = errors.NotFoundError if isinstance(error, FileNotFoundError) else errors.PermissionDeniedError
        raise raised(
            None,
            None,
            f"Failed to open file for writing: {path}: {error.strerror}. Name a file in an existing directory.",
        ) from error
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(EXECUTABLE, _EPOCH), executable.SerializeToString(deterministic=True))
            for index, values in enumerate(weights):
                archive.writestr(zipfile.ZipInfo(_WEIGHTS.format(index), _EPOCH), values)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path


def read(path: str) -> tuple[Any, list[bytes]]:
    """Reads an application."""
    with _opened(path) as archive:
        executable = _executable(path, archive)
        weights = [argument for argument in executable.program.arguments if argument.kind == argument.WEIGHTS]
        if sorted(argument.index for argument in weights) != list(range(len(weights))):
            raise _unreadable(path, "its weights are not numbered one by one")
        sizes = {argument.index: _bytes_of(path, argument.tensor) for argument in weights}
        return executable, [_member(path, archive, _WEIGHTS.format(index), sizes[index]) for index in sorted(sizes)]


def read_executable(path: str) -> Any:
    """Reads an application's `PoplarExecutableProto` without its weights."""
    with _opened(path) as archive:
        return _executable(path, archive)


@contextmanager
def _opened(path: str) -> Iterator[zipfile.ZipFile]:
    from tensorflow.compat.v2 import errors

    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (FileNotFoundError, IsADirectoryError) as error:
        raise errors.NotFoundError(
            None, None, f"There is no application {path!r}: {error.strerror}. Compile it first."
        ) from error
    except PermissionError as error:
        raise errors.PermissionDeniedError(
            None, None, f"Cannot read {path!r}: {error.strerror}. Check its permissions."
        ) from error
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise _unreadable(path, str(error)) from error


def _executable(path: str, archive: zipfile.ZipFile) -> Any:
    from tf_ipu_shim.messages import poplar_executable_pb2

    try:
        executable = poplar_executable_pb2.PoplarExecutableProto.FromString(_member(path, archive, EXECUTABLE))
    except protobuf.DecodeError as error:
        raise _unreadable(path, f"{EXECUTABLE} is no PoplarExecutableProto: {error}") from error
    if executable.format != FORMAT:
        raise _unreadable(path, f"it has format {executable.format}, and this release reads format {FORMAT}")
    return executable


def _member(path: str, archive: zipfile.ZipFile, name: str, size: int | None = None) -> bytes:
    try:
        info = archive.getinfo(name)
    except KeyError:
        raise _unreadable(path, f"it has no member {name}") from None
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise _unreadable(path, f"its member {name} is compressed")
    if size is not None and info.file_size != size:
        raise _unreadable(path, f"its member {name} has {info.file_size} bytes, and its tensor {size}")
    return archive.read(info)


def _bytes_of(path: str, tensor: Any) -> int:
    from tensorflow.compat.v2 import dtypes

    try:
        size = int(dtypes.as_dtype(tensor.data_type).size)
    except TypeError:
        raise _unreadable(path, f"{tensor.name} has an unknown type") from None
    for dimension in tensor.shape.dim:
        if dimension.size < 0:
            raise _unreadable(path, f"{tensor.name} has no fixed shape")
        size *= dimension.size
    return size


def _unreadable(path: str, reason: str) -> Exception:
    from tensorflow.compat.v2 import errors

    error: Exception = errors.InvalidArgumentError(
        None,
        None,
        f"{path!r} is not an application that can run here: {reason}. Compile it again with "
        "experimental_application_compile_op; executables of real IPUs cannot run on simulated ones.",
    )
    return error
