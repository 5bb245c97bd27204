"""Remarks of `tf-ipu fit` say how many steps make launches small, and what the host link is busy with."""

from types import SimpleNamespace

import pytest

from tf_ipu_shim.capacity import remarks
from tf_ipu_shim.machine.chips import CHIPS

pytestmark = pytest.mark.without_tensorflow


def remark(remote):
    """The remark on a program whose host link is busy for 93 % of the cycles, with these bytes in Streaming Memory."""
    program = SimpleNamespace(plan=SimpleNamespace(ipus=[SimpleNamespace(remote=remote)] * 2), is_keras=True)
    estimate = SimpleNamespace(chip=CHIPS["gc200"], cycles_per_step=1e6, launch_share=0.0, host_share=0.93)
    (line,) = remarks.limits(program, [estimate])
    return line


def test_feeds_are_named_if_nothing_is_in_streaming_memory():
    line = remark({})
    assert line.startswith("  On gc200 input and output dominate: 93 % of the cycles. Feed smaller dtypes")
    assert "Streaming Memory" not in line


def test_tensors_in_streaming_memory_are_named_first():
    line = remark({"optimizer_state": 1 << 20})  # on each of two IPUs
    assert line.startswith(
        "  On gc200 Streaming Memory, input and output dominate: 93 % of the cycles. 2.00 MiB are in"
    )
    assert "offload_weight_update_variables=False" in line


def launch_remark(step_seconds, steps, is_keras=False):
    """The remark on a program whose steps take these seconds on a GC200."""
    chip = CHIPS["gc200"]
    share = 2.3e-3 / (2.3e-3 + steps * step_seconds)
    program = SimpleNamespace(plan=SimpleNamespace(ipus=[]), is_keras=is_keras, steps=steps)
    cycles = step_seconds * chip.clock_hz
    estimate = SimpleNamespace(chip=chip, cycles_per_step=cycles, launch_share=share, host_share=0.0)
    return remarks.limits(program, [estimate])


@pytest.mark.parametrize(
    ("is_keras", "how"),
    [(False, "put them into ipu.loops.repeat()"), (True, "set steps_per_execution in compile()")],
)
def test_steps_make_launches_small(is_keras, how):
    lines = launch_remark(230e-6, steps=1, is_keras=is_keras)
    assert lines == [f"  On gc200 launches dominate: 91 % of a run. Run 90 steps at a time: {how}."]


def test_launches_of_tiny_steps_remain():
    (line,) = launch_remark(1e-6, steps=1)
    assert "launches dominate: 100 % of a run. Run 1,000 steps at a time" in line
    assert line.endswith("They are 70 % then: a step is too small for an IPU.")


def test_a_run_of_many_tiny_steps_wants_larger_ones():
    (line,) = launch_remark(1e-6, steps=1000)
    assert line.endswith("70 % of a run. A run has 1,000 steps already: larger mini-batches help.")


def test_long_steps_have_no_remark():
    assert launch_remark(10e-3, steps=1) == []
