"""The text of a report: the verdict first, one screen for many IPUs, then details; sizes in units or exactly."""

import dataclasses

import pytest

from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Mode, TilePart, Value, byte_text, plan_of
from tf_ipu_shim.memory_reports import text
from tf_ipu_shim.memory_reports.chart import render_svg
from tf_ipu_shim.memory_reports.records import DeviceReport, IpuReport, ReportData
from tf_ipu_shim.plugin.library import Transfers

pytestmark = pytest.mark.without_tensorflow
MIB = 1 << 20


def report(*weights):
    """A program with a weight of so many bytes on each IPU, and an argument of 1 MiB."""
    plans = []
    for ipu, size in enumerate(weights):
        block = Block(f"IPU {ipu}")
        block.add(Value(size, f"w{ipu}", "weight", Mode.ALWAYS))
        block.run("feed", (), [block.add(Value(MIB, f"x{ipu}", "argument"))])
        plans.append(plan_of(ipu, block, CHIPS["gc200"]))
    program = MemoryPlan(
        program="train", device="/device:IPU:0", chip="GC200 (Mk2)", ipus=tuple(plans), mode_reason="asked for"
    )
    ipus = tuple(IpuReport(plan.ipu, plan.ipu, plan, "train", 0, 0, 0) for plan in plans)
    moved = Transfers(0, 0)
    device = DeviceReport("/device:IPU:0", "GC200 (Mk2)", 0, ipus, (program,) if plans else (), moved, moved, {}, 1, 1)
    return ReportData("3.4", (device,), ())


def screen(found, **options):
    lines = text.render_text(found, **options).splitlines()
    return lines[: lines.index("Details of /device:IPU:0")]


def test_the_verdict_is_the_first_line():
    first, *_ = screen(report(3 * MIB, 99 * MIB))
    assert first == ("IPU memory report (SDK 3.4): fits. The fullest IPU, 1, needs 100.0 MiB of 897.0 MiB (11.1 %).")
    first, *rest = screen(report(3 * MIB, 1000 * MIB))
    assert first == "IPU memory report (SDK 3.4): does NOT fit: train."
    assert "Program train on /device:IPU:0 (GC200 (Mk2)) does NOT fit: it needs 1,001.0 MiB on IPU 1" in rest[3]
    assert any("TOO FULL" in line for line in rest)


def test_code_counts_in_the_first_line_and_in_the_sum():
    """IPU 0 has more bytes of tensors, IPU 1 more in all."""
    found = report(7 * MIB, 3 * MIB)
    code = (TilePart("stacks", 4096, 4096),)
    first, second = found.devices[0].ipus
    second = dataclasses.replace(second, modelled=dataclasses.replace(second.modelled, code=code))
    lines = screen(dataclasses.replace(found, devices=(dataclasses.replace(found.devices[0], ipus=(first, second)),)))
    assert lines[0].endswith(": fits. The fullest IPU, 1, needs 9.75 MiB of 897.0 MiB (1.1 %).")
    assert [line for line in lines if line.startswith("    1  ")][0].split()[5:7] == ["9.75", "MiB"]
    assert "17.8 MiB on the 2 IPUs together: weight 10.0 MiB, code 5.75 MiB, argument 2.00 MiB." in lines


def test_sixteen_ipus_are_one_screen():
    found = screen(report(*(MIB * (1 + ipu) for ipu in range(16))))
    assert len(found) <= 24 and max(map(len, found)) <= 100
    rows = [line.split()[0] for line in found if line.rstrip().endswith("train") and line.startswith("  ")]
    assert rows == ["15", "14", "13", "12", "11"]  # the fullest
    assert any(line.startswith("  and 11 more IPUs with 2.00 MiB of 897.0 MiB (0.2 %) to 12.0 MiB") for line in found)
    assert "152.0 MiB on the 16 IPUs together: weight 136.0 MiB, argument 16.0 MiB." in found
    whole = text.render_text(report(*[MIB] * 16))
    assert all(f"\n  {ipu:>3}  1.00 MiB" in whole.partition("Each IPU:")[2] for ipu in range(16))


def test_top():
    found = report(*(MIB * (1 + ipu) for ipu in range(16)))
    for top in (1, 2, 9):
        shown = screen(found, top=top)
        assert len(shown[shown.index("Largest allocations:") + 2 :]) == top + 1  # and an empty line
    assert "w15" in screen(found, top=1)[-2]


def test_equal_allocations_share_a_row():
    found = report(MIB, MIB)
    same = dataclasses.replace(found.devices[0].ipus[0].modelled, ipu=1)
    ipus = (found.devices[0].ipus[0], dataclasses.replace(found.devices[0].ipus[1], modelled=same))
    found = dataclasses.replace(found, devices=(dataclasses.replace(found.devices[0], ipus=ipus),))
    row = next(line for line in screen(found) if line.endswith("w0"))
    assert row.split()[:3] == ["0-1", "1.00", "MiB"]


def test_how_programs_run_is_told_on_request():
    found = report(MIB)
    assert "Execution modes" not in text.render_text(found)
    assert "train: by XLA programs, asked for" in text.render_text(found, verbose=True)


def test_no_program_says_why():
    found = report()
    found = dataclasses.replace(
        found, devices=(dataclasses.replace(found.devices[0], ipus=(IpuReport(0, 0, None, "", 0, 0, 16),)),)
    )
    shown = " ".join(screen(found))
    assert "No program was compiled" in shown and "ipu_compiler.compile" in " ".join(shown.split())
    assert not any(line.startswith("  IPU  always live") for line in screen(found))


@pytest.mark.parametrize(
    ("size", "shown", "exact"),
    [
        (0, "0 B", "0 B"),
        (1023, "1,023 B", "1,023 B"),
        (1024, "1.00 KiB", "1,024 B"),
        (10 * 1024, "10.0 KiB", "10,240 B"),
        (940_572_672, "897.0 MiB", "940,572,672 B"),
        (-(3 << 30), "-3.00 GiB", "-3,221,225,472 B"),
    ],
)
def test_sizes(monkeypatch, size, shown, exact):
    monkeypatch.delenv(byte_text.ENVIRONMENT_VARIABLE, raising=False)
    assert byte_text.format_bytes(size) == shown
    monkeypatch.setenv(byte_text.ENVIRONMENT_VARIABLE, "1")
    assert byte_text.format_bytes(size) == exact


@pytest.mark.parametrize("weight", [MIB, 1000 * MIB])
def test_the_image_marks_the_limit(weight):
    found = report(weight)
    (plan,) = (ipu.modelled for ipu in found.devices[0].ipus)
    image = render_svg(found, text.verdict(found))
    assert "limit 897.0 MiB</text>" in image
    mark = float(image.partition('class="limit" d="M')[2].split()[0])
    assert mark == pytest.approx(150 + 400 * min(1, plan.limit_bytes / plan.peak_bytes), abs=0.1)
    assert ("too full" in image) == (weight > 897 * MIB)
