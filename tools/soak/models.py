"""Random models at length: the tests' own generators, with other models each time and many more of them.

Sharded models with control flow and variables against stock TensorFlow, pipelines and replicas against their stages in
turn, figures of memory plans against each other, Keras models against stock Keras.
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
    "frontend/keras/test_keras_random.py",
)
AT_ONCE = 2  # times the tests' number, to a process
_PIECE = 4096  # bytes that are read at once; a test that ends writes one
_PASSED = re.compile(rb"(\d+) passing")  # of hypothesis' statistics, once a test


@dataclasses.dataclass(frozen=True)
class End:
    """What is heard of a process: that a test has ended, or it has itself.

    Args:
        models: how many were right, at the process' end.
        failed: what failed in it, with the first model that did not compute the same.
    """

    models: int = 0
    failed: str = ""


def found(times: int) -> Iterator[End]:
    """Runs them, in their own processes one after the other.

    Args:
        times: as many models as in the tests so often.

    Yields:
        An empty one each time that a test has ended, so that anyone who watches knows that they go on, and what each
        process came to.
    """
    for done in range(0, times, AT_ONCE):
        yield from _ran(min(AT_ONCE, times - done))


def _ran(times: int) -> Iterator[End]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "--hypothesis-show-statistics",
        "-p",
        "no:cacheprovider",
    ]
    said = b""
    with subprocess.Popen(
        [*command, *(str(_TESTS / file) for file in _FILES)],
        cwd=_TESTS.parent,
        env={**os.environ, "NEW_MODELS": str(times)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), _PIECE):
            said += piece
            yield End()
    failed = said[-12_000:].decode(errors="replace") if process.returncode != 0 else ""
    yield End(sum(map(int, _PASSED.findall(said))), failed)
