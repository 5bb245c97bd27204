"""Many random models, from the generators of the tests, with different models in each run.

Compares sharded models and Keras models with the stock packages, and pipelines and replicas with their stages in turn.
Figures of memory plans are compared with each other.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

_TESTS = pathlib.Path(__file__).parents[2] / "tests"
_FILES = (
    "programs/test_differential.py",
    "programs/test_differential_at_length.py",
    "frontend/pipelines/test_pipeline_worlds.py",
    "memory_model/test_memory_random.py",
    "frontend/keras/models/test_keras_random.py",
)
AT_ONCE = 2  # times the tests' number, to a process
_PIECE = 4096  # bytes that are read at once
_PASSED = re.compile(rb"(\d+) passing")  # of hypothesis' statistics, once a test


@dataclasses.dataclass(frozen=True)
class End:
    """A message from a process: that a test or the process has ended.

    Args:
        models: the number of models with the expected results, when the process ends.
        failed: what failed in it, with the first model whose results differed.
    """

    models: int = 0
    failed: str = ""


def found(times: int) -> Iterator[End]:
    """Runs them, each file of tests in its own process, one after the other.

    Args:
        times: the number of models, as a multiple of that in the tests.

    Yields:
        Yields an empty message when a model begins, to show progress, and the result of each process.
    """
    for done in range(0, times, AT_ONCE):
        for file in _FILES:
            yield from _ran(file, min(AT_ONCE, times - done))


def _ran(file: str, times: int) -> Iterator[End]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "--tb=short",
        "--hypothesis-show-statistics",
        "--hypothesis-verbosity=verbose",
        "-p",
        "no:cacheprovider",
    ]
    said = b""
    with subprocess.Popen(
        [*command, str(_TESTS / file)],
        cwd=_TESTS.parent,
        env={**os.environ, "NEW_MODELS": str(times), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), _PIECE):
            said += piece
            yield End()
    failed = said[-12_000:].decode(errors="replace") if process.returncode != 0 else ""
    yield End(sum(map(int, _PASSED.findall(said))), failed)
