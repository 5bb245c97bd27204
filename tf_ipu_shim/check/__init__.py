"""The porting report: how each IPU call of a script is handled. See `docs/porting_report.md`."""

from __future__ import annotations

from tf_ipu_shim.check.findings import Finding as Finding
from tf_ipu_shim.check.findings import Kind as Kind
from tf_ipu_shim.check.findings import check as check
from tf_ipu_shim.check.sources import Source as Source
from tf_ipu_shim.check.sources import sources as sources
from tf_ipu_shim.check.text import to_text as to_text
