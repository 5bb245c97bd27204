"""Runs the C++ compiler: compiles the sources as translation units in parallel and links the shared library.

Reading TensorFlow's headers costs seconds, so a unit for each source would be several times as slow. The sources are
written for it: names that are local to a file differ from the other files' names.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import pathlib
import shlex
import shutil
from collections.abc import Callable, Sequence

from tf_ipu_shim import errors
from tf_ipu_shim.plugin import build_processes

ENVIRONMENT_VARIABLE = "CXX"
FLAGS = ("-O2", "-fPIC", "-fvisibility-inlines-hidden")
SOURCE_DIRECTORY = pathlib.Path(__file__).resolve().with_name("csrc")
# KiB up to which g++ collects no garbage in its own memory: more than a unit needs. That saves 7 % of its time.
_WITHOUT_COLLECTIONS = ("--param", "ggc-min-heapsize=3000000")
_FAST_LINKER, _LINKER_OPTION = "gold", "-fuse-ld="
_SHOWN_ERROR_LINES = 12


@dataclasses.dataclass(frozen=True)
class Compiler:
    """A C++ compiler command, such as ``("/usr/bin/g++",)``, and a digest that changes when the program does."""

    command: tuple[str, ...]
    digest: str


def is_chosen() -> bool:
    """Whether ``CXX`` asks for a compiler; an empty value does not."""
    return bool(os.environ.get(ENVIRONMENT_VARIABLE))


def find_compiler() -> Compiler | None:
    """Returns the compiler named by ``CXX``, else ``g++``; None when it is not on the path."""
    setting = os.environ.get(ENVIRONMENT_VARIABLE, "")
    try:
        command = shlex.split(setting) or ["g++"]
    except ValueError as error:
        raise errors.PluginError(
            f"{ENVIRONMENT_VARIABLE} is {setting!r}, which cannot be split into words: {error}. Give a compiler and "
            "its options, quoted as in a shell."
        ) from None
    program = shutil.which(command[0])
    if program is None:
        return None
    real = os.path.realpath(program)
    status = os.stat(real)  # Size and time instead of asking for the version: that costs a process at every start.
    identity = "\0".join([real, str(status.st_size), str(status.st_mtime_ns), *command[1:]])
    return Compiler((program, *command[1:]), hashlib.sha256(identity.encode()).hexdigest()[:8])


def missing_compiler_message(
    reason: str = "The IPU plugin must be compiled once for this TensorFlow", oldest: int = 9
) -> str:
    """Returns a message: the `reason` for a compiler, the one that was tried, and what to install."""
    compiler = os.environ.get(ENVIRONMENT_VARIABLE) or "g++"
    return (
        f"{reason}, and the C++ compiler {compiler!r} was not found. "
        f"Install g++ {oldest} or newer (apt-get install g++, dnf install gcc-c++, or the conda package gxx). Or set "
        f"{ENVIRONMENT_VARIABLE} to a compiler that takes g++'s options."
    )


def include_directories(
    sources: Sequence[pathlib.Path], compile_flags: Sequence[str], directory: pathlib.Path
) -> tuple[list[pathlib.Path], list[pathlib.Path]]:
    """Returns the folders of the sources' headers: their own, `directory` for written ones, and the system's."""
    folders = {source.resolve().parent for source in sources}
    own = {folder.parent if folder.is_relative_to(SOURCE_DIRECTORY) else folder for folder in folders}
    # TensorFlow's headers as system headers: their warnings are none of ours.
    system = [pathlib.Path(flag[2:]) for flag in compile_flags if flag.startswith("-I")]
    return [*sorted(own), directory], system


def compile_library(
    compiler: Compiler,
    units: Sequence[Sequence[pathlib.Path]],
    compile_flags: Sequence[str],
    link_flags: Sequence[str],
    directory: pathlib.Path,
    compiled: Callable[[int], None] = lambda files: None,
    has_memory: bool = False,
) -> pathlib.Path:
    """Compiles `units`, and headers in `directory`, and links them to one shared library there.

    `compiled` is called with the number of files of each unit that is done. `has_memory`: whether each unit may use
    `translation_units.UNIT_BYTES_WITHOUT_COLLECTIONS`.
    """
    sources = [source for unit in units for source in unit]
    own, system = include_directories(sources, compile_flags, directory)
    flags = [*FLAGS, *(flag for flag in compile_flags if not flag.startswith("-I"))]
    flags += [*(f"-isystem{folder}" for folder in system), *(f"-I{folder}" for folder in own)]
    flags += _WITHOUT_COLLECTIONS if has_memory else ()

    def compile_unit(numbered: tuple[int, Sequence[pathlib.Path]]) -> str:
        index, part = numbered
        unit = directory / f"plugin{index}.cc"
        unit.write_text("".join(f'#include "{source.resolve()}"\n' for source in part))
        object_file = str(unit.with_suffix(".o"))
        names = ", ".join(source.name for source in part)
        run_command([*compiler.command, *flags, "-c", str(unit), "-o", object_file], names)
        compiled(len(part))
        return object_file

    objects = build_processes.map_in_parallel(compile_unit, list(enumerate(units)), len(units))
    library = directory / "plugin.so"
    # A symbol that nothing provides is an error here instead of at load time.
    _link([*compiler.command, "-shared", "-Wl,-z,defs", *objects, "-o", str(library), *link_flags])
    return library


def _link(command: Sequence[str]) -> None:
    """Links with the fast linker, unless the compiler is for another processor or the command names a linker."""
    is_chosen = any(word.startswith(_LINKER_OPTION) for word in command)
    if not is_chosen and shutil.which(f"ld.{_FAST_LINKER}"):
        with contextlib.suppress(errors.PluginError):
            return run_command([*command, f"{_LINKER_OPTION}{_FAST_LINKER}"], "linking")
    run_command(command, "linking")


def compile_program(compiler: Compiler, source: pathlib.Path, program: pathlib.Path) -> None:
    """Compiles one source to a program whose functions the libraries that it loads find."""
    run_command([*compiler.command, "-O1", "-rdynamic", str(source), "-o", str(program), "-ldl"], source.name)


def run_command(command: Sequence[str], label: str, subject: str = "The IPU plugin") -> None:
    """Runs a compiler's command; its failure is an error that shows the first errors."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        process = build_processes.run(command, environment)
    except OSError as error:
        raise errors.PluginError(
            f"{subject} cannot be built: {command[0]} does not start ({error}). {missing_compiler_message()}"
        ) from error
    if process.returncode:
        raise errors.PluginError(
            f"{subject} cannot be built: {label} failed with exit status {process.returncode}.\n"
            f"{_first_errors(process.stderr or process.stdout)}\nThe command was: {shlex.join(command)}"
        )


def _first_errors(output: str) -> str:
    """Returns the lines from the first error on; all of a short output."""
    lines = output.strip().splitlines() or ["(the compiler printed nothing)"]
    marked = [index for index, line in enumerate(lines) if "error:" in line or "undefined reference" in line]
    start = marked[0] if marked else 0
    return "\n".join(lines[start : start + _SHOWN_ERROR_LINES])
