"""The `popc` command: compiles codelets for the simulated IPUs' tiles, which are this CPU.

The compiler preprocesses each source, and libclang finds its vertices. The preprocessed text and a registration of the
vertices are compiled to one shared library, the graph program. Errors of the compiler show the user's own lines.
"""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from tf_ipu_shim import errors
from tf_ipu_shim.poplar_sdk.toolchain import build, codelet_reader, popc_arguments, registration, sources
from tf_ipu_shim.poplar_sdk.toolchain.popc_arguments import Arguments

_FLAGS = (
    *("-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-fno-access-control", "-pthread"),
    *("-Wno-invalid-offsetof", "-Wno-attributes", "-Wno-return-type", "-Wno-psabi"),
)
_NO_VERTEX = (
    "popc: {} has no vertex: expected a class derived from poplar::Vertex. Of a template, instantiate it: "
    "template class Name<float>;"
)
# Of IPU compilers: which thread of a tile runs a function.
_IPU_ATTRIBUTE = re.compile(r'__attribute__\s*\(\(\s*target\s*\(\s*"(?:supervisor|worker)"\s*\)\s*\)\)')

_ELEMENT, _NAME = r"(?P<element>\w[\w:\s]*?)", r"(?P<name>\w+)"
_EXT_VECTOR = r"__attribute__\s*\(\(\s*ext_vector_type\s*\(\s*(?P<size>\d+)\s*\)\s*\)\)"
_SHORT_VECTORS = (
    re.compile(rf"typedef\s+{_ELEMENT}\s*{_EXT_VECTOR}\s*{_NAME}\s*;"),
    re.compile(rf"typedef\s+{_ELEMENT}\s+{_NAME}\s*{_EXT_VECTOR}\s*;"),
    re.compile(rf"using\s+{_NAME}\s*=\s*{_ELEMENT}\s*{_EXT_VECTOR}\s*;"),
)
# Errors of the compiler and the assembler about instructions and registers of another processor.
_FOREIGN_ASSEMBLY = re.compile(r"unknown register name|impossible constraint in|\bError: ")


class CompilerFailed(Exception):
    """The compiler has printed its errors; the value is its exit status."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    try:
        arguments = popc_arguments.parse(sys.argv[1:] if words is None else words)
        if arguments.shown is not None:
            print(arguments.shown)
            return 0
        compile_codelets(arguments)
    except CompilerFailed as failure:
        return int(failure.args[0])
    except (errors.PluginError, ValueError) as error:
        print(error if str(error).startswith("popc") else f"popc: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"popc: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def compile_codelets(arguments: Arguments) -> None:
    """Makes the graph program that the arguments ask for."""
    compiler = list(build.find_compiler().command)
    for source in arguments.assembly:
        _check_assembly(compiler, arguments, source)
    with tempfile.TemporaryDirectory(prefix="popc-") as scratch:
        objects = []
        for index, source in enumerate(arguments.sources):
            last = index == len(arguments.sources) - 1
            text = _preprocess(compiler, arguments, source)
            classes = codelet_reader.find_classes(text)
            added = registration.write(classes, source, index, index + 1 if last else len(arguments.sources))
            objects.append(_compile(compiler, arguments, text, added, pathlib.Path(scratch) / f"codelet{index}.ii"))
            if not classes:
                print(_NO_VERTEX.format(source), file=sys.stderr)
        _link(compiler, arguments, objects)


def _run(command: Sequence[str], arguments: Arguments, stdout: int | None = None) -> str:
    """Runs the compiler and writes its messages unchanged to the error stream."""
    process = _start(command, arguments, stdout)
    _check(process)
    return process.stdout or ""


def _start(
    command: Sequence[str], arguments: Arguments, stdout: int | None = None, stderr: int | None = None
) -> subprocess.CompletedProcess[str]:
    if arguments.verbose:
        print(shlex.join(command), file=sys.stderr)
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
        errors="surrogateescape",
        env=_environment(),
    )


def _check(process: subprocess.CompletedProcess[str]) -> None:
    if process.returncode:
        raise CompilerFailed(process.returncode if process.returncode > 0 else 1)


def _environment() -> dict[str, str]:
    """Returns the environment without the headers of another folder of Poplar: this package's headers are used."""
    entries = os.environ.get("CPATH", "").split(os.pathsep)
    kept = [entry for entry in entries if not os.path.exists(os.path.join(entry, "poplar/detail/vertex_table.hpp"))]
    return {**os.environ, "CPATH": os.pathsep.join(filter(None, kept))}


def _preprocess(compiler: Sequence[str], arguments: Arguments, source: str) -> str:
    """Returns the source with its includes, for the CPU: `__IPU__` is not defined."""
    checked = ["-DPOPLAR_CHECKED"] if arguments.checked else []
    include = f"-isystem{sources.INCLUDE_DIRECTORY}"
    bare = f"-idirafter{sources.INCLUDE_DIRECTORY / 'poplar'}"  # for #include <Vertex.hpp>
    words = [*compiler, "-E", "-x", "c++", *arguments.language, *arguments.preprocessor, *checked, include, bare]
    text = _run([*words, "-include", registration.HEADER, source], arguments, subprocess.PIPE)
    return _name_short_vectors(_IPU_ATTRIBUTE.sub("", text), source)


def _name_short_vectors(text: str, source: str) -> str:
    """Replaces clang's vector types, which g++ would read as scalars, by the class of the headers."""
    for declaration in _SHORT_VECTORS:
        text = declaration.sub(r"typedef poplar::detail::ShortVector<\g<element>, \g<size>> \g<name>;", text)
    if "ext_vector_type" in text:
        raise errors.PluginError(
            f"popc cannot compile {source}: it uses ext_vector_type within a declaration; expected a type with a name. "
            "Write: typedef float float2 __attribute__((ext_vector_type(2)));"
        )
    return text


def _compile(compiler: Sequence[str], arguments: Arguments, text: str, added: str, path: pathlib.Path) -> str:
    """Compiles a source with the registration of its vertices; shows only the source's errors if it has any."""
    made = str(path.with_suffix(".o"))
    flags = [*_FLAGS, *sources.language_flags(), *arguments.language, *arguments.compiler]
    command = [*compiler, "-x", "c++-cpp-output", *flags, str(path)]
    path.write_text(text + added, encoding="utf-8", errors="surrogateescape")
    process = _start([*command, "-c", "-o", made], arguments, stderr=subprocess.PIPE)
    if process.returncode:
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        _run([*command, "-fsyntax-only"], arguments)
    sys.stderr.write(process.stderr)
    if process.returncode and _FOREIGN_ASSEMBLY.search(process.stderr):
        print(
            "popc: codelets run on this CPU, which does not have the instructions of IPUs. Put the assembly within "
            "#ifdef __IPU__, and C++ after #else.",
            file=sys.stderr,
        )
    _check(process)
    return made


def _check_assembly(compiler: Sequence[str], arguments: Arguments, source: str) -> None:
    """Assembly for IPUs is left out if it is within `#ifdef __IPU__`: the C++ of these vertices is compiled."""
    include = f"-isystem{sources.INCLUDE_DIRECTORY}"
    words = [*compiler, "-E", "-P", "-x", "assembler-with-cpp", *arguments.preprocessor, include, source]
    if _run(words, arguments, subprocess.PIPE).strip():
        raise errors.PluginError(
            f"popc cannot compile {source}: it is assembly for IPUs, and codelets run on this CPU; expected C++. "
            "Leave it out, or put it within #ifdef __IPU__, and give its vertices a compute() in C++."
        )


def _link(compiler: Sequence[str], arguments: Arguments, objects: Sequence[str]) -> None:
    """Links the graph program and puts it in its place by one rename; into a device such as /dev/null it is written."""
    output = pathlib.Path(arguments.output)
    link = [*compiler, "-shared", "-Wl,-z,defs", *objects, "-pthread", "-o"]
    if output.exists() and not output.is_file():
        _run([*link, str(output)], arguments)
        return
    file, name = tempfile.mkstemp(prefix=f".{output.name}.", dir=output.parent)
    os.close(file)
    try:
        _run([*link, name], arguments)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o777 & ~mask)
        os.replace(name, output)
    finally:
        pathlib.Path(name).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
