"""Builds the Poplar libraries once and keeps them in the plugin's cache, in a folder that Makefiles can name.

    python -m tf_ipu_shim.poplar_sdk.toolchain.build      builds and prints the folder

The folder has `lib/libpoplar.so` and so on, `include/`, `bin/popc`, a pkg-config file and a CMake package. Its name has
a digest of every input. A library is linked from object files, which are kept by their sources and included headers.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Sequence

from tf_ipu_shim import errors
from tf_ipu_shim.machine.sharing import private_files
from tf_ipu_shim.plugin import build_processes, cache, compiler, progress, translation_units
from tf_ipu_shim.poplar_sdk.toolchain import option_headers, prefix_files, sources

SUBJECT = "The Poplar runtime"
OLDEST_COMPILER = 12
_OBJECT_DIRECTORY = "poplar-objects"
_KEPT_SECONDS = 7 * 24 * 3600
# Of one core at 2 to 3 GHz.
_SECONDS_A_UNIT, _SECONDS_A_BYTE = 2.0, 1.2e-4


def ensure_built(directory: pathlib.Path | None = None) -> pathlib.Path:
    """Returns the folder of the libraries; compiles missing or damaged ones."""
    prefix = find_prefix(directory)
    if not missing_libraries(prefix):
        return prefix
    command = find_compiler()
    waiting = "Waiting for another process to build the Poplar runtime ...\n"
    with cache.build_lock(prefix.parent, prefix.name, lambda: progress.write(waiting)):
        if missing_libraries(prefix):
            _build(command, prefix)
    return prefix


def find_compiler() -> compiler.Compiler:
    """Returns the compiler; if it is missing, an error says what to install."""
    command = compiler.find_compiler()
    if command is None:
        reason = "The Poplar libraries and codelets must be compiled"
        raise errors.PluginError(compiler.missing_compiler_message(reason, OLDEST_COMPILER))
    return command


def find_prefix(directory: pathlib.Path | None = None) -> pathlib.Path:
    """Returns the folder that `ensure_built` fills; its headers, `popc` and text files already exist."""
    places = [directory] if directory else cache.cache_directories()
    parent = cache.first_writable_directory(places, "Poplar runtime")
    found = compiler.find_compiler()
    inputs = [found.digest if found else "", sys.executable, str(sources.ROOT)]
    prefix = parent / f"poplar-{sources.digest_of_all(inputs)}"
    prefix.mkdir(mode=0o700, exist_ok=True)
    if reason := private_files.distrust_of_directory(prefix):
        raise errors.PluginError(
            f"{SUBJECT} cannot be used: {prefix} is not safe to load libraries from, because {reason}. Delete it."
        )
    if not (prefix / prefix_files.LAST_WRITTEN).exists():
        prefix_files.write(prefix)
    return prefix


def missing_libraries(prefix: pathlib.Path) -> list[str]:
    """Names of the libraries that are missing in the folder, or differ from the published ones."""
    return [
        library
        for library in sources.library_names()
        if not cache.is_intact(prefix / "lib" / sources.file_name(library))
    ]


def _build(command: compiler.Compiler, prefix: pathlib.Path) -> None:
    (prefix / "lib").mkdir(mode=0o700, exist_ok=True)
    kept = prefix.parent / _OBJECT_DIRECTORY
    kept.mkdir(mode=0o700, exist_ok=True)
    names = sources.library_names()
    units = {name: [_Unit.of(kept, unit, command) for unit in sources.units_of(name)] for name in names}
    missing = [unit for unit in itertools.chain(*units.values()) if not cache.is_intact(unit.object_file)]
    missing.sort(key=lambda unit: unit.seconds, reverse=True)  # the longest first: cores end together
    files = sum(len(unit.sources) for unit in missing)
    try:
        with (
            build_processes.cleaned_up_at_signals(),
            progress.BuildProgress(
                "Building the Poplar runtime, once", max(1, files), _expected_seconds(missing), SUBJECT
            ) as shown,
            cache.scratch_path(prefix) as scratch,
        ):
            _compile(command, missing, scratch, shown.compiled)
            for name in names:
                _link(command, name, [unit.object_file for unit in units[name]], prefix, scratch)
            shown.finished(str(prefix))
    except OSError as error:
        raise errors.PluginError(
            f"{SUBJECT} cannot be written to {prefix}: {error}. Free space there or change its permissions, or set "
            f"{cache.ENVIRONMENT_VARIABLE} to a directory that can be written."
        ) from error
    _forget_old(prefix)


@dataclasses.dataclass(frozen=True)
class _Unit:
    """Sources that are compiled together, and the place of their object file."""

    sources: list[pathlib.Path]
    object_file: pathlib.Path

    @classmethod
    def of(cls, kept: pathlib.Path, unit: list[pathlib.Path], command: compiler.Compiler) -> _Unit:
        """Returns the unit with its object file's place among those that are `kept`."""
        return cls(unit, kept / f"{unit[0].stem}-{sources.object_digest(unit, command.digest)}.o")

    @property
    def seconds(self) -> float:
        """The seconds that a core needs."""
        return _SECONDS_A_UNIT + sum(file.stat().st_size for file in self.sources) * _SECONDS_A_BYTE


def _expected_seconds(units: Sequence[_Unit]) -> float:
    work = sum(unit.seconds for unit in units)
    share = min(1.0, translation_units.cores() / (1 + os.getloadavg()[0]))
    return 1.0 + work / translation_units.cores() / share


def _compile(
    command: compiler.Compiler, missing: Sequence[_Unit], scratch: pathlib.Path, compiled: Callable[[int], None]
) -> None:
    """Compiles one unit on each core at a time, and stores each object when it is compiled."""
    option_headers.write(scratch)
    flags = [*sources.library_flags(), *sources.include_flags(), f"-I{scratch}"]

    def compile_one(unit: _Unit) -> None:
        made = scratch / unit.object_file.name
        text = made.with_suffix(".cc")
        text.write_text("".join(f'#include "{source.resolve()}"\n' for source in unit.sources))
        names = ", ".join(f"{source.parent.name}/{source.name}" for source in unit.sources)
        compiler.run_command([*command.command, *flags, "-c", str(text), "-o", str(made)], names, SUBJECT)
        cache.publish_library(made, unit.object_file)
        compiled(len(unit.sources))

    build_processes.map_in_parallel(compile_one, missing, translation_units.cores())


def _link(
    command: compiler.Compiler,
    library: str,
    objects: Sequence[pathlib.Path],
    prefix: pathlib.Path,
    scratch: pathlib.Path,
) -> None:
    """Links one library against those before it; a function that none of them has is an error here."""
    folder = prefix / "lib"
    name = sources.file_name(library)
    names = sources.library_names()
    before = [f"-l:{sources.file_name(other)}" for other in names[: names.index(library)]]
    empty = scratch / "empty.cc"
    empty.touch()
    words = [
        *(*command.command, "-shared", "-Wl,-z,defs", "-Wl,--as-needed", f"-Wl,-soname,{name}", "-Wl,-rpath,$ORIGIN"),
        *(["-fPIC", str(empty)] if not objects else map(str, objects)),
        *(f"-L{folder}", *reversed(before), "-pthread", "-ldl", "-o", str(scratch / name)),
    ]
    compiler.run_command(words, f"linking {name}", SUBJECT)
    cache.publish_library(scratch / name, folder / name)


def _forget_old(prefix: pathlib.Path) -> None:
    """Removes object files and folders of other sources that nothing used for a week."""
    limit = time.time() - _KEPT_SECONDS
    with contextlib.suppress(OSError):
        for path in [*prefix.parent.glob("poplar-*"), *(prefix.parent / _OBJECT_DIRECTORY).glob("*.o")]:
            if path in (prefix, prefix.parent / _OBJECT_DIRECTORY) or path.lstat().st_mtime > limit:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def main() -> int:
    """Builds the libraries and prints their folder."""
    try:
        print(ensure_built())
    except errors.PluginError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
