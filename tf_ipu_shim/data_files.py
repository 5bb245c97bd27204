"""Reads this package's tables of data: the CSV files in the folders of its modules."""

from __future__ import annotations

import csv
import pathlib


def rows(module_file: str, name: str) -> list[dict[str, str]]:
    """Returns the rows of a table in the folder of a module, each by column.

    Args:
        module_file: the module's `__file__`.
    """
    with pathlib.Path(module_file).with_name(name).open(encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))
