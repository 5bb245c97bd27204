"""Memory reports of a script's programs: Python objects, text, JSON, charts.

report      `memory_report()` and the objects it returns
text        the report as a table of at most 100 columns
chart       one bar for each IPU, as SVG
run         `tf-ipu run --memory SCRIPT`
"""

from __future__ import annotations

from tf_ipu_shim.memory_reports.report import DeviceReport, IpuReport, MemoryReport, memory_report

__all__ = ["DeviceReport", "IpuReport", "MemoryReport", "memory_report"]
