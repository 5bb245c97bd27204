"""Fits, close or does not fit: the fullest tile with code and library temporaries against its memory."""

import dataclasses

import pytest

from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import (
    Block,
    CodeCounts,
    MemoryPlan,
    TilePart,
    Value,
    Verdict,
    close_text,
    code_of,
    plan_of,
)
from tf_ipu_shim.machine.memory.description import Mode
from tf_ipu_shim.machine.memory.verdict import PEAK_ERROR_FACTOR, verdict_of, worst

pytestmark = pytest.mark.without_tensorflow

TILE = 638_976


def planned(weight, temporary=0, code=(), library=0):
    block = Block("program")
    block.add(Value(4 * weight, "w", "weight", Mode.ALWAYS))
    x = block.add(Value(4 * temporary, "x", "temporary"))
    block.run("x", (), (x,))
    ipu = plan_of(0, block, CHIPS["gc200"].with_tiles(4))
    ipu = dataclasses.replace(
        ipu, code=tuple(TilePart(name, size, size) for name, size in code), library_tile_bytes=library
    )
    return MemoryPlan(program="train", device="/device:IPU:0", chip="GC200", ipus=(ipu,))


@pytest.mark.parametrize(
    "weight, code, library, expected",
    [
        (400_000, 0, 0, Verdict.FITS),
        (330_000, 50_000, 40_000, Verdict.FITS),  # 420,000 times 1.5 is 630,000
        (330_000, 50_000, 46_000, Verdict.CLOSE),
        (600_000, 0, 0, Verdict.CLOSE),
        (600_000, 500_000, 0, Verdict.CLOSE),  # tensors fit: published programs had such estimates, and ran
        (TILE, 0, 0, Verdict.CLOSE),
        (TILE + 8, 0, 0, Verdict.DOES_NOT_FIT),
    ],
)
def test_the_verdict_counts_code_and_temporaries(weight, code, library, expected):
    plan = planned(weight, code=[("exchange code", code)], library=library)
    assert plan.verdict is plan.ipus[0].verdict is expected
    assert plan.fits is (expected is not Verdict.DOES_NOT_FIT)


def test_the_error_factor_decides_between_fits_and_close():
    tensors = int(TILE / PEAK_ERROR_FACTOR)
    assert verdict_of(tensors, 0, TILE) is Verdict.FITS
    assert verdict_of(tensors, 1, TILE) is Verdict.CLOSE


def test_the_worst_ipu_decides():
    assert worst([]) is worst([Verdict.FITS]) is Verdict.FITS
    assert worst([Verdict.CLOSE, Verdict.DOES_NOT_FIT, Verdict.FITS]) is Verdict.DOES_NOT_FIT
    assert worst([Verdict.FITS, Verdict.CLOSE]) is Verdict.CLOSE


def test_a_warning_names_the_three_largest_contributions():
    plan = planned(300_000, 60_000, code=[("stacks", 3168), ("exchange code", 90_000)], library=120_000)
    text = close_text(plan)
    assert "to hold 559.7 KiB of 624.0 KiB." in text  # 573,168 of 638,976 bytes
    assert "weight 293.0 KiB, library temporaries 117.2 KiB, exchange code 87.9 KiB." in text
    assert "stacks" not in text and "temporary" not in text.partition("contributions")[2]


def test_code_grows_with_each_count():
    def means(*counts):
        return sum(part.mean_bytes for part in code_of(CodeCounts(*counts)))

    assert means(0, 0, 0, 0, 0) == 3168
    for number in range(len(CodeCounts._fields)):
        assert means(*(int(at == number) for at in range(len(CodeCounts._fields)))) > 3168


def test_the_fullest_tile_takes_part_in_all_compute_sets():
    tile, mean = (sum(part[kind] for part in code_of(CodeCounts(1, 10, 2.5, 0, 0))) for kind in (1, 2))
    assert tile - mean == 750  # 100 bytes of each


def test_code_of_the_published_adder():
    """Stacks and copies with the host are its own. A type of vertices has 140 bytes in it, 1,211 in the dense layer.

    Source: docs/reference/facts.md, section "Profiles".
    """
    tiles, stacks, host_exchange_code, packet_headers = 1216, 3_852_288, 351_328, 10_512
    published = stacks + 851_272 + 170_788 + 14_640 + host_exchange_code + packet_headers  # control code, vertex code
    parts = {part.name: part.mean_bytes for part in code_of(CodeCounts(1, 1, 1, 0, 0, host_exchanges=2))}
    assert parts["stacks"] * tiles == stacks
    assert parts["exchange code"] * tiles == pytest.approx(host_exchange_code + packet_headers, rel=0.01)
    assert sum(parts.values()) * tiles / published == pytest.approx(1.00, abs=0.01)


@pytest.mark.parametrize(
    "counts, mean, fullest",
    [
        (CodeCounts(5.37, 85, 13.6, 24, 23.5, 3), 12_753, 19_366),  # a BasicRNN of 256, without its tensors
        (CodeCounts(5.76, 177, 51.1, 54, 104.0, 3), 21_714, 29_972),  # two layers of GRU cells
        (CodeCounts(11.5, 149, 105.7, 86, 5023.0, 2), 154_700, 154_700),  # a stage of ResNet-50 for 64 x 64 pixels
    ],
)
def test_code_of_published_programs(counts, mean, fullest):
    """Bytes of a tile; the fullest tile of ResNet-50 is not published. Source: facts.md, section "Profiles"."""
    parts = code_of(counts)
    assert sum(part.mean_bytes for part in parts) / mean == pytest.approx(1.0, abs=0.15)
    assert sum(part.tile_bytes for part in parts) / fullest == pytest.approx(1.0, abs=0.25)
