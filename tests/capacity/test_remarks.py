"""Remarks of `tf-ipu fit` name what the host link is busy with."""

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
