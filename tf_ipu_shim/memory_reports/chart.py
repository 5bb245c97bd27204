"""Draws the memory report as an SVG chart: one bar per IPU, by category, against its capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tf_ipu_shim.machine.memory import CATEGORIES, IpuPlan
from tf_ipu_shim.memory_reports.records import ReportData

# Those of the page of a profile (`reports/page.js`).
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
_LEFT, _BAR, _RIGHT, _ROW = 150, 400, 210, 30
_WIDTH = _LEFT + _BAR + _RIGHT


def render_svg(report: ReportData) -> str:
    """Draws a report as SVG.

    The longest bar is the fullest IPU, and the scale is the same for all. If one needs more than it has, a red line
    marks what it has. The image is not a wider than what it is shown in.

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
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        'style="max-width:100%;height:auto;background:#fff" font-family="sans-serif" font-size="12">',
        '<text x="10" y="20" font-size="14">Modelled memory at the largest step</text>',
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
    colour = "#333" if plan.fits else "#b3261e"
    if plan.limit_bytes < plan.peak_bytes:
        at = _LEFT + _BAR * plan.limit_bytes / scale
        yield (
            f'<path d="M{at:.1f} {y - 3}v26" stroke="{colour}" stroke-width="2">'
            f"<title>limit: {plan.limit_bytes:,} bytes</title></path>"
        )
    caption = f"{plan.peak_bytes:,} bytes, {plan.percent:.2f} %" + ("" if plan.fits else ": too full")
    yield f'<text x="{x + 8:.1f}" y="{y + 14}" fill="{colour}">{caption}</text>'
    if plan.remote:
        remote = f"and {sum(plan.remote.values()):,} bytes in Streaming Memory"
        yield f'<text x="{_LEFT}" y="{y + 29}" font-size="9">{remote}</text>'


def _category_label(kind: str) -> str:
    return "FIFO" if kind == "fifo" else kind.replace("_", " ")
