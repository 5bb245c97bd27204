"""Many random models, from the generators of the tests: others for each number.

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
AT_ONCE = 4  # models of each test, to a process
_PIECE = 4096  # bytes that are read at once
_PASSED = re.compile(rb"([1-9]\d*) passing")  # of hypothesis' statistics, once a test, with the simplest model


@dataclasses.dataclass(frozen=True)
class End:
    """A message from a process: that a test or the process has ended.

    Args:
        models: the number of models with the expected results, when the process ends.
        failed: what failed in it, with the first model whose results differed.
    """

    models: int = 0
    failed: str = ""


def found(first: int, count: int) -> Iterator[End]:
    """Runs them in lots, each file of tests in its own process, one after the other.

    Args:
        first: the number of the first model. A lot is repeated by the number of its first.
        count: models of each test.

    Yields:
        Yields an empty message when a model begins, to show progress, and the result of each process.
    """
    for done in range(0, count, AT_ONCE):
        for file in _FILES:
            yield from _ran(file, first + done, min(AT_ONCE, count - done))


def _ran(file: str, seed: int, count: int) -> Iterator[End]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "--tb=short",
        "--hypothesis-show-statistics",
        "--hypothesis-verbosity=verbose",
        "--hypothesis-profile=default",  # the one of CI, which hypothesis loads there by itself, ignores the seed
        f"--hypothesis-seed={seed}",
        "-m",
        "hypothesis",
        "-p",
        "no:cacheprovider",
    ]
    said = b""
    with subprocess.Popen(
        [*command, str(_TESTS / file)],
        cwd=_TESTS.parent,
        env={**os.environ, "NEW_MODELS": str(count), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), _PIECE):
            said += piece
            yield End()
    failed = said[-12_000:].decode(errors="replace") if process.returncode != 0 else ""
    yield End(sum(int(one) - 1 for one in _PASSED.findall(said)), failed)
