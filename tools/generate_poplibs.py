"""Writes poplibs.md, the functions of PopLibs that exist here or are missing, and poplar_options.md, in docs/reference.

python tools/generate_poplibs.py          writes the page
python tools/generate_poplibs.py --check  ends with status 1 if the page is out of date

With a folder that contains PopLibs' own headers, `--names FOLDER` writes two lists: their names, for the page, and the
declarations of missing ones. Headers with error messages are made of the second.
"""

from __future__ import annotations

import csv
import io
import pathlib
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import cpp_declarations
import cpp_names
import generated_page

if TYPE_CHECKING:
    from tf_ipu_shim.poplar_sdk.option_tables import Option

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tf_ipu_shim" / "poplar_sdk"
NAMES = PACKAGE / "poplibs_names.txt"
MISSING = PACKAGE / "missing_names.csv"
PAGE = ROOT / "docs/reference/names/poplibs.md"
OPTIONS_PAGE = ROOT / "docs/reference/options/poplar_options.md"
_MACRO = re.compile(r"^#define \w+\([^)]*\)(?:.*\\\n)*.*\n", re.MULTILINE)
LIBRARIES = ("poputil", "popops", "poplin", "popnn", "poprand", "popsparse", "popfloat", "gcl")

HEAD = """---
type: reference
tags: [PopLibs, Poplar, C++, custom op]
---

# PopLibs

The headers and functions of PopLibs that programs with codelets and custom ops can call. {present} of {all} names of
PopLibs' headers exist here.

```
$ eval "$(tf-ipu poplar --shell)"
$ g++ -shared -fPIC ops.cpp -o libops.so -lpoplar -lpoputil -lpopops
```

A program that calls a missing one does not compile: the compiler names the function and its header. The second table
has them all.

Functions compute on the CPU. They compute half in float and round once at the end. In `popops::map` each operation of
an expression rounds. Reductions accumulate floats in double, products in float.

A new tensor lies linearly over the tiles, as `poputil::mapTensorLinearly` maps it. The result of an element-wise
function has the mapping of the first operand of its shape. Plans change no value. Steps that a function
adds to a `ComputeSet` of the caller run after the vertices of the compute set.

The functions of `gcl` work in a graph with replicas. A custom op of a TensorFlow program sees one replica only, so they
are refused there. [Collectives](../collectives.md) has TensorFlow's functions for the op's inputs and outputs.

`pvti/pvti.hpp` is there, too. With `PVTI_OPTIONS='{{"enable":"true"}}'` a program writes its tracepoints and graphs to
`pvti_PROCESS.json`, in the trace format of Chrome. The option `"directory"` names the folder.

The tensors of a dynamically sparse matrix have the sizes of its largest number of blocks. A `Partitioner` writes their
content, which is not that of PopLibs: data that another SDK has written cannot be read.

"""

OPTIONS_HEAD = """---
type: reference
tags: [Poplar, PopLibs, C++, OptionFlags, POPLAR_ENGINE_OPTIONS, POPLAR_RUNTIME_OPTIONS]
---

# Options of Poplar's functions

This page lists the options of each function of Poplar and PopLibs, with their values. They are passed as `OptionFlags`:

```cpp
poplin::matMul(graph, a, b, program, "product", {{"partialsType", "half"}});
```

Each section has the options that act, with their values, then those without effect. An unknown name or value is
`poplar::invalid_option`, whose message names the nearest option or the values. Integer, Decimal, Fraction (a decimal
from 0 to 1) and Text stand for any such value.

The variables `POPLAR_ENGINE_OPTIONS` and `POPLAR_RUNTIME_OPTIONS` override the options of an engine. They do not for
custom ops, where they are options of the TensorFlow program ([Flags](options_flags.md)).
"""


def header_text(header: pathlib.Path) -> str:
    """A header of ours with the macros of the `detail` headers that it includes: some declare functions by them."""
    text = header.read_text()
    included = re.findall(r"#include <(\w+/detail/\w+\.hpp)>", text)
    macros = [_MACRO.findall((PACKAGE / "include" / name).read_text()) for name in included]
    return "".join(macro for found in macros for macro in found) + text


def present_names() -> dict[str, list[str]]:
    """Returns the names of our headers by header, sorted."""
    found = {}
    for library in LIBRARIES:
        folder = PACKAGE / "include" / library
        for header in sorted(header for header in folder.rglob("*.hpp") if "detail" not in header.parts):
            names = {name.text for name in cpp_names.declared_names(header_text(header))}
            found[f"{library}/{header.relative_to(folder)}"] = sorted(names)
    return found


def poplibs_names() -> dict[str, list[str]]:
    """Returns the names of PopLibs' headers by header."""
    found: dict[str, list[str]] = {}
    for line in NAMES.read_text().splitlines():
        header, name = line.split()
        found.setdefault(header, []).append(name)
    return found


def write_names(folder: pathlib.Path) -> None:
    """Writes the lists of the names of PopLibs' headers below a folder; keeps those of other libraries."""
    names = [line for line in NAMES.read_text().splitlines(keepends=True) if not (folder / line.split("/")[0]).exists()]
    for header in sorted(folder.glob("*/**/*.hpp")):
        for name in sorted({name.text for name in cpp_names.declared_names(header.read_text(errors="replace"))}):
            names.append(f"{header.relative_to(folder)} {name}\n")
    NAMES.write_text("".join(names))
    everything, missing = poplibs_names(), missing_names()
    published = [header for header in everything if (folder / header).exists()]
    found = cpp_declarations.declarations(published, folder, PACKAGE / "include")
    others = [row for row in csv.reader(io.StringIO(missing_declarations())) if row[0] not in published]
    with MISSING.open("w", newline="") as opened:
        rows = csv.writer(opened, lineterminator="\n")
        rows.writerows(others)
        for each in sorted(found, key=lambda each: (each.header, each.name)):
            if each.name in missing.get(each.header, ()):
                includes = [name for name in each.includes if not name.startswith("poplar/")]
                rows.writerow([each.header, each.name, each.text, " ".join(includes)])


def missing_names() -> dict[str, list[str]]:
    """Returns the names of PopLibs' headers that ours do not have, by header."""
    there = {name for names in present_names().values() for name in names}
    missing = {header: [name for name in names if name not in there] for header, names in poplibs_names().items()}
    return {header: names for header, names in missing.items() if names}


def missing_declarations() -> str:
    """The list of declarations without those of names that are there now."""
    missing, text = missing_names(), io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    with MISSING.open(newline="") as opened:
        for number, row in enumerate(csv.reader(opened)):
            if number == 0 or row[1] in missing.get(row[0], ()):
                rows.writerow(row)
    return text.getvalue()


def _row(header: str, names: Iterable[str]) -> str:
    return f"| `{header}` | {', '.join(f'`{name}`' for name in names)} |\n"


def _values(option: Option) -> str:
    from tf_ipu_shim.poplar_sdk import option_tables

    return ", ".join(value if value in option_tables.KINDS else f"`{value}`" for value in option.values)


def options_page() -> str:
    """The text of the page of options: the tables of the functions that share them."""
    from tf_ipu_shim.poplar_sdk import option_tables

    text = OPTIONS_HEAD
    for table in option_tables.read().values():
        functions = ", ".join(f"`{name}`" for name in table.functions.split(", "))
        text += f"\n## {functions}\n"
        acting = [option for option in table.options if not option.without_effect]
        if acting:
            text += "\n| option | values |\n|---|---|\n"
            text += "".join(f"| `{option.name}` | {_values(option)} |\n" for option in acting)
        alike: dict[str, list[str]] = {}
        for option in table.options:
            if option.without_effect:
                taken = " (only `false`)" if option.values == ("false",) else ""
                alike.setdefault(option.without_effect, []).append(f"`{option.name}`{taken}")
        if alike:
            text += "\n| without effect | why |\n|---|---|\n"
            text += "".join(f"| {', '.join(names)} | {why} |\n" for why, names in alike.items())
    return text


def page() -> str:
    """Returns the page's text."""
    present, everything = present_names(), poplibs_names()
    missing = missing_names()
    total = sum(map(len, everything.values()))
    text = HEAD.format(present=total - sum(map(len, missing.values())), all=total)
    text += "## There\n\n| header | names |\n|---|---|\n"
    text += "".join(_row(header, names) for header, names in present.items() if names)
    text += "\n## Missing\n\n| header | names |\n|---|---|\n"
    text += "".join(_row(header, names) for header, names in missing.items())
    return text


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--names"]:
        write_names(pathlib.Path(sys.argv[2]))
        sys.exit(0)
    pages = {PAGE: page, MISSING: missing_declarations, OPTIONS_PAGE: options_page}
    sys.exit(generated_page.write_or_check_all(pages, __doc__, "poplibs"))
