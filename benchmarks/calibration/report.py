"""Formats the comparison with published figures as tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from benchmarks.calibration.bars import bars_by, left_out
from benchmarks.calibration.rows import FIT, Row, published
from tf_ipu_shim.cycle_model.error_bars import BARS, COMPUTE
from tf_ipu_shim.machine.memory import CODE_ERROR_FACTOR
from tf_ipu_shim.machine.memory.verdict import PEAK_ERROR_FACTOR

Figures = Mapping[tuple[str, str], str]
Bars = Mapping[tuple[str, bool], float]
_ROUNDING = 1e-9
"""A bar is the ratio of one of its rows, which is inside."""
BAR_HEAD = (
    "rows",
    "mean ratio",
    "bar",
    "inside the bar of other publications",
    "rows with fitted numbers",
    "their bar",
    "all rows inside the printed bar",
)
HEAD = ("case", "figure", "published", "modelled", "ratio", "bar", "printed bar")
PRINTED: Mapping[str, float] = {
    **BARS,
    "links": BARS[COMPUTE],
    "memory short": BARS[COMPUTE],
    "memory": PEAK_ERROR_FACTOR,
    "code": CODE_ERROR_FACTOR,
}
"""The error factor that is printed with figures of a regime.

`tf-ipu fit` does not tell programs that are limited by links, or by plans for short memory, from compute-bound ones.
"""


def to_text(rows: Sequence[Row], figures: Figures) -> str:
    """Returns the rows with their ratios, then the bars by regime, SDK and system."""
    known, bars = [row for row in rows if (row.case, row.figure) in figures], fitted_bars(figures)
    lines = [HEAD, *(line_of(row, figures[row.case, row.figure], bars) for row in known)]
    parts = [_table(lines)]
    parts.extend(_table([(name, *BAR_HEAD), *bar_lines(known, figures, key)]) for name, key in KEYS.items())
    return "\n\n".join(parts)


def fitted_bars(figures: Figures) -> Bars:
    """Returns the factor that holds for nine of ten rows, by regime and by whether numbers are fitted to the rows."""
    numbers = [row for row in published() if not row.is_verdict and (row.case, row.figure) in figures]
    return {
        (regime, is_fitted): bar.factor
        for is_fitted in (False, True)
        for regime, bar in bars_by(
            ratios([row for row in numbers if (row.role == FIT) == is_fitted], figures, _regime)
        ).items()
    }


def line_of(row: Row, modelled: str, bars: Bars) -> tuple[str, ...]:
    """Returns the cells of a row; instead of a ratio a verdict has whether it agrees."""
    if row.is_verdict:
        return row.case, row.figure, row.published, modelled, "yes" if row.agrees(modelled) else "NO", "", ""
    return (
        row.case,
        row.figure,
        f"{float(row.published):,.5g}",
        modelled,
        f"{row.ratio(modelled):.2f}",
        f"x {bars[row.regime, row.role == FIT]:.2f}",
        f"x {PRINTED[row.regime]}",
    )


def is_inside(row: Row, modelled: str, factor: float | None = None) -> bool:
    """Returns whether a figure is inside a bar; without a factor, inside the one that is printed with it."""
    return abs(math.log(row.ratio(modelled))) <= math.log(factor or PRINTED[row.regime]) + _ROUNDING


def needs_reason(row: Row, modelled: str, bars: Bars) -> bool:
    """Returns whether a figure is outside of the bar of its regime, or of the printed one."""
    return not (is_inside(row, modelled) and is_inside(row, modelled, bars[row.regime, row.role == FIT]))


def _regime(row: Row) -> str:
    return row.regime


def _sdk(row: Row) -> str:
    return row.sdk or "not published"


def _system(row: Row) -> str:
    return row.system


def _role(row: Row) -> str:
    return row.role


KEYS: Mapping[str, Callable[[Row], str]] = {"regime": _regime, "role": _role, "SDK": _sdk, "system": _system}
"""The columns by which bars are split."""


def ratios(rows: Sequence[Row], figures: Figures, key: Callable[[Row], str]) -> list[tuple[str, float]]:
    """Returns key and ratio of each row with a number."""
    return [(key(row), row.ratio(figures[row.case, row.figure])) for row in rows if not row.is_verdict]


def bar_lines(rows: Sequence[Row], figures: Figures, key: Callable[[Row], str]) -> list[tuple[str, ...]]:
    """Returns the cells of each group: bars of rows to which no number is fitted, of those with fitted ones, of all."""
    numbers = [row for row in rows if not row.is_verdict]
    blind = [row for row in numbers if row.role != FIT]
    bars = bars_by(ratios(blind, figures, key))
    fitted = bars_by(ratios([row for row in numbers if row.role == FIT], figures, key))
    lines: list[tuple[str, ...]] = []
    for group in dict.fromkeys(map(key, numbers)):
        bar, in_sample = bars.get(group), fitted.get(group)
        own = [row for row in blind if key(row) == group]
        inside, tried = left_out(ratios(own, figures, lambda row: row.publication))
        held = [is_inside(row, figures[row.case, row.figure]) for row in numbers if key(row) == group]
        lines.append((
            group,
            *((str(bar.rows), f"{bar.mean:.2f}", f"x {bar.factor:.2f}") if bar else ("0", "", "")),
            f"{inside} of {tried}" if tried else "",
            *((str(in_sample.rows), f"x {in_sample.factor:.2f}") if in_sample else ("0", "")),
            f"{sum(held)} of {len(held)}",
        ))  # fmt: skip
    return lines


def _table(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
