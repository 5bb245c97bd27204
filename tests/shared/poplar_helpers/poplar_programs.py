"""Compiles the C++ programs of the tests against the Poplar libraries, each once a session."""

import functools
import os
import pathlib
import shlex
import subprocess
import tempfile

from tf_ipu_shim.poplar_sdk import toolchain


@functools.cache
def _directory() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="poplar-programs-")


@functools.cache
def compile_program(source: pathlib.Path, *libraries: str) -> pathlib.Path:
    """The path of the compiled program; `libraries` are those it uses besides libpoplar."""
    prefix = toolchain.build_libraries()
    program = pathlib.Path(_directory().name) / source.stem
    words = [
        *shlex.split(os.environ.get("CXX") or "g++"),  # with its flags: a sanitizer's are also those of the libraries
        "-std=c++17",
        "-O1",
        f"-I{prefix / 'include'}",
        str(source),
        "-o",
        str(program),
        f"-L{prefix / 'lib'}",
    ]
    words += [*(f"-l{name}" for name in libraries), "-lpoplar", f"-Wl,-rpath,{prefix / 'lib'}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


@functools.cache
def compile_codelets(source: pathlib.Path, *flags: str) -> pathlib.Path:
    """The path of the graph program that popc makes of a source."""
    prefix = toolchain.build_libraries()
    program = pathlib.Path(_directory().name) / f"{source.stem}.gp"
    words = [str(prefix / "bin" / "popc"), *flags, str(source), "-o", str(program)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program
