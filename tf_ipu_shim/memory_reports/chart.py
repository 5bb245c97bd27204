"""Draws the memory report as an SVG chart: one bar per IPU by category, and below it how full the IPU is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tf_ipu_shim.machine.memory import CATEGORIES, IpuPlan
from tf_ipu_shim.machine.memory.byte_text import format_bytes, format_percent
from tf_ipu_shim.memory_reports.records import ReportData

# Those of the page of a profile (`profiling/page.js`).
_COLOURS = {
    "weight": "#3b6fb6",
    "optimizer_state": "#7aa6d8",
    "accumulator": "#4fb0ae",
    "constant": "#9aa5b1",
    "argument": "#b58b4c",
    "exchange": "#d9822b",
    "activation": "#58a55c",
    "fifo": "#8bc34a",
    "stash": "#c0ca33",
    "gradient": "#c2527c",
    "temporary": "#8e6bbf",
}
_LEFT, _BAR, _RIGHT, _ROW = 150, 400, 210, 42
_WIDTH = _LEFT + _BAR + _RIGHT
_LIGHT = "--ink:#1c2430;--ground:#fff;--track:#d8dde5;--bad:#b3261e"
_DARK = "--ink:#e6eaf0;--ground:#12171e;--track:#39424f;--bad:#ff8a80"
# Files follow the system. Notebooks and sites name their own scheme.
_STYLE = (
    f".ipu-memory{{{_LIGHT};background:var(--ground)}}"
    f"@media(prefers-color-scheme:dark){{.ipu-memory{{{_DARK}}}}}"
    f'[data-jp-theme-light="true"] .ipu-memory,[data-md-color-scheme="default"] .ipu-memory,'
    f".vscode-light .ipu-memory{{{_LIGHT}}}"
    f'[data-jp-theme-light="false"] .ipu-memory,[data-md-color-scheme="slate"] .ipu-memory,'
    f".vscode-dark .ipu-memory{{{_DARK}}}"
    + ".ipu-memory text{fill:var(--ink)}.ipu-memory .bad{fill:var(--bad)}.ipu-memory .track{fill:var(--track)}"
    + ".ipu-memory .full{fill:var(--ink)}.ipu-memory .limit{stroke:var(--bad);stroke-width:2}"
)


def render_svg(report: ReportData, verdict: str) -> str:
    """Draws a report as SVG.

    The longest bar is the fullest IPU, and the scale is the same for all. The thin bar below each shows how much of
    the IPU's memory that is; a red line marks the limit. The image is not wider than the page that shows it, and
    follows dark mode.

    Args:
        verdict: the first line.

    Example:
        >>> doubled = strategy.run(tf.function(lambda x: 2.0 * x), args=[tf.ones([16])])
        >>> tf_ipu_shim.memory_report().to_svg().startswith("<svg")
        True
    """
    bars = [
        (f"{device.name} IPU {ipu.modelled.ipu}", ipu.modelled)
        for device in report.devices
        for ipu in device.ipus
        if ipu.modelled is not None
    ]
    scale = max((plan.peak_bytes for _, plan in bars), default=1) or 1
    shown = [kind for kind in CATEGORIES if any(plan.categories[kind] for _, plan in bars)]
    legend, top = _draw_legend(shown)
    height = top + _ROW * len(bars) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ipu-memory" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" style="max-width:100%;height:auto" font-family="sans-serif" font-size="12">',
        f"<style>{_STYLE}</style>",
        f'<text x="10" y="20" font-size="14">Memory: {escape(verdict)}</text>',
        *legend,
    ]
    for row, (name, plan) in enumerate(bars):
        parts.extend(_draw_bar(name, plan, top + _ROW * row, shown, scale))
    return "\n".join([*parts, "</svg>", ""])


def _draw_legend(shown: Sequence[str]) -> tuple[list[str], int]:
    """Returns the legend of colours, and the position at which the bars begin."""
    parts, at, line = [], 10, 34
    for kind in shown:
        width = 34 + 7 * len(kind)
        if at + width > _WIDTH:
            at, line = 10, line + 18
        parts.append(f'<rect x="{at}" y="{line}" width="10" height="10" fill="{_COLOURS[kind]}"/>')
        parts.append(f'<text x="{at + 14}" y="{line + 9}">{_category_label(kind)}</text>')
        at += width
    return parts, line + 24


def _draw_bar(name: str, plan: IpuPlan, y: int, shown: Sequence[str], scale: int) -> Iterator[str]:
    yield f'<text x="10" y="{y + 15}">{escape(name)}</text>'
    x = float(_LEFT)
    for kind in shown:
        width = _BAR * plan.categories[kind] / scale
        yield (
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{_COLOURS[kind]}">'
            f"<title>{kind}: {plan.categories[kind]:,} bytes</title></rect>"
        )
        x += width
    colour = "" if plan.fits else ' class="bad"'
    caption = f"{format_bytes(plan.peak_bytes)}, {format_percent(plan.percent)}" + ("" if plan.fits else ": too full")
    yield f'<text x="{_LEFT + _BAR + 8}" y="{y + 14}"{colour}>{caption}</text>'
    yield from _draw_limit(plan, y + 23)
    if plan.remote:
        remote = f"and {format_bytes(sum(plan.remote.values()))} in Streaming Memory"
        yield f'<text x="{_LEFT}" y="{y + 38}" font-size="9">{remote}</text>'


def _draw_limit(plan: IpuPlan, y: int) -> Iterator[str]:
    """Draws the peak against the limit, which is at the end of the track, or within if the peak exceeds it."""
    total_bytes = max(plan.limit_bytes, plan.peak_bytes)
    used, limit = _BAR * plan.peak_bytes / total_bytes, _LEFT + _BAR * plan.limit_bytes / total_bytes
    yield f'<rect class="track" x="{_LEFT}" y="{y}" width="{_BAR}" height="4"/>'
    yield f'<rect class="full" x="{_LEFT}" y="{y}" width="{used:.1f}" height="4"/>'
    yield (f'<path class="limit" d="M{limit:.1f} {y - 3}v10"><title>limit: {plan.limit_bytes:,} bytes</title></path>')
    yield f'<text x="{_LEFT + _BAR + 8}" y="{y + 6}" font-size="9">limit {format_bytes(plan.limit_bytes)}</text>'


def _category_label(kind: str) -> str:
    return "FIFO" if kind == "fifo" else kind.replace("_", " ")
