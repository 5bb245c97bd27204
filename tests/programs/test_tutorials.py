"""The tutorials, and what they print is what they say: the first as a reader runs them, with plain `python`."""

import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import page_blocks
import pytest
from checkout import ROOT
from slow_cases import slowly

from tf_ipu_shim.machine.memory.byte_text import format_bytes

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

TUTORIALS = ROOT / "tutorials"


# The first loss of compiled_graph.py, whose weights begin as zeros.
FIRST_LOSS = np.mean((np.random.RandomState(0).rand(64, 3) @ [1.0, -2.0, 3.0]) ** 2)


def run(name, *arguments, **environment):
    with tempfile.TemporaryDirectory() as locks:  # a system of its own: whatever else runs, all IPUs are free
        return subprocess.run(
            [sys.executable, str(TUTORIALS / name), *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", "TF_IPU_SHIM_LOCK_DIR": locks, **environment},
        )


@pytest.mark.parametrize(
    ("name", "printed", "attached"),
    [
        slowly("basic_graph.py", r"add_2 runs on /device:IPU:0\n\[3\. 8\.\]\n", "1 IPU with Poplar device ID: 0"),
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


@pytest.mark.slow
def test_older_sdks_log_the_attachment_in_their_way():
    process = run("sharding.py", TF_IPU_SHIM_SDK="2.0")
    assert "Device /device:IPU:0 attached to IPUs: 24" in process.stderr


@pytest.mark.slow
def test_out_of_memory():
    process = run("out_of_memory.py")
    assert process.returncode == 0, process.stderr
    before, after = process.stdout.split("Two layers on each of two IPUs:")
    assert "Out of memory on tile 0" in before and "tiles only have 638976 bytes of memory" in before
    assert "256.0 MiB  weight      weights_0 (shard 0)" in before
    assert re.search(r"^The actions that save most.*:\n.* fits then\n(.*\n)*The whole report: ", before, re.M)
    assert "ran" not in before and "ran; the result is (16, 8192)" in after
    assert after.count("512.0 MiB") >= 2, "two layers on each IPU"


def assert_as_on_page(page, command, printed):
    """Each output that the page shows of the command is what it printed."""
    commands = [(one.command.partition("#")[0].strip(), one.output) for one in page_blocks.shown(TUTORIALS / page)]
    shown = [output for line, output in commands if line == command and output.strip()]
    assert shown, f"{page} shows no output of {command}"
    for output in shown:
        missing = page_blocks.differs(output, printed)
        assert missing is None, f"{page} shows\n{missing}\nand the script prints\n{printed}"


def weight_bytes(*shapes):
    return format_bytes(4 * sum(rows * columns for rows, columns in shapes))


# A scalar of each table through which its rows' gradients are asked for.
ROW_GRADIENTS = (1, 1)
# Neighbouring stages are on IPUs with a link between them, so that stages 2 and 3 are on IPUs 3 and 2.
BY_IPU = [weight_bytes(shape) for shape in [(32, 64), (64, 64), (32, 1), (64, 32)]]
PAGES = {name: "feeds_and_loops.md" for name in ("feeds_and_loops_tf2.py", "host_embedding.py")}
HIDDEN = weight_bytes((16, 32), (32, 1))


@pytest.mark.parametrize(
    ("command", "printed", "weights"),
    [
        ("feeds_and_loops.py", "2000 steps, ", [HIDDEN]),
        ("feeds_and_loops_tf2.py", "2000 steps, ", [HIDDEN]),
        (
            "host_embedding.py",
            "The table has 2,560,000 bytes. The IPU holds none",
            [weight_bytes((32, 1), ROW_GRADIENTS)],
        ),
        (
            "replicas.py",
            "2 replicas; losses have the shape (400, 2)",
            [weight_bytes((12, 24), (24, 1))] * 2,
        ),
        (
            "pipelining.py",
            "4 stages on 4 IPUs, 1 replicas; losses have the shape (400,)",
            BY_IPU,
        ),
        pytest.param(
            "pipelining.py --ipus 8",
            "4 stages on 8 IPUs, 2 replicas; losses have the shape (400, 2)",
            BY_IPU * 2,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "pipelining.py --ipus 8 --schedule Interleaved --count 4",
            "4 stages on 8 IPUs, 2 replicas; losses have the shape (200, 2)",
            BY_IPU * 2,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_training(forked, command, printed, weights):
    name, *arguments = command.split()
    process = forked(TUTORIALS / name, *arguments)
    assert process.returncode == 0, process.stderr
    assert printed in process.stdout
    if "--count" not in command:
        page = PAGES.get(command, f"{command.partition('.')[0]}.md")
        assert_as_on_page(page, f"python tutorials/{command}", process.stdout)
    assert "The CPU's weights." in process.stdout and "Other weights" not in process.stdout
    table = process.stdout.split("by category:")[1].split("Largest allocations")[0]
    assert table.split()[:2] == ["IPU", "weight"]
    held = re.findall(r"^ +(\d+) +([\d,.]+ \w+) ", table, re.M)[: len(weights)]
    assert held == [(str(ipu), size) for ipu, size in enumerate(weights)]


@pytest.mark.slow
def test_a_count_that_the_schedule_does_not_run():
    process = run("pipelining.py", "--count", "6")
    assert process.returncode == 1 and "must be a multiple of 8, but it is 6" in process.stderr


@pytest.mark.slow
def test_what_waits_in_a_pipeline():
    """A mini-batch of stage 0 leaves its 16 x 32 inputs and 16 x 64 results for the backward stage."""
    for schedule, slots in (("Grouped", 6), ("Interleaved", 3)):
        report = run("pipelining.py", "--schedule", schedule).stdout
        assert re.search(
            rf"{format_bytes(slots * 16 * (32 + 64) * 4)}  fifo +\S+ FIFO of stage 0, {slots} slots", report
        ), report


def test_keras(forked):
    process = forked(TUTORIALS / "keras_training.py")
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("The CPU's weights.") == 3 and "Other weights" not in process.stdout
    assert_as_on_page("keras_training.md", "python tutorials/keras_training.py", process.stdout)
    figures = re.findall(r"oss ([\d.]+) -> ([\d.]+), accuracy ([\d.]+)", process.stdout)
    assert len(figures) == 6
    np.testing.assert_allclose(np.float64(figures[::2]), np.float64(figures[1::2]), atol=2e-3)
    assert "4 x GC200" in process.stdout


@pytest.mark.slow
def test_reading_a_profile(forked, tmp_path):
    cycles = []
    for number, arguments in enumerate(([], ["--stages", "0,1,2,2,3,3"])):
        process = forked(TUTORIALS / "reading_a_profile.py", "--keep", tmp_path / str(number), *arguments)
        assert process.returncode == 0, process.stderr
        command = " ".join(["python tutorials/reading_a_profile.py", *arguments])
        assert_as_on_page("reading_a_profile.md", command, process.stdout)
        busy = [int(share) for share in re.findall(r"is busy for (\d+)%", process.stdout)]
        assert len(busy) == 4 and max(busy) <= 100
        cycles.append(int(process.stdout.split()[3].replace(",", "")))
    assert cycles[1] < cycles[0]


def test_memory_in_ci(forked):
    command, script = ("-m", "tf_ipu_shim.cli", "run"), TUTORIALS / "memory_in_ci.py"
    assert "with a fifth of each tile to spare" in forked.succeeds(*command, "--write-baseline", "memory.json", script)
    grown = forked(*command, "--baseline", "memory.json", script, "--width", "300")
    assert grown.returncode == 1
    # 44 columns more of 64 numbers.
    assert re.search(r"More memory than memory\.json says:\n.*IPU 0: peak [\d.]+ KiB -> [\d.]+ KiB", grown.stderr)
    assert re.search(r"\+11\.0 KiB  weight wide/kernel", grown.stderr)


def test_custom_op():
    """The page prints what the script prints, and quotes its sources."""
    process = subprocess.run(
        [sys.executable, "-m", "tf_ipu_shim.cli", "run", str(TUTORIALS / "custom_op.py")],
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.returncode == 0, process.stderr
    assert_as_on_page("custom_op.md", "tf-ipu run tutorials/custom_op.py", process.stdout)
    sources = "".join(path.read_text() for path in (TUTORIALS / "custom_op").glob("*.cpp"))
    quoted = page_blocks.blocks(TUTORIALS / "custom_op.md", "cpp")
    assert len(quoted) == 2 and all(block in sources for block in quoted)
