"""A side that lives in its own process, for settings that are fixed for a process, such as an environment variable."""

from __future__ import annotations

import compileall
import functools
import importlib
import importlib.util
import multiprocessing
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

_SECONDS_TO_ANSWER = 300.0


class Worker:
    """Starts a process, and has it make one side of a comparison.

    Args:
        module: the module with the function that makes the side.
        function: its name; takes no arguments, returns a `runner.Side`.
        environment: environment variables that the process gets in addition to ours; None removes one.

    The two sides take turns, so one of the two processes is always idle.
    """

    def __init__(self, module: str, function: str, environment: Mapping[str, str | None]) -> None:
        write_bytecode()
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, module, function), daemon=True)
        before = {name: os.environ.get(name) for name in environment}
        try:
            _set(environment)
            self._process.start()
        finally:
            _set(before)
        theirs.close()

    def outputs(self, calls: int) -> list[list[np.ndarray]]:
        return self._ask("outputs", calls)

    def seconds(self, calls: int) -> float:
        return self._ask("seconds", calls)

    def close(self) -> None:
        """Ends the process."""
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()

    def _ask(self, method: str, calls: int) -> Any:
        self._pipe.send((method, calls))
        if not self._pipe.poll(_SECONDS_TO_ANSWER):
            raise TimeoutError(f"A benchmark's process has not answered for {_SECONDS_TO_ANSWER:.0f} s.")
        answer = self._pipe.recv()
        if isinstance(answer, BaseException):
            raise answer
        return answer


@functools.cache
def write_bytecode() -> None:
    """Writes the package's bytecode, which pip does not: TensorFlow and Keras have theirs, a checkout may have none."""
    found = importlib.util.find_spec("tf_ipu_shim")
    for directory in (found.submodule_search_locations or ()) if found is not None else ():
        compileall.compile_dir(directory, quiet=1)


def peak_memory() -> float:
    """Returns the most memory that this process has had, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())
    return int(found[1]) * 1024.0 if found else float("nan")


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _serve(pipe: Any, module: str, function: str) -> None:
    side = None
    while True:
        try:
            method, calls = pipe.recv()
        except EOFError:
            return
        try:
            if side is None:
                side = getattr(importlib.import_module(module), function)()
            pipe.send(getattr(side, method)(calls))
        except Exception as error:
            pipe.send(RuntimeError(f"{type(error).__name__}: {error}"))
