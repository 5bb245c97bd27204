"""Cycles of vertices, products and programs, against figures added up by hand and by a calculator of the test's own."""

import math
import random

import numpy as np
import pytest

from tf_ipu_shim.cycle_model import Computation, SyncPoint, phases_of, plan_matmul, timeline_of, vertices
from tf_ipu_shim.cycle_model.library_vertices import reduce
from tf_ipu_shim.cycle_model.matmuls import SYNC_CYCLES
from tf_ipu_shim.cycle_model.phase import spread
from tf_ipu_shim.cycle_model.phases import reductions_in_stretch
from tf_ipu_shim.cycle_model.sizes import (
    SIZES_OF_KIND,
    CollectiveSizes,
    ElementwiseSizes,
    ExchangeSizes,
    FeedSizes,
    HostSizes,
    MatmulSizes,
    Move,
    ReduceSizes,
)
from tf_ipu_shim.cycle_model.timeline import SyncError
from tf_ipu_shim.cycle_model.units import units_of, vertex_cycles
from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, Value

pytestmark = pytest.mark.without_tensorflow

GC200, GC2 = CHIPS["gc200"], CHIPS["gc2"]


def add(elements, element_bytes=4):
    return Computation("elementwise", "add", ElementwiseSizes(elements, 2), element_bytes)


def test_element_wise_work_by_the_published_formula():
    # 600 fp32 numbers: 100 a worker, 50 vectors of two; a vector takes one cycle and two of loads and stores.
    assert vertices.elementwise(GC200, 600) == (29 + 50 * 3) * 6 + 11
    assert vertices.elementwise(GC200, 600, dtype="float16") == (26 + 25 * 3) * 6 + 11
    assert vertices.elementwise(GC200, 0) == 0


def test_a_cast_goes_by_loads_and_stores():
    # 200 numbers a worker: two cycles for four, as they are loaded two at a time; two checks of what is left over.
    assert vertices.cast(GC200, 1200, "float32", "float16") == 12 + (19 + 100 + 2 + 18) * 6
    assert vertices.cast(GC200, 1200, "float16", "float32") == 12 + (19 + 100 + 1 + 18) * 6


def test_a_sum_of_few_numbers_is_shared_by_the_workers():
    # 12 vectors of two for six workers: 16 cycles, and for each vector 11 and one for each partial after the first.
    assert reduce(GC200, 24, 10) == (16 + 2 * (11 + 9)) * 6
    # One result: each worker adds a sixth of what it is made of, then one of them the six sums.
    assert reduce(GC200, 2, 240) == (16 + 11 + 39) * 6 + (16 + 11 + 5) * 6
    assert reduce(GC200, 2, 240) < 6 * reduce(GC200, 2, 40)


def sums_on_a_tile(shape, axes, most):
    """The tile with most sums: numbers of a tensor are dealt out in memory's order, and looked at one by one."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    sums = np.zeros(shape, int)
    for axis in kept:
        sums = sums * shape[axis] + np.indices(shape)[axis]
    numbers = sums.reshape(-1)
    return max(len(set(numbers[begin : begin + most])) for begin in range(0, len(numbers), most))


def lengths_of(shape, axes):
    lengths = [1]
    for axis in reversed(range(len(shape))):
        if (axis in axes) == (len(lengths) % 2 == 0):
            lengths.append(1)
        lengths[-1] *= shape[axis]
    return lengths


def test_a_stretch_of_a_tensor_has_so_many_sums():
    chance = random.Random(11)
    exact = 0
    for _ in range(400):
        shape = [chance.choice((1, 2, 3, 4, 6, 8, 12)) for _ in range(chance.randint(1, 4))]
        axes = [axis for axis in range(len(shape)) if chance.random() < 0.5]
        most = chance.randint(1, math.prod(shape))
        ours, counted = reductions_in_stretch(most, lengths_of(shape, axes)), sums_on_a_tile(shape, axes, most)
        assert counted <= ours <= 2 * counted
        exact += ours == counted
    assert exact > 300


def test_sums_of_rows_stay_on_their_tiles():
    """A row that is on two tiles at most is summed there, and one number of each goes to another tile."""
    rows = Computation("reduce", "", ReduceSizes(1024 * 1024, 1024, (1024, 1024)))
    columns = Computation("reduce", "", ReduceSizes(1024 * 1024, 1024, (1, 1024, 1024)))
    moved = {sizes: sum(phase.bytes for phase in phases_of(sizes, GC200)) for sizes in (rows, columns)}
    # 714 numbers a tile: 1,469 tiles have some of two rows each, and of each column 1,025 tiles have one: 32 groups of
    # 33 are added up, and then the 32.
    assert moved[rows] == 3 * 1024 * 4 and moved[columns] == 32 * 33 * 1024 * 4 + 32 * 1024 * 4


def test_many_parts_of_few_sums_come_together_in_two_stages():
    """A bias' gradient: 32 sums of 1,936 numbers each, 42 numbers on each of 1,476 tiles' worth of the tensor."""
    bias = Computation("reduce", "", ReduceSizes(1936 * 32, 32, (1, 32, 1936)))
    names = [phase.name for phase in phases_of(bias, GC200) if phase.kind == "compute"]
    assert [name.split("/")[-2] for name in names] == [
        "InToIntermediateNoExchange", "IntermediateToIntermediate", "IntermediateToOutput"
    ]  # fmt: skip
    # 1,408 tiles have a part of each sum: 37 groups of 39 parts, each on a tile of its own, then the 37.
    assert [phase.bytes for phase in phases_of(bias, GC200) if phase.kind == "exchange"] == [
        37 * 39 * 32 * 4, 37 * 32 * 4
    ]  # fmt: skip
    few = Computation("reduce", "", ReduceSizes(64 * 32, 512, (1, 512, 4)))
    assert len([phase for phase in phases_of(few, GC200) if phase.kind == "exchange"]) == 1


def test_units_as_published():
    # 16 units of 32 bytes each at 8 bytes a cycle.
    assert units_of(GC200, 4, False).load == 64
    assert units_of(GC200, 2, True)[:3] == (16, 16, 4)
    assert units_of(GC200, 2, False).units == 8 and units_of(GC2, 2, False).units == 8


def test_a_product_on_one_tile_by_the_published_formula():
    units = units_of(GC200, 2, True)
    # Six workers with 10 rows each; 3 times 16 of the summed axis, 2 times 16 columns.
    # A worker spends 7 cycles once, and 3 of them for each other input group; the last one needs 14 more at its end.
    inner, first = 6 * (38 + 4 * 7 - 7) + 14, 6 * (37 + 4 * 7 - 7) + 14
    by_hand = 50 + 6 * (7 + 3 * 2) + 12 + 1
    by_hand += 2 * (16 - 1 + 2 * (19 + 6 + 64 + inner)) + 11 + 2 * (19 - 1 + 7 + 64 + first)
    assert vertex_cycles(GC200, units, 60, 3, 2) == by_hand


@pytest.mark.parametrize("chip", ["gc2", "gc200", "bow"])
@pytest.mark.parametrize("size", [2, 4])
def test_no_product_beats_the_units(chip, size):
    chip = CHIPS[chip]
    kind = "fp32" if size == 4 else "fp16"
    for rows, inner, columns in ((1, 64, 64), (512, 512, 512), (8192, 1024, 1024), (16, 4096, 1024)):
        plan = plan_matmul(chip, 1, rows, inner, columns, element_bytes=size, partials_are_half=True)
        least = 2 * rows * inner * columns / (chip.tiles * getattr(chip, f"amp_flop_per_cycle_{kind}"))
        assert plan.compute >= least and plan.tiles <= chip.tiles
        assert 0 < plan.busy_share <= 1


def test_a_large_product_keeps_the_units_busy():
    plan = plan_matmul(CHIPS["bow"], 1, 8192, 2048, 4096, element_bytes=2, partials_are_half=True)
    assert 2 * 8192 * 2048 * 4096 / (plan.compute * 1472 * 128) > 0.5


def test_more_work_takes_longer():
    cycles = [plan_matmul(GC200, 1, rows, 1024, 1024).cycles for rows in (64, 256, 1024, 4096)]
    assert cycles == sorted(cycles) and cycles[-1] > 4 * cycles[0]


def test_less_memory_never_makes_it_faster():
    parts = (0.6, 0.3, 0.2, 0.15)
    plans = [plan_matmul(GC200, 1, 2048, 2048, 2048, proportion=part) for part in parts]
    assert [plan.cycles for plan in plans] == sorted(plan.cycles for plan in plans)
    assert all(plan.temporary_bytes <= part * GC200.bytes_per_tile for plan, part in zip(plans, parts))


def test_a_product_that_no_plan_fits_takes_the_least_memory():
    plan = plan_matmul(GC200, 1, 4096, 4096, 4096, proportion=0.0)
    assert plan.temporary_bytes > 0


def test_dense_layer_of_a_published_report():
    """Graphcore's own tests note 8,700 cycles for it, estimated at compile time (docs/explanation/machine_model.md)."""
    ours = sum(phase.cycles for phase in phases_of(Computation("product", "", MatmulSizes(1, 16, 4096, 1024)), GC200))
    assert 8700 / 2 <= ours <= 8700 * 2


def test_tensors_lie_on_tiles_in_equal_pieces():
    assert spread(GC200, 0, 4) == (0, 0)
    assert spread(GC200, 10, 4) == (1, 10)
    assert spread(GC200, 1472 * 100, 4) == (1472, 100)
    assert spread(GC200, 1472 * 100 + 1, 4) == (math.ceil((1472 * 100 + 1) / 102), 102)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("product", (1, 64, 64, 64, 1)),
        ("product", (1, 3136, 64, 64, 9)),
        ("elementwise", (1000, 2, "add", "float32", 10, "inner", 10)),
        ("cast", (1000, "float32", "float16")),
        ("reduce", (100_000, 10)),
        ("reduce", (100_000, 10, (10_000, 10))),
        ("reduce", (100_000, 10, (1, 10, 10_000))),
        ("window", (1000, 9)),
        ("gather", (1000, 50_000)),
        ("update", (1000, 50_000)),
        ("norm", (1000, 8)),
        ("copy", (1000,)),
        ("random", (1000,)),
        ("sort", (1000, 100)),
        ("other", (1000,)),
        ("host", (1000,)),
        ("host", (-1000,)),
        ("remote", (1000,)),
    ],
)
def test_every_kind_takes_time_and_more_for_more(kind, sizes):
    def cycles(scale):
        scaled = (*sizes[:1], sizes[1] * scale, *sizes[2:]) if kind == "product" else (sizes[0] * scale, *sizes[1:])
        return sum(phase.cycles for phase in phases_of(Computation(kind, "x", SIZES_OF_KIND[kind](*scaled)), GC200))

    assert 0 < cycles(1) <= cycles(100) and cycles(1) < cycles(10_000)
    nothing = Computation(kind, "x", SIZES_OF_KIND[kind](*(0 if isinstance(size, int) else size for size in sizes)))
    assert sum(phase.cycles for phase in phases_of(nothing, GC200)) == 0


class Program(Block):
    """A block that is written down in few words."""

    def step(self, owner, work, *inside, loops=False):
        self.run(owner, (), (self.add(Value(4, owner, "temporary")),), inside, loops, work)


def alone(computation):
    return sum(phase.cycles for phase in phases_of(computation, GC200))


def loop(key, times, **options):
    return SyncPoint(key, times, (0,), **options)


def test_steps_of_one_ipu_follow_each_other():
    block = Program("p")
    block.step("a", add(1000))
    block.step("view", None)
    block.step("b", add(500_000))
    found = timeline_of({0: block}, GC200, 1)
    assert found.cycles == alone(add(1000)) + alone(add(500_000)) == found.busy[0]
    assert [(entry.name, entry.start) for entry in found.entries] == [("a", 0), ("b", alone(add(1000)))]


def test_a_loop_takes_its_body_so_often():
    body = Program("body")
    body.step("a", add(1000))
    block = Program("p")
    block.step("loop", loop(0, 10), body, loops=True)
    assert timeline_of({0: block}, GC200, 1).cycles == 10 * alone(add(1000))


def test_a_branch_takes_the_longer_one():
    short, long = Program("short"), Program("long")
    short.step("a", add(1000))
    long.step("b", add(100_000))
    block = Program("p")
    block.step("if", SyncPoint(0, parts=(0, 1), branches=True), short, long)
    assert timeline_of({0: block}, GC200, 1).cycles == alone(add(100_000))


def exchange(key, size, source, destination):
    return SyncPoint(key, computation=Computation("exchange", "", ExchangeSizes((Move(size, source, destination),)), 1))


def test_the_ipu_that_is_first_at_an_exchange_waits():
    first, second = Program("0"), Program("1")
    first.step("long", add(1_000_000))
    first.step("x", exchange(0, 4096, 0, 1))
    second.step("x", exchange(0, 4096, 0, 1))
    second.step("after", add(1000))
    found = timeline_of({0: first, 1: second}, GC200, 2)
    moved = links.sync_cycles(GC200, 2) + SYNC_CYCLES + GC200.cycles(links.phase_seconds([(4096, 0, 1)], 2))
    assert found.cycles == alone(add(1_000_000)) + moved + alone(add(1000))
    assert found.busy == {0: alone(add(1_000_000)) + moved, 1: moved + alone(add(1000))}


def test_simultaneous_copies_take_one_sync_and_the_busiest_link():
    # Each IPU of four swaps with its neighbours. 1 to 2 goes by 0, and 2 to 1 by 3: the links 0-2 and 3-1 carry one
    # copy each way, 1-0 those from 1 to 0 and to 2, 2-3 those from 2 to 3 and to 1.
    moves = [(size, *pair) for size, pair in ((4096, (0, 1)), (512, (1, 0)), (1024, (1, 2)), (1024, (2, 1)))]
    moves += [(1024, 2, 3), (512, 3, 2)]
    blocks = {ipu: Program(str(ipu)) for ipu in range(4)}
    swap = SyncPoint(0, computation=Computation("exchange", "", ExchangeSizes(tuple(Move(*move) for move in moves)), 1))
    blocks[2].step("long", add(1_000_000))
    for block in blocks.values():
        block.step("swap", swap)
    found = timeline_of(blocks, GC200, 4)
    # Two links of 128 Gibit/s at 85 % between neighbours; 15 ns for each of the two links of the longest way.
    seconds = links.EXCHANGE_SECONDS + 4096 / (2 * 128 * 2**30 / 8 * 0.85) + 2 * 15e-9
    moved = links.sync_cycles(GC200, 4) + SYNC_CYCLES + math.ceil(seconds * GC200.clock_hz)
    assert found.cycles == alone(add(1_000_000)) + moved
    assert found.busy == {0: moved, 1: moved, 2: found.cycles, 3: moved}
    (exchange,) = (entry for entry in found.entries if entry.name == "swap")
    assert exchange.children[1].phase.bytes == sum(size for size, *_ in moves)


@pytest.mark.parametrize("counted, conditions", [(True, 0), (False, 10)])
def test_the_condition_of_a_counted_loop_takes_no_time(counted, conditions):
    condition, body, block = Program("condition"), Program("body"), Program("p")
    condition.step("less", add(500))
    body.step("a", add(1000))
    block.step("loop", SyncPoint(0, 10, (0, 1), counted=counted, condition=0), condition, body, loops=True)
    assert timeline_of({0: block}, GC200, 1).cycles == 10 * alone(add(1000)) + conditions * alone(add(500))


def wait_of_step(ipus):
    """The cycles that a step of a collective takes without data."""
    return links.sync_cycles(GC200, ipus) + GC200.cycles(links.EXCHANGE_SECONDS)


@pytest.mark.parametrize("replicas, way", [(2, 1), (4, 2)])
def test_sums_over_replicas_go_both_ways_round_the_ring(replicas, way):
    size = 8_000_000
    block = Program("p")
    block.step("sum", Computation("collective", "sum", CollectiveSizes(size, 0, 0, 2), 1))
    (entry,) = timeline_of({0: block}, GC200, replicas, replicas=replicas).entries
    sent = 2 * size * (replicas - 1) // replicas
    expected = sent / way / links.link_bytes_per_second(replicas) * GC200.clock_hz
    found = next(child for child in entry.children if child.kind == "links")
    assert found.cycles == pytest.approx(expected, abs=1)
    assert found.phase.bytes == sent


@pytest.mark.parametrize("ipus", [16, 256])
@pytest.mark.parametrize("group, ways", [(2, 1), (4, 2)])
def test_a_sum_over_neighbours_stays_between_them(ipus, group, ways):
    size = 8_000_000
    block = Program("p")
    block.step("sum", Computation("collective", "sum", CollectiveSizes(size, group, 0, 2), 1))
    (entry,) = timeline_of({0: block}, GC200, ipus, replicas=ipus).entries
    sync, moved = entry.children
    assert moved.phase.bytes == 2 * size * (group - 1) // group
    assert moved.cycles == pytest.approx(
        moved.phase.bytes / ways / (2 * links.LINK_BYTES_PER_SECOND) * GC200.clock_hz, abs=1
    )
    assert sync.cycles == 2 * (group - 1) * wait_of_step(ipus)  # all wait for all, at each step


@pytest.mark.parametrize(
    "limit, kinds",
    [
        (0, ["sync", "links", "sync", "links", "sync", "links", "sync", "links"]),
        (700, ["sync", "links", "links", "sync", "links", "sync", "links"]),
        (2000, ["sync", "links", "links", "links", "sync", "links"]),
    ],
)
def test_independent_sums_wait_for_the_same_syncs(limit, kinds):
    block = Program("p")
    values = [block.add(Value(300, f"x{number}", "gradient")) for number in range(5)]
    for number in range(3):
        work = Computation("collective", f"sum {number}", CollectiveSizes(300, 0, limit, 2), 1)
        block.run(f"sum {number}", (), (values[number],), work=work)
    block.run("view", (values[2],), (values[3],))
    last = Computation("collective", "sum 3", CollectiveSizes(300, 0, limit, 2), 1)
    block.run("sum 3", (values[3],), (values[4],), work=last)
    found = timeline_of({0: block}, GC200, 4, replicas=4)
    phases = [child for entry in found.entries for child in entry.children]
    assert [child.kind for child in phases] == kinds
    assert all(child.cycles == 4 * wait_of_step(4) for child in phases if child.kind == "sync")


@pytest.mark.parametrize("replicas, kinds", [(1, ["host"]), (2, ["sync", "host"])])
def test_replicas_wait_for_each_other_at_the_host(replicas, kinds):
    """A second replica of Graphcore's MNIST tutorial adds 27 us to a mini-batch, with four copies and six sums."""
    block = Program("p")
    for number in range(4):
        block.step(f"copy {number}", Computation("host", "copy", HostSizes(4096)))
    for number in range(6):
        block.step(f"sum {number}", Computation("collective", "sum", CollectiveSizes(512, 0, 0, 2), 1))
    found = timeline_of({0: block}, GC200, 2, replicas=replicas)
    assert [child.kind for child in found.entries[0].children] == kinds
    alone = timeline_of({0: block}, GC200, 1)
    assert (found.cycles - alone.cycles) / GC200.clock_hz == pytest.approx(27e-6 * (replicas - 1), rel=0.1)


def test_a_gather_goes_round_once():
    block = Program("p")
    block.step("gather", Computation("collective", "gather", CollectiveSizes(8_000_000, 0, 0, 1), 1))
    (entry,) = timeline_of({0: block}, GC200, 4, replicas=4).entries
    sync, moved = entry.children
    assert moved.phase.bytes == 6_000_000
    assert sync.cycles == 3 * wait_of_step(4)


def test_ipus_that_wait_for_each_other_are_an_error():
    first, second = Program("0"), Program("1")
    for block, keys in ((first, (0, 1)), (second, (1, 0))):
        for key in keys:
            block.step(f"x{key}", exchange(key, 4, 0, 1))
            block.begin_segment()
    with pytest.raises(SyncError, match="x0, x1"):
        timeline_of({0: first, 1: second}, GC200, 2)


def pipeline(schedule, sizes, count):
    """A training pipeline of two stages on two IPUs: forward 0 and 1, backward 1 and 0, all in one loop."""
    bodies = [Program("0"), Program("1")]
    for ipu, size in enumerate(sizes):
        bodies[ipu].step(f"stage {ipu}", add(size))
    blocks = {}
    for ipu, body in enumerate(bodies):
        blocks[ipu] = Program(str(ipu))
        work = loop(0, count, schedule=schedule, stages=2, training=True)
        blocks[ipu].step("pipeline", work, body, loops=True)
    return timeline_of(blocks, GC200, 2).cycles


def test_a_pipelines_slots_last_as_long_as_its_busiest_ipu():
    one, other = 100_000, 400_000
    assert pipeline("Grouped", (one, other), 8) == (8 + 2 * 2 - 1) * alone(add(other))
    assert pipeline("Interleaved", (one, other), 8) == (2 * 8 + 2 * 2 - 2) * alone(add(other)) / 2
    # In the walk both stages run side by side: nothing is exchanged between them here.
    assert pipeline("Sequential", (one, other), 8) == 8 * alone(add(other))


def brute_force(steps):
    """Cycles of a list of steps, unrolled: numbers are element-wise work of that size, a pair is a loop."""
    total = 0
    for step in steps:
        if isinstance(step, tuple):
            for _ in range(step[0]):
                total += brute_force(step[1])
        else:
            total += (29 + math.ceil(math.ceil(share(step) / 6) / 2) * 3) * 6 + 11
    return total


def share(elements):
    """Numbers on the fullest tile: at least 128 bytes, in steps of 8."""
    piece = max(128, math.ceil(math.ceil(elements * 4 / 1472) / 8) * 8)
    return min(elements, piece // 4)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_against_a_calculator(seed):
    chance = random.Random(seed)
    keys = iter(range(1000))

    def some(depth):
        made = []
        for _ in range(chance.randrange(1, 5)):
            if depth and chance.random() < 0.4:
                made.append((chance.randrange(0, 4), some(depth - 1)))
            else:
                made.append(chance.randrange(1, 2_000_000))
        return made

    def block_of(steps):
        block = Program("p")
        for step in steps:
            if isinstance(step, tuple):
                block.step("loop", loop(next(keys), step[0]), block_of(step[1]), loops=True)
            else:
                block.step("add", add(step))
            block.begin_segment()
        return block

    steps = some(3)
    assert timeline_of({0: block_of(steps)}, GC200, 1).cycles == brute_force(steps)


def test_what_is_on_io_tiles_goes_on_by_an_exchange():
    # 32 tiles send 4,096 bytes each, 4 bytes a cycle.
    size, tiles = 32 * 4096, 32
    host = phases_of(Computation("host", "x", HostSizes(size)), GC200)
    given = phases_of(Computation("feed", "x", FeedSizes(size, tiles)), GC200)
    assert given[: len(host)] == host and [phase.cycles for phase in given[len(host) :]] == [SYNC_CYCLES, 1024]
    sent = phases_of(Computation("feed", "x", FeedSizes(-size, tiles)), GC200)
    assert [phase.cycles for phase in sent[:2]] == [SYNC_CYCLES, 1024]
    assert [given[-1].name, sent[1].name] == ["/infeed/inter-tileset-copy", "/inter-tileset-copy"]
    assert phases_of(Computation("feed", "x", FeedSizes(0, tiles)), GC200) == ()


def test_a_sum_of_what_a_product_gives_begins_where_that_is():
    """16 rows of 2 columns are 128 bytes, which one tile holds; a product has cut its rows over 16 tiles."""
    product = Computation("product", "", MatmulSizes(1, 16, 2, 2))
    assert plan_matmul(GC200, *product.sizes[:5]).split[:3] == (1, 16, 1)
    alone = Computation("reduce", "sum", ReduceSizes(32, 1, (32,)), 4)
    assert [phase.tiles for phase in phases_of(alone, GC200) if phase.kind == "compute"] == [1]
    on_each, final = [phase for phase in phases_of(alone._replace(product=product), GC200) if phase.kind == "compute"]
    assert (on_each.tiles, final.tiles) == (16, 1)
    assert final.name == "/ReduceFinalStage/IntermediateToOutput/Reduce"
    # A large tensor is on all tiles anyway.
    large = Computation("reduce", "sum", ReduceSizes(1 << 20, 1, (1 << 20,)), 4)
    assert phases_of(large._replace(product=product), GC200) == phases_of(large, GC200)
