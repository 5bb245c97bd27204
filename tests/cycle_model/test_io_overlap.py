"""Copies of feeds on I/O tiles, beside what loops compute, against a calculator that goes through the iterations."""

import pytest

from tf_ipu_shim.cycle_model import Computation, SyncPoint, phases_of, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, FeedSizes
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, Value

pytestmark = pytest.mark.without_tensorflow

GC200, TILES = CHIPS["gc200"], 32
COMPUTING = GC200.with_tiles(1472 - TILES)
SIZES = [
    (8 << 10, 4 << 10, 6_000_000),
    (1 << 20, 4 << 10, 600_000),
    (4 << 10, 1 << 20, 600_000),
    (1 << 20, 2 << 20, 99),
]


def work(size):
    return Computation("elementwise", "add", ElementwiseSizes(size, 2))


def feed(size, name):
    return Computation("feed", name, FeedSizes(size, TILES))


def body(received, given, size, splits=1):
    """An iteration: an element comes, something is computed, a result goes."""
    block = Block("body")
    value = block.add(Value(4, "value", "temporary"))
    for number in range(splits if received else 0):
        block.run(f"in {number}", (), (value,), work=feed(received // splits, f"in {number}"))
    block.run("add", (value,), (), work=work(size))
    if given:
        block.run("out", (value,), (), work=feed(-given, "out"))
    return block


def loop(inner, times, **options):
    block = Block("program")
    block.run("loop", (), (), (inner,), True, SyncPoint(0, times, (0,), **options))
    return block


def cycles(computation, chip=GC200, host=None):
    """Of a computation's phases; of those with the host, or of the others, where that is asked."""
    return sum(one.cycles for one in phases_of(computation, chip) if host is None or (one.kind == "host") == host)


def gone_through(received, given, size, times):
    """Every iteration in turn, with the time at which the I/O tiles and the others are free."""
    load, hand_on = (cycles(feed(received, "x"), host=host) for host in (True, False))
    store, bring = (cycles(feed(-given, "x"), host=host) for host in (True, False))
    now = load
    for iteration in range(times):
        copied = now + (store if iteration else 0)
        handed_on = now + hand_on
        loaded = max(copied, handed_on) + (load if iteration < times - 1 else 0)
        done = max(handed_on + cycles(work(size), COMPUTING), copied) + bring
        now = max(done, loaded)
    return now + store


@pytest.mark.parametrize("times", [2, 3, 17])
@pytest.mark.parametrize(("received", "given", "size"), SIZES, ids=["compute", "in", "out", "both"])
def test_a_loop_of_one_ipu(received, given, size, times):
    made = timeline_of({0: loop(body(received, given, size), times)}, GC200, 1)
    assert made.cycles == gone_through(received, given, size, times) == made.busy[0]
    moved = sum(one.phase.bytes * times for one, times in leaves(made.entries) if one.kind == "host")
    assert moved == times * (received + given)  # each element once
    computed = sum(times for one, times in leaves(made.entries) if one.kind == "compute")
    assert computed == times


def leaves(entries, times=1):
    for entry in entries:
        if entry.children:
            yield from leaves(entry.children, times * entry.times)
        else:
            yield entry, times


def test_copies_hide_behind_what_is_longer():
    received, given, size = SIZES[0]
    first, many = (timeline_of({0: loop(body(received, given, size), times)}, GC200, 1).cycles for times in (2, 102))
    exchanges = cycles(feed(received, "x"), host=False) + cycles(feed(-given, "x"), host=False)
    assert many - first == 100 * (cycles(work(size), COMPUTING) + exchanges)


@pytest.mark.parametrize(
    ("options", "times"),
    [({"counted": False}, 9), ({"schedule": "Sequential", "stages": 1}, 9), ({}, 1)],
    ids=["not counted", "Sequential", "one iteration"],
)
def test_where_nothing_is_beside(options, times):
    received, given, size = SIZES[1]
    made = timeline_of({0: loop(body(received, given, size), times, **options)}, GC200, 1)
    alone = cycles(feed(received, "x")) + cycles(work(size), COMPUTING) + cycles(feed(-given, "x"))
    assert made.cycles == times * alone


def test_shards_are_not_overlapped():
    received, _, size = SIZES[1]
    blocks = {0: loop(body(received, 0, size), 9), 1: loop(body(0, 0, size), 9)}
    made = timeline_of(blocks, GC200, 2)
    assert made.cycles == 9 * (cycles(feed(received, "x")) + cycles(work(size), COMPUTING))


@pytest.mark.parametrize(("received", "given", "size"), SIZES, ids=["compute", "in", "out", "both"])
def test_a_pipeline(received, given, size):
    options = {"schedule": "Grouped", "stages": 2, "training": False}
    blocks = {0: loop(body(received, 0, size), 16, **options), 1: loop(body(0, given, size), 16, **options)}
    load, hand_on = (cycles(feed(received, "x"), host=host) for host in (True, False))
    store, bring = (cycles(feed(-given, "x"), host=host) for host in (True, False))
    computed = cycles(work(size), COMPUTING)
    slot = max(hand_on + max(computed, load), max(computed, store) + bring)
    made = timeline_of(blocks, GC200, 2)
    assert made.cycles == load + 17 * slot + store
    assert made.busy == {0: 16 * (hand_on + max(computed, load)), 1: 16 * (max(computed, store) + bring)}


def test_ipus_without_feeds_compute_on_all_tiles():
    received, _, size = SIZES[0]
    assert cycles(work(size)) < cycles(work(size), COMPUTING)
    busy = timeline_of({0: loop(body(received, 0, size), 1), 1: loop(body(0, 0, size), 1)}, GC200, 2).busy
    assert busy == {0: cycles(feed(received, "x")) + cycles(work(size), COMPUTING), 1: cycles(work(size))}


def test_several_feeds_come_one_after_the_other():
    received, given, size = SIZES[1]
    made = timeline_of({0: loop(body(received, given, size, splits=4), 3)}, GC200, 1)
    copies = sorted((one.start, one.start + one.cycles) for one, _ in leaves(made.entries) if one.kind == "host")
    assert len(copies) == 3 * (4 + 1)
    assert all(end <= begin for (_, end), (begin, _) in zip(copies, copies[1:]))
