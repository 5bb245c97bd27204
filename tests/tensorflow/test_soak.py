"""A short look at what `make soak` looks at for hours."""

import random

import pytest
from soak import feed_programs, steadiness
from tf_ipu_shim.ipu import config


@pytest.fixture(autouse=True)
def nothing_configured_after():
    yield
    config.reset_ipu_configuration()


@pytest.mark.parametrize("way", feed_programs.WAYS)
@pytest.mark.parametrize("seed", range(5))
def test_random_programs_with_feeds(seed, way):
    assert feed_programs.difference(feed_programs.Program.draw(random.Random(seed)), way) == ""


def test_what_the_programs_are_compared_with():
    """By hand: two replicas, elements 0 to 6; each iteration takes two."""
    loops = (feed_programs.Loop(2, 3, 0, False), feed_programs.Loop(1, 1, 0, True))
    first, second = feed_programs.expected(feed_programs.Program(2, 1, loops, 7, 2))
    assert (first.totals, first.sent.tolist(), first.steps) == ([3 * (0 + 2), 4 + 5], [[0, 3], [6, 12]], 2)
    assert (second.totals, second.sent.tolist(), second.steps) == (None, [], 2)


def test_steadiness():
    assert steadiness.grown(200) == ""
    assert steadiness.beside_reconfiguration(20, threads=2) == ""
