"""The tutorials, run as a reader runs them: with plain `python`, and what they print is what they say."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import pytest

TUTORIALS = pathlib.Path(__file__).resolve().parents[2] / "tutorials"


# The first loss of compiled_graph.py, whose weights begin as zeros.
FIRST_LOSS = np.mean((np.random.RandomState(0).rand(64, 3) @ [1.0, -2.0, 3.0]) ** 2)


def run(name, **environment):
    with tempfile.TemporaryDirectory() as locks:  # a system of its own: whatever else runs, all IPUs are free
        return subprocess.run(
            [sys.executable, str(TUTORIALS / name)],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", "TF_IPU_SHIM_LOCK_DIR": locks, **environment},
        )


@pytest.mark.parametrize(
    ("name", "printed", "attached"),
    [
        ("basic_graph.py", r"add_2 runs on /device:IPU:0\n\[3\. 8\.\]\n", "1 IPU with Poplar device ID: 0"),
        (
            "compiled_graph.py",
            rf"\[array\(\[3\., 8\.\], dtype=float32\)\]\nstep   0: loss {FIRST_LOSS:.4f}\d\n(step +\d+: loss 0\.\d+\n)+"
            r"weights: \[ 1\. -2\.  3\.\]\n",
            "1 IPU with Poplar device ID: 0",
        ),
        ("sharding.py", r"\[array\(\[ 4\., 14\.\], dtype=float32\)\]\n", "4 IPUs with Poplar device ID: 24"),
    ],
)
def test_tutorial(name, printed, attached):
    process = run(name)
    assert process.returncode == 0, process.stderr
    assert re.search(printed, process.stdout), process.stdout
    assert f"TensorFlow device /device:IPU:0 attached to {attached}" in process.stderr


def test_older_sdks_log_the_attachment_in_their_way():
    process = run("sharding.py", TF_IPU_SHIM_SDK="2.0")
    assert "Device /device:IPU:0 attached to IPUs: 24" in process.stderr


def test_out_of_memory():
    process = run("out_of_memory.py")
    assert process.returncode == 0, process.stderr
    before, after = process.stdout.split("Two layers on each of two IPUs:")
    weights = 8192 * 8192 * 4
    assert "Out of memory on tile 0" in before and "tiles only have 638976 bytes of memory" in before
    assert f"{weights:,} bytes  weight      weights_0 (shard 0)" in before
    assert "ran" not in before and "ran; the result is (16, 8192)" in after
    assert after.count(f"{2 * weights:,}") >= 2, "two layers on each IPU"
