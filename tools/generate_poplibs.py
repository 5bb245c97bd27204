"""Writes docs/poplibs.md, the functions of PopLibs that there are or are missing, and docs/poplar_options.md.

python tools/generate_poplibs.py          writes the page
python tools/generate_poplibs.py --check  ends with status 1 if the page is out of date

With a folder that contains PopLibs' own headers, `--names FOLDER` writes the list of their names, which the page and
error messages read.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterable

import cpp_names
import generated_page
import option_tables

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tf_ipu_shim" / "poplar_sdk"
NAMES = PACKAGE / "poplibs_names.txt"
PAGE = ROOT / "docs" / "poplibs.md"
OPTIONS_PAGE = ROOT / "docs" / "poplar_options.md"
WITHOUT_DEFINITION = ("poplar/CSRFunctions.hpp", "poplar/RandomSeed.hpp")
"""Poplar's headers whose functions no library defines."""
LIBRARIES = ("poputil", "popops", "poplin", "popnn", "poprand", "popsparse", "popfloat", "gcl")

HEAD = """---
type: reference
tags: [PopLibs, Poplar, C++, custom op]
---

# PopLibs

The headers and functions of PopLibs that custom ops can call. {present} of {all} names of PopLibs' headers are there.
A program that calls a missing one does not link: the linker names the function, and the second table its header. The
first rows of that table are functions of Poplar itself, all others of which are there.

Functions compute on the CPU. They compute half in float and round once at the end. In `popops::map` each operation of
an expression rounds. Reductions accumulate floats in double, products in float.

A new tensor lies linearly over the tiles, as `poputil::mapTensorLinearly` maps it. The result of an element-wise
function has the mapping of the first operand of its shape. Options and plans change no value, except where a header
says so. Forms of functions that add vertices to a `ComputeSet` of the caller are missing.

"""

OPTIONS_HEAD = """---
type: reference
tags: [Poplar, PopLibs, C++, OptionFlags, POPLAR_ENGINE_OPTIONS, POPLAR_RUNTIME_OPTIONS]
---

# Options of Poplar's functions

The options that functions of Poplar and PopLibs accept as `OptionFlags`, and whether they act. An unknown name or value
is `poplar::invalid_option`, whose message names the nearest option. Integer, Decimal and Text stand for any such value.

The variables `POPLAR_ENGINE_OPTIONS` and `POPLAR_RUNTIME_OPTIONS` override the options of an engine. They do not for
custom ops, where they are options of the TensorFlow program ([Flags](options_flags.md)).
"""


def present_names() -> dict[str, list[str]]:
    """Returns the names of our headers by header, sorted."""
    found = {}
    for library in LIBRARIES:
        for header in sorted((PACKAGE / "include" / library).glob("*.hpp")):
            names = {name.text for name in cpp_names.declared_names(header.read_text())}
            found[f"{library}/{header.name}"] = sorted(names)
    return found


def poplibs_names() -> dict[str, list[str]]:
    """Returns the names of PopLibs' headers by header."""
    found: dict[str, list[str]] = {}
    for line in NAMES.read_text().splitlines():
        header, name = line.split()
        found.setdefault(header, []).append(name)
    return found


def missing_in_poplar() -> dict[str, list[str]]:
    """The functions of Poplar's own headers that are declared only, by header."""
    found = {}
    for header in WITHOUT_DEFINITION:
        names = cpp_names.declared_functions((PACKAGE / "include" / header).read_text())
        found[header] = sorted(f"poplar::{name}" for name in names)
    return found


def write_names(folder: pathlib.Path) -> None:
    """Writes the list of the names of PopLibs' headers below a folder."""
    rows = []
    for header in sorted(folder.glob("*/**/*.hpp")):
        for name in sorted({name.text for name in cpp_names.declared_names(header.read_text(errors="replace"))}):
            rows.append(f"{header.relative_to(folder)} {name}\n")
    NAMES.write_text("".join(rows))


def _row(header: str, names: Iterable[str]) -> str:
    return f"| `{header}` | {', '.join(f'`{name}`' for name in names)} |\n"


def _effect(option: option_tables.Option) -> str:
    return f"none: {option.without_effect}" if option.without_effect else "acts"


def options_page() -> str:
    """The text of the page of options: one table for the functions that share one."""
    text = OPTIONS_HEAD
    for title, rows in option_tables.read_with_titles().values():
        functions = ", ".join(f"`{name}`" for name in title.split(", "))
        text += f"\n## {functions}\n\n| option | values | effect |\n|---|---|---|\n"
        for option in rows:
            values = ", ".join(value if value in option_tables.KINDS else f"`{value}`" for value in option.values)
            text += f"| `{option.name}` | {values} | {_effect(option)} |\n"
    return text


def page() -> str:
    """Returns the page's text."""
    present, everything = present_names(), poplibs_names()
    there = {name for names in present.values() for name in names}
    missing = {header: [name for name in names if name not in there] for header, names in everything.items()}
    total = sum(map(len, everything.values()))
    text = HEAD.format(present=total - sum(map(len, missing.values())), all=total)
    text += "## There\n\n| header | names |\n|---|---|\n"
    text += "".join(_row(header, names) for header, names in present.items() if names)
    text += "\n## Missing\n\n| header | names |\n|---|---|\n"
    rows = {**missing_in_poplar(), **missing}
    text += "".join(_row(header, names) for header, names in rows.items() if names)
    return text


if __name__ == "__main__":
    if sys.argv[1:2] == ["--names"]:
        write_names(pathlib.Path(sys.argv[2]))
        sys.exit(0)
    sys.exit(generated_page.write_or_check_all({PAGE: page, OPTIONS_PAGE: options_page}, __doc__, "poplibs"))
