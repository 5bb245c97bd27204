"""Builds the C++ plugin against the installed TensorFlow and caches the library.

A library fits only one TensorFlow build (C++ ABI). So its file name has a digest of all its inputs: TensorFlow's
version and git version, the platform, the flags, the sources and the compiler. Python's version is not part of it: the
plugin does not link against Python. Within the package, neither the compiler nor glibc counts: the wheel's tag says
which systems can use the library. `CXX` requests a compiler, so no such library is used.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import platform
import types
from collections.abc import Iterable, Sequence

from tf_ipu_shim import errors
from tf_ipu_shim.plugin import (
    build_processes,
    cache,
    compiler,
    private_symbols,
    progress,
    translation_units,
)

SOURCE_DIRECTORY = compiler.SOURCE_DIRECTORY


@dataclasses.dataclass(frozen=True)
class TensorFlowBuild:
    """Properties of the TensorFlow that the plugin is compiled against.

    Args:
        version: such as ``"2.15.1"``.
        git_version: distinguishes two builds of one version.
        compile_flags: include path, C++ standard and ABI.
        link_flags: the libraries the plugin links to; they are in the process already when the plugin is loaded.
    """

    version: str
    git_version: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    @classmethod
    def installed(cls) -> TensorFlowBuild:
        """Returns the TensorFlow of this process; checked on 2.15.1 and 2.21.0."""
        import tensorflow as tf

        return cls(
            version=tf.version.VERSION,
            git_version=tf.version.GIT_VERSION,
            compile_flags=tuple(tf.sysconfig.get_compile_flags()),
            link_flags=(*tf.sysconfig.get_link_flags(), "-l:libtensorflow_cc.so.2"),
        )


def ensure_built(
    sources: Sequence[str | os.PathLike[str]] | None = None,
    *,
    rebuild: bool = False,
    directory: pathlib.Path | None = None,
    tensorflow: TensorFlowBuild | None = None,
) -> pathlib.Path:
    """Returns the plugin's library for the installed TensorFlow, compiling it if no intact one is in the cache.

    Two processes that need the library at once build it once; the second waits. A cache file that is cut short or
    changed is rebuilt. If the first directory is not writable, the next is used (see `cache.cache_directories`). A copy
    is kept in a checkout (see `cache.copy_to_cache`), unless a compiler is asked for, as for a sanitizer.

    Example:
        >>> ensure_built().suffix
        '.so'
    """
    library = _found_or_built(_source_files(sources), tensorflow or TensorFlowBuild.installed(), directory, rebuild)
    if directory is None and not compiler.is_chosen():
        cache.copy_to_cache(library)
    return library


def _found_or_built(
    files: Sequence[pathlib.Path], tensorflow: TensorFlowBuild, directory: pathlib.Path | None, rebuild: bool
) -> pathlib.Path:
    if reason := platform_error():
        raise errors.PluginError(f"The IPU plugin cannot be built here: {reason}.")
    command = compiler.find_compiler()
    if not rebuild:
        library = _find_library(tensorflow, files, command)
        if library is not None:
            return library
    if command is None:
        raise errors.PluginError(compiler.missing_compiler_message())
    name = f"{_library_stem(tensorflow, files)}-{command.digest}.so"
    if directory == cache.PREBUILT_DIRECTORY:
        name = _shipped_name(tensorflow, files)
    directory = cache.first_writable_directory([directory] if directory else cache.cache_directories())
    with cache.build_lock(
        directory, name, lambda: progress.write("Waiting for another process to build the IPU plugin ...\n")
    ):
        library = (
            None if rebuild else cache.find_library(name)
        )  # Another process may have built it while this one waited.
        return library or _build(files, tensorflow, command, directory / name)


def platform_error() -> str:
    """Returns the error if the system is not Linux with glibc; empty if it is.

    Example:
        >>> platform_error()
        ''
    """
    if platform.system() == "Linux" and platform.libc_ver()[0]:
        return ""
    return (
        f"it is made for TensorFlow on Linux with glibc, and this is {platform.system()}. Run scripts in a Linux "
        "container, on x86-64 or ARM: `docker build -t tf_ipu_shim .` in a checkout of tf_ipu_shim"
    )


def find_library() -> pathlib.Path | None:
    """Returns the library that `ensure_built` would return without building it; None if there is none."""
    return _find_library(TensorFlowBuild.installed(), _source_files(None), compiler.find_compiler())


def _find_library(
    tensorflow: TensorFlowBuild, files: Sequence[pathlib.Path], command: compiler.Compiler | None
) -> pathlib.Path | None:
    if not compiler.is_chosen():
        shipped = cache.find_library(_shipped_name(tensorflow, files))
        if shipped is not None:
            return shipped
    stem = _library_stem(tensorflow, files)
    return (
        cache.find_library_of_any_compiler(stem)
        if command is None
        else cache.find_library(f"{stem}-{command.digest}.so")
    )


def _library_stem(tensorflow: TensorFlowBuild, files: Sequence[pathlib.Path]) -> str:
    return f"ipu-plugin-tf{tensorflow.version}-{_digest(tensorflow, files, platform.libc_ver())}"


def _shipped_name(tensorflow: TensorFlowBuild, files: Sequence[pathlib.Path]) -> str:
    return f"ipu-plugin-tf{tensorflow.version}-{_digest(tensorflow, files)}.so"


def _build(
    files: Sequence[pathlib.Path],
    tensorflow: TensorFlowBuild,
    command: compiler.Compiler,
    target: pathlib.Path,
) -> pathlib.Path:
    sources = [file for file in files if file.suffix == ".cc" and file.name != private_symbols.PROGRAM]
    title = f"Building the IPU plugin for TensorFlow {tensorflow.version}, once"
    try:
        with contextlib.ExitStack() as building:
            building.enter_context(build_processes.cleaned_up_at_signals())
            scratch = building.enter_context(cache.scratch_path(target))
            _message_headers().write(scratch)
            own, system = compiler.include_directories(sources, tensorflow.compile_flags, scratch)
            units = translation_units.divide(sources, translation_units.unit_count(), [*own, *system])
            seconds = translation_units.expected_seconds(units)
            shown = building.enter_context(progress.BuildProgress(title, len(sources), seconds))
            library = compiler.compile_library(
                command,
                [unit.sources for unit in units],
                tensorflow.compile_flags,
                tensorflow.link_flags,
                scratch,
                shown.compiled,
                translation_units.has_memory(len(units)),
            )
            private_symbols.check(command, files, library, tensorflow.link_flags)
            cache.publish_library(library, target)
            shown.finished(str(target))
    except OSError as error:
        raise errors.PluginError(
            f"The IPU plugin cannot be written to {target.parent}: {error}. Free space there or change its "
            "permissions, or set "
            f"{cache.ENVIRONMENT_VARIABLE} to a directory that can be written."
        ) from error
    return target


def _source_files(sources: Iterable[str | os.PathLike[str]] | None) -> list[pathlib.Path]:
    if sources is None:
        files = sorted(path for path in SOURCE_DIRECTORY.rglob("*") if path.suffix in (".cc", ".h"))
    else:
        files = [pathlib.Path(source) for source in sources]
    if not any(file.suffix == ".cc" for file in files):
        raise errors.PluginError(
            f"There is no C++ source to build the IPU plugin from (looked in {SOURCE_DIRECTORY}). "
            "The installation is incomplete: install tf_ipu_shim again."
        )
    return files


def _message_headers() -> types.ModuleType:
    """Imports what needs protobuf, which TensorFlow brings: `tf-ipu doctor` also runs without it."""
    from tf_ipu_shim.plugin import message_headers

    return message_headers


def _digest(tensorflow: TensorFlowBuild, files: Sequence[pathlib.Path], libc: tuple[str, ...] = ()) -> str:
    """Sixteen digits that differ if a library built from one of two inputs must not be used for the other."""
    # Paths are left out: environments with the same TensorFlow share one library.
    flags = [flag for flag in tensorflow.compile_flags + tensorflow.link_flags if not flag.startswith(("-I", "-L"))]
    parts = [tensorflow.git_version, *flags, platform.system(), platform.machine(), *libc]
    digest = hashlib.sha256("\0".join([*parts, *compiler.FLAGS]).encode())
    for name, content in _message_headers().headers().items():
        digest.update(f"\0{name}\0{content}".encode())
    for file in files:
        digest.update(b"\0" + file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]
