"""Reports how each IPU call of a script is handled: emulated, without effect or not supported (`tf-ipu check`).

See `docs/how_to/port/porting_report.md`.
"""

from __future__ import annotations

from tf_ipu_shim.check.findings import Finding as Finding
from tf_ipu_shim.check.findings import FindingKind as FindingKind
from tf_ipu_shim.check.findings import find_uses as find_uses
from tf_ipu_shim.check.sources import SourceFile as SourceFile
from tf_ipu_shim.check.sources import collect_folder as collect_folder
from tf_ipu_shim.check.sources import collect_sources as collect_sources
from tf_ipu_shim.check.text import WIDTH as WIDTH
from tf_ipu_shim.check.text import format_findings as format_findings
