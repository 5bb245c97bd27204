"""Spreading over tiles: sums, balance, and pieces counted by hand."""

import random

import pytest

from tf_ipu_shim.machine.memory.tiles import Tiles

pytestmark = pytest.mark.without_tensorflow


def spread(tiles, *sizes):
    found = Tiles(tiles)
    found.place(sizes)
    return found.bytes()


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1, [1, 0, 0, 0]),
        (128, [128, 0, 0, 0]),
        (129, [128, 1, 0, 0]),
        (512, [128, 128, 128, 128]),
        # A quarter of 1,000 is 250; pieces come in steps of 8.
        (1000, [256, 256, 256, 232]),
        (4 * 800 + 8, [808, 808, 808, 784]),
    ],
)
def test_one_tensor(size, expected):
    assert spread(4, size) == expected


def test_the_next_tensor_begins_where_the_last_one_ended():
    assert spread(4, 128, 128, 300) == [128 + 44, 128, 128, 128]


def test_nothing_is_lost_and_nobody_has_much_more():
    sizes = [random.Random(seed).randrange(1, 10**6) for seed in range(500)]
    found = spread(1472, *sizes)
    assert sum(found) == sum(sizes)
    mean = sum(sizes) / 1472
    assert max(found) < 1.2 * mean


def test_the_same_program_is_spread_the_same_way():
    assert spread(7, 5, 1000, 77) == spread(7, 5, 1000, 77)


def test_empty_tensors_take_no_tile():
    assert spread(3, 0, 0) == [0, 0, 0]
