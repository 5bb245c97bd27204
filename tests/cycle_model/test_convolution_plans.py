"""Plans of convolutions: elements of a kernel's axes may become input channels, as PopLibs plans it."""

import math

import pytest

from tf_ipu_shim.cycle_model.matmuls import plan_matmul
from tf_ipu_shim.machine.chips import CHIPS

pytestmark = pytest.mark.without_tensorflow
BOW = CHIPS["bow"]
HALF = {"element_bytes": 2, "partials_are_half": True, "proportion": 0.6}


def test_a_gradient_of_one_image_uses_the_units():
    """The kernel of a weights' gradient is as large as the image: alone, a channel leaves 15 of 16 inputs empty."""
    rows, columns, side = 576, 64, 568
    window = ((side, 3), (side, 3))
    plan = plan_matmul(BOW, 1, rows, 1, columns, side * side, window=window, **HALF)
    ideal = rows * columns * side * side / (BOW.tiles * BOW.amp_flop_per_cycle_fp16 / 2)
    assert ideal < plan.compute < 2 * ideal


def test_axes_become_channels_only_if_that_saves_passes():
    window = ((3, 56), (3, 56))
    full = plan_matmul(BOW, 1, 62720, 64, 64, 9, window=window, **HALF)
    as_product = plan_matmul(BOW, 1, 62720, 64 * 9, 64, **HALF)
    assert full.operand_bytes != as_product.operand_bytes
    few = plan_matmul(BOW, 1, 250880, 3, 64, 49, window=((7, 112), (7, 112)), **HALF)
    channels_alone = 250880 * 49 * 64 / (BOW.tiles * BOW.amp_flop_per_cycle_fp16 / 2) * 16
    assert few.compute < channels_alone / 2


def test_neighbouring_positions_share_inputs_on_both_axes():
    """A result of 1 x 1 shares nothing: each position of the kernel needs inputs of its own."""
    plans = [
        plan_matmul(BOW, 1, 64 * result**2, 16, 64, 3136, window=((56, result), (56, result)), **HALF)
        for result in (1, 8)
    ]
    inputs = [plan.operand_bytes * math.prod(plan.split) / 64 / result**2 for plan, result in zip(plans, (1, 8))]
    assert inputs[1] < inputs[0]


@pytest.mark.parametrize("window", [(), ((9, 16),), ((3, 16), (3, 16))])
def test_any_window_of_a_kernel_has_a_plan(window):
    plan = plan_matmul(BOW, 1, 256, 24, 32, 9, window=window, **HALF)
    assert 0 < plan.tiles <= BOW.tiles
    assert plan.temporary_bytes <= HALF["proportion"] * BOW.bytes_per_tile
