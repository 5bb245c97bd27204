"""Prints a measurement: as a line of the table, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Result:
    """One figure that has a target.

    Args:
        name: the name of the measurement.
        figure: median of the measurements, in `unit`.
        low: their lower quartile.
        high: their upper quartile.
        unit: `x` (ratio of our time to the reference's), `us` or `ms`.
        target: the highest value that the figure should have, in `unit`; None for a figure without a target.
        ours_us: median of our side in microseconds a call; None if there are no two sides.
        reference_us: the same of the reference.
        best: the ratio, or difference, of the fastest measurements: the value without other work on the machine.
        samples: number of measurements.
        more: further figures, by name.
    """

    name: str
    figure: float
    low: float
    high: float
    unit: str
    target: float | None
    ours_us: float | None = None
    reference_us: float | None = None
    best: float | None = None
    samples: int = 1
    more: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Returns whether the median reaches the target; None if there is none."""
        return None if self.target is None else self.figure <= self.target

    def as_json(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "more": dict(self.more), "met": self.met}

    @staticmethod
    def from_json(fields: Mapping[str, Any]) -> Result:
        return Result(**{name: value for name, value in fields.items() if name != "met"})


_DIGITS = {"x": 3, "us": 1, "ms": 1}


def table(results: Iterable[Result]) -> str:
    """Returns the results as a text table."""
    rows: list[tuple[str, ...]] = [("", "figure", "quartiles", "best", "target", "ours us", "reference us", "")]
    for result in results:
        digits = _DIGITS[result.unit]

        def show(value: float | None, digits: int = digits) -> str:
            return "" if value is None else f"{value:.{digits}f}"

        rows.append(
            (
                result.name,
                f"{show(result.figure)} {result.unit}",
                f"{show(result.low)} .. {show(result.high)}",
                show(result.best),
                show(result.target),
                show(result.ours_us, 1),
                show(result.reference_us, 1),
                {None: "", True: "met", False: "MISSED"}[result.met],
            )
        )
        rows.extend((f"    {name}", f"{value:.3g}", *[""] * 6) for name, value in result.more.items())
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        first, *others = (
            cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(zip(row, widths))
        )
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)
