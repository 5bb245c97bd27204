"""Memory reports of a script's programs: Python objects, text, JSON, charts."""

from __future__ import annotations

from tf_ipu_shim.memory_reports.report import DeviceReport, IpuReport, MemoryReport, memory_report

__all__ = ["DeviceReport", "IpuReport", "MemoryReport", "memory_report"]
