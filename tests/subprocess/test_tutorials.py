"""The tutorials, run as a reader runs them: with plain `python`, and what they print is what they say."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

TUTORIALS = pathlib.Path(__file__).resolve().parents[2] / "tutorials"


def run(name, **environment):
    return subprocess.run(
        [sys.executable, str(TUTORIALS / name)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", **environment},
    )


@pytest.mark.parametrize(
    ("name", "printed", "attached"),
    [
        ("basic_graph.py", r"add_2 runs on /device:IPU:0\n\[3\. 8\.\]\n", "1 IPU with Poplar device ID: 0"),
        (
            "compiled_graph.py",
            r"\[array\(\[3\., 8\.\], dtype=float32\)\]\nstep   0: loss 1\.\d+\n(step +\d+: loss 0\.\d+\n)+"
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
