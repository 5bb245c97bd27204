"""The modelled figures as a picture: a bar for each IPU, by category, against the memory it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from tf_ipu_shim.machine.memory import CATEGORIES, IpuPlan
from tf_ipu_shim.profile.records import ReportData

_COLOURS = {
    "weight": "#4c6e9c",
    "optimizer_state": "#2f4a70",
    "accumulator": "#7b5a9e",
    "constant": "#8aa5c4",
    "argument": "#b9b37c",
    "exchange": "#d89a4a",
    "activation": "#6da06f",
    "fifo": "#3f7d55",
    "stash": "#9bc46a",
    "gradient": "#a8546e",
    "temporary": "#9a9a9a",
}
_LEFT, _BAR, _ROW, _TOP = 150, 560, 30, 64


def render(report: ReportData) -> str:
    """Draws a report as SVG.

    A bar that is longer than its frame does not fit. The scale is the same for all bars: the largest memory, or the
    largest need where that is more.

    Args:
        report: from `memory_report()`.

    Returns:
        An SVG document.

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
    scale = max((max(plan.limit_bytes, plan.peak_bytes) for _, plan in bars), default=1)
    shown = [kind for kind in CATEGORIES if any(plan.categories[kind] for _, plan in bars)]
    height = _TOP + _ROW * len(bars) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _BAR + 130}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        '<text x="10" y="20" font-size="14">Modelled memory at the largest step</text>',
        *_legend(shown),
    ]
    for row, (name, plan) in enumerate(bars):
        parts.extend(_bar(name, plan, _TOP + _ROW * row, shown, scale))
    return "\n".join([*parts, "</svg>", ""])


def _legend(shown: Sequence[str]) -> Iterator[str]:
    at, line = 10, 28
    for kind in shown:
        if at + 34 + 7 * len(kind) > _LEFT + _BAR + 130:
            at, line = 10, line + 16
        yield f'<rect x="{at}" y="{line}" width="10" height="10" fill="{_COLOURS[kind]}"/>'
        yield f'<text x="{at + 14}" y="{line + 9}">{kind.replace("_", " ")}</text>'
        at += 34 + 7 * len(kind)


def _bar(name: str, plan: IpuPlan, y: int, shown: Sequence[str], scale: int) -> Iterator[str]:
    yield f'<text x="10" y="{y + 15}">{escape(name)}</text>'
    x = float(_LEFT)
    for kind in shown:
        width = _BAR * plan.categories[kind] / scale
        yield (
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" fill="{_COLOURS[kind]}">'
            f"<title>{kind}: {plan.categories[kind]:,} bytes</title></rect>"
        )
        x += width
    frame = _BAR * plan.limit_bytes / scale
    colour = "#333" if plan.fits else "#c00"
    yield f'<rect x="{_LEFT}" y="{y}" width="{frame:.1f}" height="20" fill="none" stroke="{colour}"/>'
    yield f'<text x="{_LEFT + _BAR + 8}" y="{y + 15}" fill="{colour}">{plan.percent:.2f} %</text>'
    if plan.remote:
        remote = f"and {sum(plan.remote.values()):,} bytes in remote memory"
        yield f'<text x="{_LEFT}" y="{y + 28}" font-size="8">{remote}</text>'
