"""The example of the page about codelets builds and prints what the page says."""

import re
import subprocess
import sys

import numpy as np
import pytest
from checkout import ROOT

pytestmark = [pytest.mark.subprocess, pytest.mark.without_tensorflow]

PAGE = (ROOT / "docs/how_to/deploy/run_codelets.md").read_text()
CPP = re.findall(r"```cpp\n(.*?)```", PAGE, re.S)
SUMS = 0.5 * np.arange(400).reshape(4, 100).sum(1)


@pytest.fixture
def example(python):
    """The page's files, in the directory in which scripts run."""
    (python.directory / "codelet.cpp").write_text(CPP[0])
    (python.directory / "main.cpp").write_text(CPP[1])
    (python.directory / "Makefile").write_text(re.search(r"```make\n(.*?)```", PAGE, re.S)[1])
    (python.directory / "train.py").write_text(re.search(r"```python\n(.*?)```", PAGE, re.S)[1])
    return python.directory


def in_shell(directory, script):
    """Runs commands in a shell with Poplar's search paths, as the page does."""
    words = ["bash", "-c", f'eval "$("$1" -m tf_ipu_shim.cli poplar --shell)" && {script}', "bash", sys.executable]
    return subprocess.run(words, cwd=directory, capture_output=True, text=True)


def test_example_of_the_page_runs(python, example):
    """A script builds it; a checked codelet then names the field, as the page shows."""
    printed = python.succeeds("-m", "tf_ipu_shim.cli", "run", example / "train.py", timeout=1500)
    assert printed == re.search(r"\$ \./main\n(.*?)```", PAGE, re.S)[1]
    np.testing.assert_array_equal(np.array(printed.split(), float), SUMS)
    made = in_shell(example, "make -B --no-print-directory").stdout
    assert made == re.search(r"\$ make\n(.*?)\$ \./main", PAGE, re.S)[1]
    (example / "codelet.cpp").write_text(CPP[0].replace("i < in.size()", "i <= in.size()"))
    process = in_shell(example, "popc --checked codelet.cpp -o codelet.gp && ./main")
    shown = re.search(r"what\(\):(.*?)```", PAGE, re.S)[1].split()
    assert process.returncode != 0 and process.stderr.split("what():")[1].split()[: len(shown)] == shown
