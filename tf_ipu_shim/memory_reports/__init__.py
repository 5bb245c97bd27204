"""Builds memory reports of a script's programs, as Python objects, text, JSON and charts."""

from __future__ import annotations

from tf_ipu_shim.memory_reports.report import DeviceReport, IpuReport, MemoryReport, memory_report

__all__ = ["DeviceReport", "IpuReport", "MemoryReport", "memory_report"]
