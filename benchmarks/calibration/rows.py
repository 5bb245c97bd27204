"""Published figures of programs that the models are calibrated with."""

from __future__ import annotations

import csv
import pathlib
from typing import NamedTuple

DATA = pathlib.Path(__file__).resolve().parents[2] / "validation" / "model"
PUBLISHED, MODELLED = DATA / "published.csv", DATA / "modelled.csv"
FITS, CLOSE, DOES_NOT_FIT = "fits", "close", "does not fit"


class Row(NamedTuple):
    """A published figure.

    Args:
        case: its name.
        program: module of `benchmarks.published` and its arguments.
        system: name of the IPU system.
        sdk: release of the SDK, empty if it is not published.
        figure: a figure of `models.Model`.
        published: its value, or a verdict on memory.
        regime: what limits the program, one of `bars.REGIMES`.
        source: where it is published.
        reason: why the model differs, for rows outside their bar.
    """

    case: str
    program: str
    system: str
    sdk: str
    figure: str
    published: str
    regime: str
    source: str
    reason: str

    @property
    def is_verdict(self) -> bool:
        """Returns whether the figure says if the program fits."""
        return self.figure == "verdict"

    def ratio(self, modelled: str) -> float:
        """Returns the modelled figure divided by the published one."""
        return float(modelled) / float(self.published)

    def agrees(self, modelled: str) -> bool:
        """Returns whether a modelled verdict does not contradict the published one."""
        return modelled in (CLOSE, self.published)


def published() -> list[Row]:
    """Returns all rows."""
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        return [Row(**fields) for fields in csv.DictReader(file)]


def modelled() -> dict[tuple[str, str], str]:
    """Returns the modelled figures of the last run, by case and figure."""
    if not MODELLED.exists():
        return {}
    with MODELLED.open(newline="", encoding="utf-8") as file:
        return {(row["case"], row["figure"]): row["modelled"] for row in csv.DictReader(file)}


def write_modelled(figures: dict[tuple[str, str], str]) -> None:
    """Writes modelled figures, in the order of the published rows."""
    with MODELLED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "figure", "modelled"))
        writer.writerows((row.case, row.figure, figures[row.case, row.figure]) for row in published()
                         if (row.case, row.figure) in figures)  # fmt: skip
