"""Published figures of programs that the models are calibrated with."""

from __future__ import annotations

import ast
import csv
import functools
import hashlib
import pathlib
from typing import NamedTuple

DATA = pathlib.Path(__file__).resolve().parents[2] / "validation" / "model"
PUBLISHED, MODELLED = DATA / "published.csv", DATA / "modelled.csv"
FITS, CLOSE, DOES_NOT_FIT = "fits", "close", "does not fit"
FIT, SEEN, TEST = ROLES = ("fit", "seen", "test")
"""The role of a row: a number of the model is fitted to it, its mechanisms were chosen with it in view, or neither."""
MODEL = ("capacity", "compiler", "cycle_model", "machine", "memory_model")
"""The packages whose sources decide a figure."""


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
        role: the role of the row for the model, one of `ROLES`.
        source: where it is published; details follow a semicolon.
        reason: why the model differs, for rows outside their bar.
    """

    case: str
    program: str
    system: str
    sdk: str
    figure: str
    published: str
    regime: str
    role: str
    source: str
    reason: str

    @property
    def is_verdict(self) -> bool:
        """Returns whether the figure says if the program fits."""
        return self.figure == "verdict"

    @property
    def publication(self) -> str:
        """The source without details."""
        return self.source.partition(";")[0]

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


@functools.cache
def model_stamp() -> str:
    """Returns a digest of the model's code and data: figures with another one are of an older model."""
    package = DATA.parents[1] / "tf_ipu_shim"
    digest = hashlib.sha256()
    for path in sorted(
        path for name in MODEL for path in (package / name).rglob("*") if path.suffix in (".py", ".csv")
    ):
        digest.update(content(path))
    return digest.hexdigest()[:12]


def content(path: pathlib.Path) -> bytes:
    """Returns what decides a figure in a source: of Python not its docstrings, comments and layout."""
    if path.suffix != ".py":
        return path.read_bytes()
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree).encode()


class Modelled(NamedTuple):
    """A modelled figure: its value, and the stamp of the model that it is of."""

    value: str
    stamp: str


def _read() -> dict[tuple[str, str], Modelled]:
    if not MODELLED.exists():
        return {}
    with MODELLED.open(newline="", encoding="utf-8") as file:
        return {(row["case"], row["figure"]): Modelled(row["modelled"], row["model"]) for row in csv.DictReader(file)}


def modelled() -> dict[tuple[str, str], str]:
    """Returns the modelled figures of the last run, by case and figure."""
    return {key: found.value for key, found in _read().items()}


def stamps() -> set[str]:
    """Returns the stamps of the models that the figures are of: one after a whole run."""
    return {found.stamp for found in _read().values()}


def is_of_this_model(row: Row) -> bool:
    """Returns whether the figure of a row was modelled by the sources as they are."""
    found = _read().get((row.case, row.figure))
    return found is not None and found.stamp == model_stamp()


def write_modelled(row: Row, value: str) -> None:
    """Writes a modelled figure to the data file, whose lines have the order of the published rows."""
    figures = {**_read(), (row.case, row.figure): Modelled(value, model_stamp())}
    keys = [(one.case, one.figure) for one in published()]
    with MODELLED.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("case", "figure", "modelled", "model"))
        writer.writerows((*key, *figures[key]) for key in keys if key in figures)
