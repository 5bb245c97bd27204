"""Random models at length: the tests' own generators, with other models each time and many more of them.

Sharded models with control flow and variables against stock TensorFlow, pipelines and replicas against their stages in
turn, figures of memory plans against each other.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

_TESTS = pathlib.Path(__file__).parents[2] / "tests"
_FILES = (
    "tensorflow/test_differential.py",
    "slow/test_differential_at_length.py",
    "tensorflow/test_pipeline_worlds.py",
    "tensorflow/test_memory_random.py",
)
_AT_ONCE = 2  # so that minutes without the end of a test are a process that hangs
_PIECE = 4096  # bytes that are read at once; a test that ends writes one


def found(times: int) -> Iterator[str]:
    """Runs them, in processes of their own one after the other.

    Args:
        times: as many models as in the tests so often.

    Yields:
        What failed in each process, with the first model that did not compute the same; an empty text each time that a
        test has ended, so that whoever watches knows that they go on.
    """
    for done in range(0, times, _AT_ONCE):
        yield from _failed(min(_AT_ONCE, times - done))


def _failed(times: int) -> Iterator[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
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
            yield ""
    if process.returncode != 0:
        yield said[-12_000:].decode(errors="replace")
