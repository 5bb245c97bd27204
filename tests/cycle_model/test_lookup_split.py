"""Lookups of many rows are split over tiles that each have a copy of the table."""

import pytest

from tf_ipu_shim.cycle_model import lookups
from tf_ipu_shim.machine.chips import CHIPS

pytestmark = pytest.mark.without_tensorflow
ROW = 32  # elements of two bytes


def _cycles(count, rows):
    found = lookups.split_lookup(CHIPS["gc200"], count * ROW, rows * ROW, ROW, 2)
    return found.total_cycles, found.where.tiles


def test_many_lookups_are_split():
    """One table part a tile looks at all indices: at least 8 cycles each."""
    lookups = 208_000
    cycles, tiles = _cycles(lookups, rows=26_000)
    assert cycles < lookups * 8 / 10 and tiles <= 1472


def test_few_lookups_are_not_split():
    """A copy of the table costs more than it saves: 40 lookups in 400,000 rows are those of one table."""
    whole, _ = lookups.look_up(CHIPS["gc200"], 40 * ROW, 400_000 * ROW, ROW, 2, writes=False)
    assert _cycles(40, rows=400_000)[0] == whole


def test_no_tile_has_more_of_the_table_than_a_quarter():
    chip = CHIPS["gc200"]
    _, where, _ = lookups.split_lookup(chip, 10**7 * ROW, 10**6 * ROW, ROW, 2)
    assert where.most * 2 <= chip.bytes_per_tile // 4
