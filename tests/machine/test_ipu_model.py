"""Which chip a configuration means: docs/reference/facts.md, section "IPU Model"."""

import pytest

from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.environment.flags import PoplarFlags
from tf_ipu_shim.machine.ipu_model import chip_for, for_version

pytestmark = pytest.mark.without_tensorflow

MODEL = PoplarFlags(use_ipu_model=True)


def test_on_ipus_the_systems_chip_counts():
    assert chip_for(CHIPS["gc2"], PoplarFlags(), version="ipu21", tiles_per_ipu=4) is CHIPS["gc2"]


def test_the_model_is_ipu2_by_default():
    assert chip_for(CHIPS["gc2"], MODEL) is CHIPS["gc200"]
    assert chip_for(CHIPS["gc200"], MODEL, version="ipu1").tiles == 1216


@pytest.mark.parametrize(
    ("configured", "flag", "tiles"), [(0, -1, 1472), (8, -1, 8), (0, 16, 16), (8, 16, 8), (0, 0, 1472)]
)
def test_the_configuration_comes_before_the_flag(configured, flag, tiles):
    flags = PoplarFlags(use_ipu_model=True, ipu_model_tiles=flag)
    assert chip_for(CHIPS["gc200"], flags, tiles_per_ipu=configured).tiles == tiles


def test_more_tiles_than_there_are():
    with pytest.raises(ValueError, match=r"asked for 1217 tiles per IPU, but ipu1 has 1216.*--ipu_model_tiles"):
        chip_for(CHIPS["gc2"], MODEL, version="ipu1", tiles_per_ipu=1217)
    with pytest.raises(ValueError, match=r"asked for -1 tiles per IPU"):
        chip_for(CHIPS["gc2"], MODEL, version="ipu1", tiles_per_ipu=-1)


def test_a_version_means_the_systems_own_chip_where_it_fits():
    assert for_version(CHIPS["bow"], "ipu2") is CHIPS["bow"]
    assert for_version(CHIPS["bow"], "ipu1") is CHIPS["gc2"]
    with pytest.raises(ValueError, match="no IPU version 'ipu9'"):
        for_version(CHIPS["bow"], "ipu9")
