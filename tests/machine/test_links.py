"""Links and syncs against Graphcore's multi-IPU model: docs/reference/facts.md, section "Links and syncs"."""

import collections
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.chips import CHIPS

pytestmark = pytest.mark.without_tensorflow


def linked(num_ipus):
    """The pairs of places between which data passes no other."""
    pairs = itertools.combinations(range(num_ipus), 2)
    return {pair for pair in pairs if links.route(*pair, num_ipus) == pair}


def exchange_seconds(num_bytes, src, dst, num_ipus):
    return links.phase_seconds([(num_bytes, src, dst)], num_ipus)


def test_link_graph_as_published():
    assert linked(16) == {(i, i + 1) for i in range(0, 16, 2)} | {(i, i + 2) for i in range(14)}


def _distances(num_ipus, start):
    graph = collections.defaultdict(set)
    for i in range(num_ipus):
        for j in (i + 1,) * (i % 2 == 0) + (i + 2,):
            if j < num_ipus:
                graph[i].add(j)
                graph[j].add(i)
    found, queue = {start: 0}, [start]
    for i in queue:
        for j in graph[i] - found.keys():
            found[j] = found[i] + 1
            queue.append(j)
    return found


@pytest.mark.parametrize("num_ipus", [2, 4, 16])
def test_routes_are_the_shortest(num_ipus):
    for src in range(num_ipus):
        distances = _distances(num_ipus, src)
        for dst in range(num_ipus):
            assert len(links.route(src, dst, num_ipus)) - 1 == distances[dst]


def test_the_rung_comes_first():
    assert links.route(6, 1, 8) == (6, 7, 5, 3, 1)


@pytest.mark.parametrize(("num_ipus", "gb_s"), [(2, 58.4), (4, 29.2), (16, 29.2)])
def test_bandwidth(num_ipus, gb_s):
    assert links.link_bytes_per_second(num_ipus) / 1e9 == pytest.approx(gb_s, abs=0.05)


@pytest.mark.parametrize(("chip", "num_ipus", "cycles"), [("gc2", 2, 48), ("gc2", 16, 240), ("gc200", 4, 80)])
def test_sync(chip, num_ipus, cycles):
    assert links.sync_cycles(CHIPS[chip], num_ipus) == cycles


def test_a_gibibyte_over_one_rung():
    seconds = 2**30 / (4 * 128 * 2**30 / 8 * 0.85) + 15e-9 + links.EXCHANGE_SECONDS
    assert exchange_seconds(2**30, 0, 1, 2) == pytest.approx(seconds)


def test_an_exchange_of_few_bytes_takes_as_long_as_measured():
    """16 GC2 exchange the edges of a 4 x 4 grid: 3,043 cycles with float16, 4,030 with twice the bytes."""
    measured = (2 * 3043 - 4030) / CHIPS["gc2"].clock_hz
    assert exchange_seconds(8, 0, 7, 16) == pytest.approx(measured, rel=0.05)


def test_what_stays_takes_no_time():
    assert exchange_seconds(10**9, 3, 3, 4) == 0
    assert exchange_seconds(0, 0, 3, 4) == 0


def test_copies_share_a_link_in_one_direction_only():
    alone = exchange_seconds(1 << 30, 0, 2, 4)
    assert links.phase_seconds([(1 << 30, 0, 2), (1 << 30, 2, 0)], 4) == alone
    least = links.EXCHANGE_SECONDS
    together = links.phase_seconds([(1 << 30, 0, 2), (1 << 30, 0, 2)], 4)
    assert together - least == pytest.approx(2 * (alone - least), rel=1e-6)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), st.integers(0, 7), st.integers(0, 7))
def test_more_bytes_never_take_less_time(few, more, src, dst):
    few, more = sorted((few, more))
    assert exchange_seconds(few, src, dst, 8) <= exchange_seconds(more, src, dst, 8)


def test_refused():
    with pytest.raises(ValueError, match="no place 4 in a device of 4 IPUs; expected 0 to 3"):
        links.route(0, 4, 4)
    with pytest.raises(ValueError, match="cannot move -1 bytes"):
        exchange_seconds(-1, 0, 1, 2)
    with pytest.raises(ValueError, match="ladder cannot be built from 3 IPUs"):
        links.route(0, 1, 3)
    with pytest.raises(ValueError, match="1 IPUs has no IPU-Links"):
        links.link_bytes_per_second(1)
    with pytest.raises(ValueError, match="0 IPUs has no places"):
        links.sync_hops(0)


def _ladders(num_ipus):
    edges = set()
    for i in range(num_ipus):
        on_ladder = [j for j in (i + 1,) * (i % 2 == 0) + (i + 2,) if j // 64 == i // 64]
        edges |= {(i, j) for j in [*on_ladder, i + 64] if j < num_ipus}
    return edges


@pytest.mark.parametrize("num_ipus", [128, 256])
def test_pods_are_joined_machine_by_machine(num_ipus):
    assert linked(num_ipus) == _ladders(num_ipus)


@given(st.integers(0, 255), st.integers(0, 255))
def test_routes_through_gateways_are_the_shortest(src, dst):
    places = links.route(src, dst, 256)
    assert (places[0], places[-1]) == (src, dst)
    assert all(tuple(sorted(edge)) in _ladders(256) for edge in zip(places, places[1:]))
    ladders = abs(src // 64 - dst // 64)
    side = abs(src % 64 // 2 - dst % 64 // 2)
    assert len(places) - 1 == ladders + side + (src + dst) % 2


def test_a_machine_shares_its_gateway():
    alone = exchange_seconds(25 * 10**9, 0, 64, 128)
    latency = links.EXCHANGE_SECONDS + links.GATEWAY_LATENCY_SECONDS
    assert alone == pytest.approx(1 + latency, rel=1e-9)  # 2 x 100 Gbit/s
    together = links.phase_seconds([(25 * 10**9, place, place + 64) for place in range(4)], 128)
    assert together == pytest.approx(4 * alone, rel=1e-5)
    apart = links.phase_seconds([(25 * 10**9, place, place + 64) for place in (0, 4)], 128)
    assert apart == alone


def test_a_sync_of_pods():
    assert [links.sync_hops(n) for n in (64, 128, 256)] == [17, 18, 20]


def test_refused_pods():
    with pytest.raises(ValueError, match="96 IPUs are not a whole number of ladders of 64"):
        links.route(0, 1, 96)
    assert [links.round_up_to_ladders(n) for n in (1, 2, 5, 64, 65)] == [1, 2, 6, 64, 128]


@pytest.mark.parametrize("ipus, gateways", [(64, 0), (128, 1), (256, 3)])
def test_a_sync_of_pods_waits_for_gateways(ipus, gateways):
    gc200 = CHIPS["gc200"]
    one_way = 17 * 15e-9 + gateways * links.GATEWAY_LATENCY_SECONDS
    assert links.sync_cycles(gc200, ipus) == pytest.approx(2 * one_way * gc200.clock_hz, abs=1)
