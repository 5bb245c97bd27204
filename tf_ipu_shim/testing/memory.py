"""Assertions on modelled memory: fits, peak below a limit, no growth against a baseline."""

from __future__ import annotations

import numbers
import os
import types
from collections.abc import Iterator, Mapping

from tf_ipu_shim.machine.memory import IpuPlan, MemoryPlan
from tf_ipu_shim.machine.memory.byte_text import format_bytes, format_pair
from tf_ipu_shim.memory_reports import MemoryReport, memory_report
from tf_ipu_shim.profiling import baseline

_OWNERS_SHOWN = 5
__tracebackhide__ = True  # under pytest a failed assertion is shown at the test's line


def assert_fits(headroom: float = 0.0, report: MemoryReport | None = None) -> None:
    """Checks that every program leaves a part of each IPU's fullest tile free.

    A program that does not fit raises the out-of-memory error when it runs. This assertion keeps a margin for memory
    that is not modelled, such as code.

    Args:
        headroom: the part of a tile's memory that is left, 0 to 1.
        report: the report of the programs; by default this process's.

    Raises:
        AssertionError: a program leaves less, or none has run. The message names the largest allocations.
        ValueError: the part does not exist.
        TypeError: it is not a number.

    Example:
        >>> doubled = strategy.run(tf.function(lambda x: 2.0 * x), args=[tf.ones([16])])
        >>> assert_fits(headroom=0.3)
    """
    _check_number("headroom", headroom, "the part of a tile's memory that is left, such as 0.1")
    if not 0 <= headroom < 1:
        raise ValueError(
            f"headroom is {headroom!r}, and has to be a part of a tile's memory: 0 for none, below 1. Pass a value "
            "from 0 to below 1."
        )
    lines = []
    for plan, ipu in _program_plans(report):
        allowed = int(ipu.bytes_per_tile * (1 - headroom))
        if ipu.max_tile_bytes > allowed:
            lines.append(
                f"{plan.program} on IPU {ipu.ipu} of {plan.device} ({plan.chip}): "
                f"{format_pair(ipu.max_tile_bytes, allowed, f' on tile {ipu.max_tile}, and ')} of "
                f"{format_bytes(ipu.bytes_per_tile)} are allowed. In all {format_bytes(ipu.peak_bytes)} at "
                f"{ipu.largest_step}:"
            )
            lines += _largest_allocations(ipu)
    if lines:
        raise AssertionError("\n".join(lines))


def assert_peak_below(limit: int, ipu: int | None = None, device: int = 0, report: MemoryReport | None = None) -> None:
    """Checks that no program needs as much memory as a limit.

    Args:
        limit: bytes of an IPU, at the largest step.
        ipu: its place in the TensorFlow device; by default each of them.
        device: the number of the TensorFlow device.
        report: the report of the programs; by default this process's.

    Raises:
        AssertionError: a program needs this much, or none has run there. The message names the largest allocations.
        TypeError: `limit`, `ipu` or `device` is not a number.

    Example:
        >>> doubled = strategy.run(tf.function(lambda x: 2.0 * x), args=[tf.ones([16])])
        >>> assert_peak_below(1000)
    """
    _check_number("limit", limit, "bytes, such as 500 << 20 for 500 MiB")
    _check_number("device", device, "which TensorFlow device, such as 0 for /device:IPU:0")
    if ipu is not None:
        _check_number("ipu", ipu, "which IPU of the device, such as 0")
    name = f"/device:IPU:{device}"
    programs = list(_program_plans(report))
    ipu_plans = [
        (plan, ipu_plan) for plan, ipu_plan in programs if plan.device == name and (ipu is None or ipu_plan.ipu == ipu)
    ]
    if not ipu_plans:
        where = sorted({f"{plan.device}, IPU {ipu_plan.ipu}" for plan, ipu_plan in programs})
        raise AssertionError(
            f"No program has run on {name}{'' if ipu is None else f', IPU {ipu}'}, which the "
            f"assertion needs. Programs have run on {'; '.join(where)}. Name one of these."
        )
    lines = []
    for plan, ipu_plan in ipu_plans:
        if ipu_plan.peak_bytes >= limit:
            lines.append(
                f"{plan.program} on IPU {ipu_plan.ipu} of {name}: "
                f"{format_pair(ipu_plan.peak_bytes, limit, f' at {ipu_plan.largest_step}, and the limit is ')}:"
            )
            lines += _largest_allocations(ipu_plan)
    if lines:
        raise AssertionError("\n".join(lines))


def assert_no_growth(
    path: str | os.PathLike[str], percent: float = 0.0, write: bool = False, report: MemoryReport | None = None
) -> None:
    """Checks that no program needs more memory than a baseline file says.

    Args:
        path: the file.
        percent: how much a peak may grow.
        write: whether to write the present values to the file instead.
        report: the report of the programs; by default this process's.

    Raises:
        AssertionError: memory grew, the file is missing, or no program has run. The message names the allocations that
        grew. ValueError: the file is not a baseline.
        TypeError: `percent` is not a number.
    """
    check_growth(path, percent, write, report)


def check_growth(
    path: str | os.PathLike[str],
    percent: float,
    write: bool,
    report: MemoryReport | None = None,
    counts: Mapping[str, int] = types.MappingProxyType({}),
) -> None:
    """`assert_no_growth` with names of layers that do not depend on earlier tests, as `baseline_of` has them."""
    _check_number("percent", percent, "by how much a peak may grow, such as 2.5")
    list(_program_plans(report))
    now = baseline_of(report, counts)
    if write:
        baseline.write_baseline(now, path)
        return
    if not os.path.exists(path):
        raise AssertionError(
            f"There is no baseline {os.fspath(path)}; expected a file written before. Write it once with "
            "assert_no_growth(path, write=True), and keep it with the test."
        )
    lines = baseline.find_growth(baseline.read_baseline(path), now, percent)
    if lines:
        raise AssertionError("\n".join([f"More memory than {os.fspath(path)} says:", *lines]))


def baseline_of(
    report: MemoryReport | None = None, counts: Mapping[str, int] = types.MappingProxyType({})
) -> baseline.Baseline:
    """Returns the figures of a report as a baseline; by default this process's report.

    Args:
        counts: how many layers had each automatic name of Keras before; `dense_2` is named `dense` if 2 had.
    """
    report = memory_report() if report is None else report
    return baseline.make_baseline({device.name: device.programs for device in report.devices}, counts)


def _program_plans(report: MemoryReport | None) -> Iterator[tuple[MemoryPlan, IpuPlan]]:
    """Returns all programs with their memory on each IPU."""
    report = memory_report() if report is None else report
    if not isinstance(report, MemoryReport):
        raise TypeError(
            f"report is {report!r}, and has to be what memory_report() gives. Pass what memory_report() returned."
        )
    plans = [(plan, ipu) for device in report.devices for plan in device.programs for ipu in plan.ipus]
    if not plans:
        raise AssertionError("No program has run on IPUs, and the assertion needs one. Run a program first.")
    return iter(plans)


def _check_number(name: str, value: object, label: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}, and has to be a number: {label}. Pass a number.")


def _largest_allocations(ipu: IpuPlan) -> list[str]:
    return [
        f"  {format_bytes(owner.bytes):>10}  {owner.kind:<10}  {owner.name}{f' ({owner.line})' if owner.line else ''}"
        for owner in ipu.owners[:_OWNERS_SHOWN]
    ]
