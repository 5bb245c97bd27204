"""Builds the memory report: modelled memory of each IPU, measured allocations and transfers."""

from __future__ import annotations

import dataclasses
import json
from html import escape
from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.machine.environment.effects import RECORDED
from tf_ipu_shim.machine.memory import CODE_ERROR_FACTOR, LIBRARY_ERROR_FACTOR, IpuPlan, MemoryPlan, TilePart
from tf_ipu_shim.machine.memory.verdict import PEAK_ERROR_FACTOR
from tf_ipu_shim.memory_reports import chart, text
from tf_ipu_shim.memory_reports.records import NOT_MODELLED, DeviceReport, IpuReport, ReportData
from tf_ipu_shim.runtime import devices, ignored_options, plans


@dataclasses.dataclass(frozen=True)
class MemoryReport(ReportData):
    """The memory report of this process's programs, as text, JSON, chart, or HTML in notebooks.

    Example:
        >>> doubled = strategy.run(tf.function(lambda x: 2.0 * x), args=[tf.ones([16])])
        >>> report = tf_ipu_shim.memory_report()
        >>> report.devices[0].ipus[0].modelled.peak_bytes  # 16 numbers, which the results replace, and the factor
        68
    """

    def to_text(self, top: int = text.TOP, verbose: bool = False) -> str:
        """Returns the report as text of at most 100 columns, the verdict first.

        Args:
            top: how many of the largest allocations are listed.
            verbose: whether it says how each program runs.
        """
        return text.render_text(self, top, verbose)

    def to_json(self, indent: int | None = 2) -> str:
        """Returns the report as JSON; sizes in bytes."""
        return json.dumps(self.to_dict(), indent=indent, default=str)

    def to_svg(self) -> str:
        """Returns the modelled figures as an image: a bar for each IPU."""
        return chart.render_svg(self, text.verdict(self))

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as dictionaries and lists; pairs of IPUs become strings such as `"0->1"`."""
        return {
            "sdk": self.sdk,
            "not_modelled": NOT_MODELLED,
            "without_effect": [{"option": path, "value": value} for path, value in self.without_effect],
            "devices": [_device_dict(device) for device in self.devices],
        }

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """HTML for notebooks: the chart and the table."""
        figures = f"<pre style='overflow-x:auto'>{escape(self.to_text())}</pre>"
        return f"{self.to_svg()}<details><summary>All figures</summary>{figures}</details>"

    def _repr_svg_(self) -> str:
        """SVG for notebooks: the chart."""
        return self.to_svg()


def memory_report() -> MemoryReport:
    """Reports on this process at present: lowered programs, arenas, host transfers, exchanges.

    After a reset of the configuration, the report still describes the last one.

    Example:
        >>> doubled = strategy.run(tf.function(lambda x: 2.0 * x), args=[tf.ones([16])])
        >>> print(tf_ipu_shim.memory_report())
        IPU memory report (SDK 3.4)...
    """
    recorded = plans.recorded()
    now = devices.active() or tuple(device for device, _ in recorded.values())
    now = (*now, *(device for device in devices.applications() if device not in now))
    reports = tuple(
        _device_report(device, next((device_plans for owner, device_plans in recorded.values() if owner is device), []))
        for device in now
    )
    from tf_ipu_shim.configuration import system

    without: dict[str, Any] = {
        set_option.name: set_option.value for set_option in system.set_options() if set_option.effect == RECORDED
    }
    for device in now:
        without.update(device.recorded_options())
    without.update(ignored_options.arguments())
    return MemoryReport(str(sdk.current()), reports, tuple(without.items()))


def _device_report(device: Any, programs: list[MemoryPlan]) -> DeviceReport:
    library, ordinal, count = devices.load_library(), device.ordinal, device.num_ipus
    exchange = {}
    for source in range(count):
        for destination in range(count):
            moved = library.exchange(ordinal, source, destination)
            if moved.transfers:
                exchange[source, destination] = moved
    return DeviceReport(
        name=device.name,
        chip=device.chip.title,
        poplar_id=device.poplar_id,
        ipus=tuple(
            _ipu_report(ipu, physical, programs, library, ordinal) for ipu, physical in enumerate(device.physical_ipus)
        ),
        programs=tuple(programs),
        host_to_device=library.host_to_device(ordinal),
        device_to_host=library.device_to_host(ordinal),
        exchange=exchange,
        programs_lowered=library.programs_lowered(ordinal),
        programs_run=library.programs_run(ordinal),
    )


def _ipu_report(ipu: int, physical: int, programs: list[MemoryPlan], library: Any, ordinal: int) -> IpuReport:
    ipu_plans = [(plan, ipu_plan) for plan in programs for ipu_plan in plan.ipus if ipu_plan.ipu == ipu]
    largest = max(ipu_plans, key=lambda pair: pair[1].peak_bytes, default=None)
    variables: dict[str, int] = {}
    for plan in programs:
        variables.update((name, size) for (where, name), size in plan.variables.items() if where == ipu)
    return IpuReport(
        ipu=ipu,
        physical=physical,
        modelled=largest[1] if largest else None,
        program=largest[0].program if largest else "",
        variable_bytes=sum(variables.values()),
        measured_live_bytes=library.live_bytes(ordinal, ipu),
        measured_peak_bytes=library.peak_bytes(ordinal, ipu),
    )


def _plan_dict(plan: IpuPlan) -> dict[str, Any]:
    return {
        **plan.figures(),
        "percent": round(plan.percent, 3),
        "peak_error_factor": PEAK_ERROR_FACTOR,
        "largest_step": plan.largest_step,
        "categories": dict(plan.categories),
        "remote": dict(plan.remote),
        "library_call": plan.library and {**plan.library._asdict(), "error_factor": LIBRARY_ERROR_FACTOR},
        "always_live_with_code_bytes": plan.always_live_bytes + plan.code_bytes,
        "library_tile_bytes": plan.library_tile_bytes,
        "code": _code_dict(plan.code) if plan.code else None,
        "max_tile": plan.max_tile,
        "max_tile_bytes": plan.max_tile_bytes,
        "bytes_per_tile": plan.bytes_per_tile,
        "tile_bytes": list(plan.tile_bytes),
        "owners": [dataclasses.asdict(owner) for owner in plan.owners],
    }


def _code_dict(parts: tuple[TilePart, ...]) -> dict[str, Any]:
    return {
        "tile_bytes": sum(part.tile_bytes for part in parts),
        "always_live": True,
        "error_factor": CODE_ERROR_FACTOR,
        "parts": {part.name: part.tile_bytes for part in parts},
    }


def _device_dict(device: DeviceReport) -> dict[str, Any]:
    return {
        "name": device.name,
        "chip": device.chip,
        "poplar_id": device.poplar_id,
        "physical_ipus": [ipu.physical for ipu in device.ipus],
        "modelled": {
            "programs": [
                {
                    "name": plan.program,
                    "fits": plan.fits,
                    "verdict": plan.verdict.value,
                    "ipus": [_plan_dict(ipu) for ipu in plan.ipus],
                    "variables": [
                        {"ipu": ipu, "name": name, "bytes": size} for (ipu, name), size in plan.variables.items()
                    ],
                    "exchanges": {f"{source}->{to}": size for (source, to), size in plan.exchanges.items()},
                    "savings": [saving._asdict() for saving in plan.savings],
                    "coarse": dict(plan.coarse),
                    "shard_ipus": [list(ipus) for ipus in plan.shard_ipus],
                    "mode": plan.mode,
                    "mode_reason": plan.mode_reason,
                    "executable_cache": plan.cache,
                }
                for plan in device.programs
            ],
        },
        "measured": {
            "ipus": [
                {"ipu": ipu.ipu, "live_bytes": ipu.measured_live_bytes, "peak_bytes": ipu.measured_peak_bytes}
                for ipu in device.ipus
            ],
            "host_to_device": dataclasses.asdict(device.host_to_device),
            "device_to_host": dataclasses.asdict(device.device_to_host),
            "exchange": {
                f"{source}->{to}": dataclasses.asdict(moved) for (source, to), moved in device.exchange.items()
            },
            "programs_lowered": device.programs_lowered,
            "programs_run": device.programs_run,
        },
    }
