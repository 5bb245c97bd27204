"""The numbers of XLA's instructions in names of compute sets."""

import pytest

from tf_ipu_shim.memory_model.computations import compute_set_names


@pytest.mark.parametrize(
    "version_2, convolution, transposed",
    [
        (True, "op/convolution/Conv", "op/weights-transpose-chans-flip-x-y.1/Copy"),
        (False, "op/convolution.1/Conv", "op/weights-transpose-chans-flip-x-y/Copy"),
    ],
)
def test_tensorflow_1_numbers_other_instructions(monkeypatch, version_2, convolution, transposed):
    """`disable_v2_behavior` is enough: Graphcore's releases for TensorFlow 1 have its XLA."""
    monkeypatch.setattr(compute_set_names.tf2, "enabled", lambda: version_2)
    names = compute_set_names.ComputeSetNames()
    assert names.name("op", "convolution/Conv") == convolution
    assert names.name("op", "weights-transpose-chans-flip-x-y/Copy") == transposed
