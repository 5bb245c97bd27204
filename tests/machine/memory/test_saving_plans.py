"""Figures of a program on a chip, and what is said when it does not fit."""

import dataclasses
import re

import pytest

from tf_ipu_shim import sdk
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import (
    Block,
    CodeCounts,
    LibraryCall,
    MemoryPlan,
    Mode,
    Value,
    code_of,
    fullest_ipu,
    out_of_memory_text,
    plan_of,
)
from tf_ipu_shim.machine.memory.plan_text import from_text, to_text

pytestmark = pytest.mark.without_tensorflow

CODE = code_of(CodeCounts(1, 2, 2, 3, 4))
TILE = 638_976  # bytes of a GC200 tile, as in Graphcore's own message


def block_of(variable, temporary):
    block = Block("program")
    weights = block.add(Value(variable, "weights", "weight", Mode.ALWAYS))
    product = block.add(Value(temporary, "MatMul", "temporary"))
    block.run("MatMul", (weights,), (product,))
    return block


def plan(*blocks, tiles=4, line_of=None):
    chip = CHIPS["gc200"].with_tiles(tiles)
    ipus = tuple(plan_of(ipu, block, chip, line_of) for ipu, block in enumerate(blocks))
    return MemoryPlan(program="cluster", device="/device:IPU:0", chip=chip.title, ipus=ipus)


def test_figures_of_a_program_that_fits():
    (ipu,) = plan(block_of(TILE, TILE)).ipus
    assert (ipu.always_live_bytes, ipu.not_always_live_bytes, ipu.peak_bytes) == (TILE, TILE, 2 * TILE)
    assert (ipu.limit_bytes, ipu.percent, ipu.fits) == (4 * TILE, 50.0, True)
    assert (ipu.categories["weight"], ipu.categories["temporary"], ipu.categories["gradient"]) == (TILE, TILE, 0)
    assert sum(ipu.tile_bytes) == ipu.peak_bytes
    assert [(owner.name, owner.kind, owner.bytes) for owner in ipu.owners] == [
        ("MatMul", "temporary", TILE),
        ("weights", "weight", TILE),
    ]
    assert ipu.largest_step == "MatMul"


def test_a_full_chip_fits_and_one_tile_too_full_does_not():
    assert plan(block_of(3 * TILE, TILE)).fits
    assert not plan(block_of(3 * TILE, TILE + 8)).fits


def test_no_message_for_a_program_that_fits():
    fitting = plan(block_of(8, 8))
    assert fullest_ipu(fitting) is None
    assert out_of_memory_text(fitting, sdk.parse("3.4")) == ""


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        ("3.4", "[Poplar][Compile engine] graph_memory_allocation_error: "),
        ("2.3", "[Poplar][Compile engine] graph_memory_allocation_error: "),
        ("2.2", "[Error][Compile engine] "),
        ("1.4", "[Error][Compile engine] "),
    ],
)
def test_the_message_begins_as_graphcores(line, origin):
    text = out_of_memory_text(plan(block_of(4 * TILE, 4 * 800)), sdk.parse(line)).splitlines()[0]
    assert text == (
        f"{origin}Out of memory on tile 0: {TILE + 800} bytes used but tiles only have {TILE} bytes of memory"
    )


def test_the_message_says_where_by_how_much_and_what_to_try():
    full = plan(block_of(8, 8), block_of(4 * TILE, 4 * 800), line_of={"MatMul": "train.py:12, in model"}.get)
    text = out_of_memory_text(full, sdk.parse("3.4"))
    assert re.search(r"IPU 1 \(shard 1\), which has 2\.44 MiB: 3\.12 KiB over, on 4 of 4 tiles", text)
    assert re.search(r"2\.44 MiB  weight +weights \(shard 1\)", text)
    assert re.search(r"3\.12 KiB  temporary +MatMul \(shard 1, train.py:12, in model\)", text)
    assert re.search(r"What to try: .*shard.*float16.*\n.*debug\.allowOutOfMemory", text)


def test_the_fullest_ipu_is_named_first_and_the_others_after_it():
    text = out_of_memory_text(plan(block_of(5 * TILE, 8), block_of(6 * TILE, 8)), sdk.parse("3.4"))
    assert "on IPU 1 (shard 1)" in text
    assert "Also too full: IPU 0." in text


def test_five_owners_are_listed():
    block = Block("program")
    for index in range(9):
        block.add(Value(10 * TILE + index, f"w{index}", "weight", Mode.ALWAYS))
    text = out_of_memory_text(plan(block), sdk.parse("3.4"))
    assert re.findall(r"weight +(w\d)", text) == ["w8", "w7", "w6", "w5", "w4"]


def test_one_owner_is_listed_once_with_all_it_needs():
    block = Block("program")
    parts = [block.add(Value(100, "Softmax", "temporary")) for _ in range(3)]
    block.run("Softmax", (), parts)
    ((ipu),) = plan(block).ipus
    assert [(owner.name, owner.bytes) for owner in ipu.owners] == [("Softmax", 300)]


def test_a_plan_is_kept_whole():
    made = plan(block_of(4 * TILE, 800))
    [ipu] = made.ipus
    made = dataclasses.replace(
        made, ipus=(dataclasses.replace(ipu, code=CODE, library=LibraryCall("c", *range(6)), library_tile_bytes=7),)
    )
    assert from_text(to_text(made)) == made


@pytest.mark.parametrize("fed, fits", [(2 * TILE, True), (2 * TILE + 1, False)])
def test_feeds_too_large_for_another_chip_s_io_tiles_move(fed, fits):
    chip, plain, apart = CHIPS["gc200"].with_tiles(8), block_of(100_000, 200_000), block_of(100_000, 200_000)
    apart.io_tiles = 2
    apart.add(Value(fed, "element", "argument", Mode.ALWAYS))
    found, alike = plan_of(0, apart, chip), plan_of(0, plain, chip)
    if fits:
        assert found.always_live_bytes == 100_000 + fed and found.tile_bytes[-2:] == (TILE, TILE)
        assert sum(found.tile_bytes[:-2]) == 300_000
    else:
        assert found == alike
