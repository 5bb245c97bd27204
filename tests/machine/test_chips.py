"""Chip figures against the published ones: docs/reference/facts.md, section "Chips"."""

import dataclasses

import pytest

from tf_ipu_shim.machine.chips import CHIPS, for_target

pytestmark = pytest.mark.without_tensorflow


@pytest.mark.parametrize(
    ("name", "target", "tiles", "kib_per_tile", "mib"),
    [
        ("gc2", "ipu1", 1216, 256, 304),
        ("gc200", "ipu2", 1472, 624, 897),
        ("bow", "ipu2", 1472, 624, 897),
        ("c600", "ipu21", 1472, 624, 897),
    ],
)
def test_published_memory(name, target, tiles, kib_per_tile, mib):
    chip = CHIPS[name]
    assert (chip.name, chip.target, chip.tiles, chip.worker_contexts) == (name, target, tiles, 6)
    assert chip.bytes_per_tile == kib_per_tile * 1024
    assert chip.total_bytes == mib * 1024 * 1024


def test_every_chip_is_one_of_the_four():
    assert set(CHIPS) == {"gc2", "gc200", "bow", "c600"}


@pytest.mark.parametrize(
    ("name", "kind", "published_tflops"),
    [
        ("gc2", "fp16", 124.5),
        ("gc2", "fp16_fp32", 124.5),
        ("gc2", "fp32", 31.1),
        ("gc200", "fp16", 250),
        ("gc200", "fp32", 62.5),
        ("bow", "fp16", 350),
        ("c600", "fp16", 280),
        ("c600", "fp8", 560),
    ],
)
def test_peak_is_within_half_a_percent_of_the_published_one(name, kind, published_tflops):
    assert CHIPS[name].peak_flops(kind) / 1e12 == pytest.approx(published_tflops, rel=0.005)


@pytest.mark.parametrize(("name", "published_tb_s"), [("gc2", 7.78), ("gc200", 7.83), ("bow", 10.9), ("c600", 8.75)])
def test_exchange_bandwidth(name, published_tb_s):
    chip = CHIPS[name]
    assert chip.exchange_bytes_per_cycle * chip.tiles * chip.clock_hz / 1e12 == pytest.approx(published_tb_s, rel=0.002)


def test_no_fp8_before_the_c600():
    with pytest.raises(ValueError, match=r"GC200.*no 'fp8' arithmetic.*has: fp16, fp16_fp32, fp32\."):
        CHIPS["gc200"].peak_flops("fp8")


def test_clock_turns_cycles_into_seconds_and_back():
    gc2 = CHIPS["gc2"]
    assert gc2.seconds(1.6e9) == 1.0
    assert gc2.cycles(0.5) == 800_000_000


def test_fewer_tiles():
    chip = CHIPS["gc200"].with_tiles(8)
    assert chip.total_bytes == 8 * 638_976
    assert CHIPS["gc200"].tiles == 1472


@pytest.mark.parametrize("tiles", [0, -1, 1.5, True])
def test_tiles_that_make_no_chip(tiles):
    with pytest.raises(ValueError, match="tiles cannot be simulated.*at least 1"):
        CHIPS["gc200"].with_tiles(tiles)


@pytest.mark.parametrize(("version", "tiles", "mib"), [("ipu1", 1216, 304), ("ipu2", 1472, 897), ("ipu21", 1472, 897)])
def test_target_versions(version, tiles, mib):
    chip = for_target(version)
    assert (chip.target, chip.tiles, chip.total_bytes) == (version, tiles, mib * 1024 * 1024)


def test_every_chip_has_a_target_version_that_can_be_asked_for():
    for chip in CHIPS.values():
        assert for_target(chip.target).target == chip.target
    assert for_target(CHIPS["bow"].target).clock_hz == 1.33e9, "the GC200: Bow has no version of its own"


@pytest.mark.parametrize("version", ["ipu3", "", "IPU2", None])
def test_unknown_target_version(version):
    with pytest.raises(ValueError, match="no IPU version .*Use one of: ipu1, ipu2, ipu21"):
        for_target(version)


def test_a_chip_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CHIPS["gc2"].tiles = 1
    assert CHIPS["gc2"].tiles == 1216
