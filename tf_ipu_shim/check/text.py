"""Lays out the findings of `tf-ipu check` as lines of text."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence

from tf_ipu_shim.check.findings import Finding, FindingKind

WIDTH = 118


def format_findings(findings: Sequence[Finding], width: int = WIDTH) -> str:
    """Returns the report: findings that need attention first, emulated names last, in few lines."""
    lines = []
    for kind in FindingKind:
        some = [finding for finding in findings if finding.kind is kind]
        if some:
            if kind is FindingKind.EMULATED:
                emulated = _format_emulated(some)
                lines += [f"{kind.value}: {len(emulated)}", *emulated]
            else:
                lines += [f"{kind.value}: {len(some)}", *_format_explained(some, width)]
    if not any(finding.kind is not FindingKind.TRAP for finding in findings):
        lines.append("nothing of Graphcore's is used")
    return "\n".join(lines)


def _format_explained(findings: Sequence[Finding], width: int) -> list[str]:
    lines = []
    for finding in findings:
        lines.append(f"  {_location(finding)} {finding.name}")
        for line in filter(str.strip, finding.why.split("\n")):
            indent = " " * (6 + len(line) - len(line.lstrip()))
            lines += textwrap.wrap(line.strip(), width, initial_indent=indent, subsequent_indent=indent)
    return lines


def _format_emulated(findings: Sequence[Finding]) -> list[str]:
    """Returns a line for each name, with all places that use it."""
    locations: dict[str, list[str]] = {}
    for finding in findings:
        locations.setdefault(finding.name, []).append(_location(finding).rstrip(":"))
    return [f"  {name}  {', '.join(where)}" for name, where in sorted(locations.items())]


def _location(finding: Finding) -> str:
    path, below = str(finding.path), os.path.relpath(finding.path)
    path = path if below.startswith(os.pardir) else below
    return f"{path}:{finding.line}:" if finding.line else f"{path}:"
