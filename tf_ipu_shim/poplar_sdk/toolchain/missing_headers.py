"""Writes declarations of PopLibs' functions that do not exist here: a call is a compile-time error with advice.

The error names the function and its header. `tools/generate_poplibs.py` keeps the list `missing_names.csv`.
"""

from __future__ import annotations

import csv
import functools
import pathlib
import re

MISSING = pathlib.Path(__file__).resolve().parents[1] / "missing_names.csv"
_INCLUDES = (
    *("array", "functional", "map", "optional", "ostream", "set", "string", "tuple", "unordered_map", "utility"),
    *("vector", "poplar/Graph.hpp", "poplar/Program.hpp"),
)
_PLANS = re.compile("[Pp]lan|CycleCount")
_QUARTER = re.compile("Quarter|Metadata")
_NO_PLAN = "Leave the call out: values do not depend on plans, and nothing is planned here"
_NO_QUARTER = "Use half: float8 values are not emulated in C++"
_ADVICE = "Write it with a codelet or with the functions that the reference page PopLibs lists"


def write(directory: pathlib.Path) -> None:
    """Adds the declarations to the headers below `directory`, in their guards, or writes the headers."""
    for name, text in headers().items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            guarded, end, _ = file.read_text(encoding="utf-8").rpartition("#endif")
            file.write_text(f"{guarded}{text}{end}\n", encoding="utf-8")
        else:
            file.write_text(f"#pragma once\n{text}", encoding="utf-8")


@functools.cache
def headers() -> dict[str, str]:
    """Returns the declarations of each header by the name that programs include.

    Example:
        >>> "poplin::experimental::LUFactorization of <" in headers()["poplin/experimental/LuFactorization.hpp"]
        True
    """
    with MISSING.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    types = {row["name"] for row in rows if _is_type(row["declaration"])}
    texts: dict[str, str] = {}
    for header in dict.fromkeys(row["header"] for row in rows):
        own = [row for row in rows if row["header"] == header]
        includes = dict.fromkeys([*_INCLUDES, *(name for row in own for name in row["includes"].split())])
        own.sort(key=lambda row: not _is_type(row["declaration"]))  # functions have types in their declarations
        texts[header] = "".join(f"#include <{name}>\n" for name in includes if name != header) + "".join(
            _declaration(header, row["name"], row["declaration"], types) for row in own
        )
    return texts


def _is_type(declaration: str) -> bool:
    return re.match(r"(?:template <.*> )?class ", declaration) is not None


def _declaration(header: str, name: str, declaration: str, types: set[str]) -> str:
    """One declaration in its namespace, with the attribute that has the error."""
    space, _, last = name.rpartition("::")
    advice = _NO_PLAN if _PLANS.search(last) else _NO_QUARTER if _QUARTER.search(last) else _ADVICE
    said = f'("{name} of <{header}> is not emulated. {advice}")'
    if _is_type(declaration):
        start, _, rest = declaration.rpartition("class ")
        text = f"{start}class [[gnu::unavailable{said}]] {rest}"
    elif not declaration or types & set(re.findall(r"[\w:]+", declaration)):  # none may name an unavailable type
        text = f"template <typename... T> [[gnu::unavailable{said}]] int {last}(T &&...);"
    else:
        template, end, rest = (
            declaration.partition("> ") if declaration.startswith("template") else ("", "", declaration)
        )
        text = f"{template}{end}[[gnu::error{said}]] {rest}"
    return f"namespace {space} {{\n{text}\n}}\n"


if __name__ == "__main__":
    print(*headers().values(), sep="\n")
