"""Checks a built plugin against TensorFlow's private symbols, whose sizes and layouts `csrc/tf_private` declares.

The check runs in its own process: the plugin makes its declared objects with the real library, and compares.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
from collections.abc import Sequence

from tf_ipu_shim import errors
from tf_ipu_shim.plugin import compiler

PROGRAM = "check_main.cc"
"""The source of the program; no part of the plugin."""
_SECONDS = 300
_DIRECTORY = "plugin/csrc/tf_private"


def check(
    command: compiler.Compiler, sources: Sequence[pathlib.Path], library: pathlib.Path, link_flags: Sequence[str]
) -> None:
    """Refuses a plugin whose declarations of TensorFlow's private symbols are wrong.

    Does nothing if the sources lack the program, or for a sanitizer, whose runtime a program must load.
    """
    programs = [source for source in sources if source.name == PROGRAM]
    if not programs or any("-fsanitize" in word for word in command.command):
        return
    program = library.with_name("check_main")
    compiler.compile_program(command, programs[0], program)
    folders = [flag[2:] for flag in link_flags if flag.startswith("-L")]
    search_path = os.environ.get("LD_LIBRARY_PATH")
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "LD_LIBRARY_PATH": os.pathsep.join([*folders, *([search_path] if search_path else [])]),
    }
    try:
        process = subprocess.run(
            [program, library], capture_output=True, text=True, errors="replace", env=environment, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise _error(f"the check does not end within {_SECONDS} s.") from None
    if process.returncode < 0:
        raise _error(f"the check ended with signal {-process.returncode}, as wrong layouts do.")
    if process.returncode:
        raise _error(process.stdout.strip())


def _error(problem: str) -> errors.PluginError:
    return errors.PluginError(
        f"The IPU plugin cannot be built for this TensorFlow: {problem} Install a version that is supported "
        f"(tensorflow-cpu 2.15.1 or 2.21.0). Or declare the symbols of this one in {_DIRECTORY} and build again."
    )
