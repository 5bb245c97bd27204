"""How long `tf_ipu_shim.ipu` takes to import after TensorFlow, and the cost of the `.pth` line in every Python process.

Processor time is measured, because there is no second side to alternate with.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.results import Result
from benchmarks.runner import Settings, quartiles

TARGET_MS = 150.0
PTH_TARGET_MS = 1.0
ROOT = pathlib.Path(__file__).resolve().parent.parent

_TIMED = """
import sys, time
sys.path.insert(0, sys.argv[1])
{before}
start = time.process_time()
{timed}
print((time.process_time() - start) * 1000)
"""


def run(settings: Settings) -> Iterator[Result]:
    if not settings.quick:
        _milliseconds("import tensorflow", "from tf_ipu_shim import ipu")  # builds the plugin, warms the disk
    after = [_milliseconds("import tensorflow", "from tf_ipu_shim import ipu") for _ in range(settings.repeats)]
    yield _result("import of ipu after tensorflow", after, TARGET_MS)
    repeats = 3 if settings.quick else 5 * settings.repeats
    # Importing the nearly empty package first fills Python's caches of what is in the directories.
    line = [_milliseconds("import benchmarks", "import tf_ipu_shim") for _ in range(repeats)]
    yield _result("the .pth line", line, PTH_TARGET_MS)


def _milliseconds(before: str, timed: str) -> float:
    """Runs statements in a Python without installed `.pth` lines, so that the package is imported nowhere else."""
    site = [path for path in sys.path if path.endswith("site-packages")]
    # pip installs bytecode; with this variable each process would compile the sources of a checkout.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    program = _TIMED.format(before=before, timed=timed)
    output = subprocess.run(
        [sys.executable, "-S", "-c", program, str(ROOT)],
        env={**variables, "PYTHONPATH": os.pathsep.join(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    return float(output.split()[-1])


def _result(name: str, times: list[float], target: float) -> Result:
    low, middle, high = quartiles(times)
    return Result(name, middle, low, high, "ms", target, best=min(times), samples=len(times))
