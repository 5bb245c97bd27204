"""What options of PopLibs' planner change of a product: figures added up by hand, and that less is never more."""

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tf_ipu_shim.cycle_model import Computation, MatmulOptions, OptionError, largest_call, phases_of, plan_matmul
from tf_ipu_shim.cycle_model.matmuls import SYNC_CYCLES, _OperandOrder
from tf_ipu_shim.cycle_model.sizes import MatmulSizes
from tf_ipu_shim.cycle_model.units import units_of, vertex_cycles
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block

pytestmark = pytest.mark.without_tensorflow

GC200, GC2 = CHIPS["gc200"], CHIPS["gc2"]
EVERYTHING = float("inf")
FLOAT32, VECTOR_OF_FLOAT32 = 4, 4
"""Bytes of a partial sum, and sums of a vector."""


def on_one_tile(chip, half, limit=EVERYTHING):
    """64 x 64 by 64 x 32 of halves, all on one tile."""
    return _OperandOrder(units_of(chip, 2, half), 1, 64, 64, 32, 1, 2).plan(chip, (1, 1, 1, 1), limit)


def test_half_sums_take_half_the_bytes():
    # Operands 64 x 64 and 64 x 32 of two bytes; 64 x 32 sums of four bytes, or of two.
    assert on_one_tile(GC200, False).temporary_bytes == 8192 + 4096 + 8192
    assert on_one_tile(GC200, True).temporary_bytes == 8192 + 4096 + 4096
    assert [on_one_tile(GC200, half).partial_bytes for half in (False, True)] == [8192, 4096]


def test_float16_partials_halve_the_cycles_if_the_chip_can():
    # 8 of 16 units: four times eight columns; each pass loads 8 x 32 bytes at 8 a cycle. With all of them, two times
    # sixteen columns, and twice as long to load. A worker has 11 rows.
    # It spends 7 cycles once, and 3 of them for each other input group. Five workers have 11 rows and one 9.
    inner, first = 6 * (38 + 4 * 8 - 7), 6 * (37 + 4 * 8 - 7)

    def by_hand(columns, load):
        kept = 6 * (7 + 3 * 3)
        return 50 + kept + 13 + 3 * (15 + columns * (25 + load + inner)) + 11 + columns * (18 + 7 + load + first)

    assert on_one_tile(GC200, False).compute == by_hand(4, 32)
    assert on_one_tile(GC200, True).compute == by_hand(2, 64)
    # A GC2 has eight for both: only the bytes differ.
    assert on_one_tile(GC2, False).compute == on_one_tile(GC2, True).compute == by_hand(4, 32)
    assert on_one_tile(GC2, True).partial_bytes == 4096


def test_a_large_product_is_nearly_twice_as_fast_with_half_sums():
    single, half = (
        plan_matmul(GC200, 1, 4096, 4096, 4096, element_bytes=2, partials_are_half=half) for half in (False, True)
    )
    assert 1.75 < single.compute / half.compute <= 2.1


SLICE = 25 + 6 * (39 + 24)
"""Cycles of a slice of fewer than four numbers a worker; four more take two: popopsCycleEstimators.cpp:1755."""


def test_what_does_not_fit_comes_in_parts_of_its_columns():
    whole, plan = (on_one_tile(GC200, False, limit) for limit in (EVERYTHING, 14_400))
    # The 8192 bytes of rows stay. Coefficients of 4096 bytes and sums of 8192 come in two halves.
    assert (plan.serial, plan.temporary_bytes) == (2, 8192 + 2048 + 4096)
    # A tile has one of 1,472 parts of the coefficients. It writes 1024 results each time: 42 vectors a worker.
    assert plan.between_parts == 2 * (SLICE + SLICE + 6 * 2 * 42)
    assert plan.compute == 2 * vertex_cycles(GC200, units_of(GC200, 2, False), 64, 4, 2)
    assert (plan.exchange, plan.rearrange, plan.sync) == (whole.exchange, whole.rearrange, 2 * 126)


def test_what_does_not_fit_comes_in_parts_of_its_sums():
    # There is one group of eight columns. Its sums of 2048 bytes are there twice, to be added up.
    order = _OperandOrder(units_of(GC200, 2, False), 1, 64, 64, 8, 1, 2)
    plan = order.plan(GC200, (1, 1, 1, 1), 9_000)
    assert (plan.serial, plan.temporary_bytes) == (2, (8192 + 1024) / 2 + 2048 + 2048)
    # A worker adds 43 vectors of two numbers, in 3 cycles each.
    assert plan.between_parts == 2 * (SLICE + SLICE + (29 + 43 * 3) * 6 + 11)
    assert plan.compute == 2 * vertex_cycles(GC200, units_of(GC200, 2, False), 64, 2, 1)
    # No more parts than there are: four times 16 of the summed axis.
    assert order.plan(GC200, (1, 1, 1, 1), 0) is None
    assert [share.parts for share in order.smallest_shares(1)] == [(1, 1), (4, 1)]


def test_parts_take_no_less_than_the_whole():
    for columns, inner in ((104, 208), (8, 5 * 16), (13 * 8, 16)):
        order = _OperandOrder(units_of(GC200, 2, False), 3, 74, inner, columns, 1, 2)
        whole = order.share((1, 1, 1, 1))
        shares = [order.share((1, 1, 1, 1), parts) for counts in whole.part_counts() for parts in counts]
        sizes = [share.temporary_bytes for share in shares]
        assert shares and max(sizes) < whole.temporary_bytes
        for share in shares:
            assert share.plan(GC200).cycles >= whole.plan(GC200).cycles + (share.plan(GC200).serial - 1) * SYNC_CYCLES


def test_parts_have_different_shares_and_none_is_idle():
    # Of 13: two parts of 7, three of 5, four of 4, five of 3, seven of 2. With six, the share is 3, too.
    shares = _OperandOrder(units_of(GC200, 2, False), 1, 64, 16, 13 * 8, 1, 2).share((1, 1, 1, 1)).part_counts()
    assert list(shares) == [[], [(1, parts) for parts in (2, 3, 4, 5, 7, 13)]]


@pytest.mark.parametrize(("rows", "parts"), [(6, 2), (4096, 5)])
def test_more_parts_that_fit_may_take_less_work(rows, parts):
    # Two parts of five groups of columns compute six of them, five parts compute five. Many rows are worth three syncs.
    order = _OperandOrder(units_of(GC200, 2, False), 1, rows, 64, 5 * 8, 1, 2)
    limit = order.share((1, 1, 1, 1), (1, 2)).temporary_bytes
    assert order.plan(GC200, (1, 1, 1, 1), limit).serial == parts


def test_phases_are_the_plan():
    for planning in (MatmulOptions(), MatmulOptions(True), MatmulOptions(False, 0.05)):
        product = Computation("product", "x", MatmulSizes(1, 512, 1024, 512), 2, planning)
        plan = plan_matmul(GC200, 1, 512, 1024, 512, 1, 2, *planning)
        assert sum(phase.cycles for phase in phases_of(product, GC200)) == plan.cycles


SIZES = st.integers(1, 3000)
PROPORTIONS = st.floats(0, 1)
PRODUCTS = st.tuples(
    st.sampled_from([GC2, GC200, CHIPS["bow"]]),
    st.integers(1, 40),
    SIZES,
    SIZES,
    SIZES,
    st.sampled_from([1, 1, 9]),
    st.sampled_from([2, 4]),
)


@settings(max_examples=60)
@given(PRODUCTS, st.booleans(), PROPORTIONS, PROPORTIONS)
def test_a_smaller_proportion_takes_less_memory_and_more_time(product, half, first, second):
    less, more = (plan_matmul(*product, half, proportion) for proportion in sorted((first, second)))
    assume(less.temporary_bytes <= min(first, second) * product[0].bytes_per_tile)
    assert less.temporary_bytes <= more.temporary_bytes
    assert less.cycles >= more.cycles


@settings(max_examples=60)
@example((GC2, 13, 74, 129, 2729, 1, 2), 0.09375)  # five parts of five groups compute five, four compute eight
@given(PRODUCTS, PROPORTIONS)
def test_half_sums_never_take_longer(product, proportion):
    assume(product[5] == 1)  # a vertex of a kernel takes a cycle more a worker with half sums
    single, half = (plan_matmul(*product, is_half, proportion) for is_half in (False, True))
    assume(single.temporary_bytes <= proportion * product[0].bytes_per_tile)
    # A vector of half sums takes a worker two cycles more to add up, and is twice as long. Only where a worker has one
    # vector already is nothing saved: docs/reference/facts.md, section "Planning formulas".
    others, workers = single.split[3] - 1, product[0].worker_contexts
    sums = single.received_bytes // (FLOAT32 * others) if others else 0
    longer = 2 * workers * single.serial if 0 < sums <= workers * VECTOR_OF_FLOAT32 else 0
    assert half.cycles <= single.cycles + longer
    if product[-1] == 4:
        assert half == single, "sums of fp32 operands are fp32"


@settings(max_examples=60)
@given(PRODUCTS, PROPORTIONS)
def test_a_plan_stays_within_its_proportion_or_doubles_it(product, proportion):
    plan, limit = plan_matmul(*product, False, proportion), proportion * product[0].bytes_per_tile
    if limit < 1:
        assert plan.temporary_bytes <= plan_matmul(*product, False, 0.001).temporary_bytes
    elif plan.temporary_bytes > limit:
        assert plan == plan_matmul(*product, False, 2 * proportion)


def test_options_are_read_as_poplar_takes_them():
    assert MatmulOptions().updated({"partialsType": "half", "availableMemoryProportion": "0.25"}) == (True, 0.25)
    assert MatmulOptions(True, 0.1).updated({"partialsType": None, "planType": "serial"}) == (True, 0.1)
    assert MatmulOptions(True).updated({"partialsType": "float", "availableMemoryProportion": 0}) == (False, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"availableMemoryProportion": "-0.1"}, "Value must be greater than or equal to 0"),
        ({"availableMemoryProportion": "nan"}, "is 'nan'; expected a number"),
        ({"availableMemoryProportion": []}, "expected a number"),
        ({"partialsType": "bfloat"}, "expected 'half' or 'float'"),
        ({"partialsType": []}, "expected 'half' or 'float'"),
    ],
)
def test_values_that_poplar_refuses(options, message):
    with pytest.raises(OptionError, match=message):
        MatmulOptions().updated(options)


def test_the_largest_call_of_a_program_loops_included():
    small = Computation("product", "small", MatmulSizes(1, 16, 64, 32), 2)
    large = Computation("product", "large", MatmulSizes(1, 512, 2048, 512), 2, MatmulOptions(False, 0.1))
    body, block = Block("body"), Block("program")
    body.run("large", (), (), work=large)
    block.run("empty", (), (), work=Computation("product", "empty", MatmulSizes(1, 0, 64, 32), 2))
    block.run("small", (), (), work=small)
    block.run("loop", (), (), (body,), True)
    call, plan = largest_call(block, GC200), plan_matmul(GC200, 1, 512, 2048, 512, 1, 2, False, 0.1)
    assert (call.name, call.tiles, call.parts) == ("large", plan.tiles, plan.serial)
    assert call.tile_bytes == plan.temporary_bytes <= call.limit_bytes == 63_897
    assert call.operand_bytes + call.partial_bytes == call.tile_bytes
    assert call.partial_bytes == plan.partial_bytes + plan.received_bytes
    assert call.bytes == plan.tiles * plan.temporary_bytes
    assert largest_call(Block("nothing"), GC200) is None


@pytest.mark.parametrize(
    ("inner", "element_bytes", "group"),
    [(1, 2, 4), (4, 2, 4), (5, 2, 8), (9, 2, 16), (40, 2, 16), (1, 4, 2), (3, 4, 4), (8, 4, 8), (1, 1, 8), (20, 1, 16)],
)
def test_few_elements_of_the_summed_axis_take_their_own_group(inner, element_bytes, group):
    """An input group divides 16 numbers of fp16, or 8 of fp32, and the units load 8 bytes at least.

    On one tile: 6 rows of a group, coefficients of as many numbers for all units, and the sums, for each pass.
    """
    tile = GC200.with_tiles(1)
    units = units_of(tile, element_bytes, False)
    passes = -(-inner // units.inner)
    plan = plan_matmul(tile, 1, 6, inner, 6, 1, element_bytes)
    operands = passes * group * element_bytes * (6 + units.units)
    assert plan.temporary_bytes == operands + 6 * units.units * units.partial_bytes
