"""Collectives of replicas against a simulation that passes fragments from replica to replica."""

import pytest

from tf_ipu_shim.cycle_model.collectives import CollectiveCost, collective_cost
from tf_ipu_shim.machine import links

pytestmark = pytest.mark.without_tensorflow

LINK = links.link_bytes_per_second(16)


def passed_on(method, size, replicas):
    """A scatter or gather, step by step: bytes over the busiest direction of a link, and how many steps."""
    ways = {"one way": [(1, 1, replicas - 1)], "both ways": [(1, 2, replicas - 1), (-1, 2, replicas - 1)]}
    ways["meet"] = [(1, 1, replicas // 2), (-1, 1, replicas - 1 - replicas // 2)]  # as far as the other comes
    over, steps = {}, 0
    for way, parts, distance in ways[method]:
        at = list(range(replicas))  # of the fragment that each replica began with
        for _ in range(distance):
            for fragment, place in enumerate(at):
                over[place, way] = over.get((place, way), 0) + size / replicas / parts
                at[fragment] = (place + way) % replicas
        steps = max(steps, distance)
    return max(over.values()), steps


@pytest.mark.parametrize(
    "size, replicas, scatter, gather",
    [
        (8_000_000, 2, "one way", "one way"),
        (1_000_000, 4, "meet", "meet"),
        (2_000_000, 4, "both ways", "meet"),
        (8_000_000, 4, "both ways", "both ways"),
        (8_000_000, 8, "both ways", "meet"),
        (4_000_000, 8, "meet", "meet"),
        (50_000_000, 16, "both ways", "meet"),
        (30_000_000, 16, "meet", "meet"),
        (400_000_000, 16, "both ways", "both ways"),
        (400_000_000, 64, "meet", "meet"),
    ],
)
def test_a_sum_is_scattered_and_gathered(size, replicas, scatter, gather):
    """The methods are those that PopLibs names for so many replicas and bytes."""
    first, second = passed_on(scatter, size, replicas), passed_on(gather, size, replicas)
    found = collective_cost(size, replicas, max(16, replicas), replicas)
    assert found.seconds == pytest.approx((first[0] + second[0]) / LINK)
    assert found.steps == first[1] + second[1]
    gathered = collective_cost(size, replicas, max(16, replicas), replicas, rounds=1)
    assert gathered.seconds == pytest.approx(second[0] / LINK)
    assert gathered.steps == second[1]


@pytest.mark.parametrize("ipus, shared", [(1, 1), (2, 1), (4, 2), (8, 4)])
def test_replicas_of_several_ipus_share_the_sides_of_the_ladder(ipus, shared):
    size, replicas = 1_000_000, 16 // ipus
    found = collective_cost(size, replicas, 16)
    if ipus > 1:
        assert found.seconds == pytest.approx(shared * 2 * passed_on("one way", size, replicas)[0] / LINK)
        assert found.steps == 2 * (replicas - 1)
    # A step of the rings, link by link: each replica's IPUs send to their counterparts in the next one.
    moves = [(size, place, place + ipus) for place in range(16 - ipus)]
    step = links.EXCHANGE_SECONDS + shared * size / LINK
    assert links.phase_seconds(moves, 16) == pytest.approx(step, rel=1e-2)


def test_in_a_pod64_they_meet_in_the_middle():
    size, replicas = 100_000_000, 16
    assert collective_cost(size, replicas, 64).steps == 2 * passed_on("meet", size, replicas)[1]
    assert collective_cost(size, replicas, 64).seconds == pytest.approx(
        2 * 2 * passed_on("meet", size, replicas)[0] / LINK
    )


def test_a_sum_over_two_pods_sends_a_64th_over_gateways():
    size = 64 * 10**6
    within = collective_cost(size, 64, 64)
    share = size / 64  # of each replica; both pods' are added up, four replicas to a gateway
    two, four = collective_cost(size, 128, 128), collective_cost(size, 256, 256)
    assert two.seconds == pytest.approx(within.seconds + 4 * share / 25e9)
    assert four.seconds == pytest.approx(within.seconds + 4 * 2 * share * 3 / 4 / 25e9)
    assert (two.steps, four.steps) == (within.steps + 2, within.steps + 6)


def test_a_sum_of_replicas_that_fill_pods():
    assert collective_cost(10**6, 2, 128).seconds == pytest.approx(4 * 10**6 / 25e9)


def test_one_replica_sends_nothing():
    assert collective_cost(10**6, 1, 16) == CollectiveCost(0.0, 0)
