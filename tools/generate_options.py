"""Writes docs/reference/options/options*.md: what each option changes on simulated IPUs, in four pages by subject.

python tools/generate_options.py          writes the pages
python tools/generate_options.py --check  ends with status 1 if a page is out of date
"""

from __future__ import annotations

import functools
import pathlib
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import generated_page

if TYPE_CHECKING:
    from tf_ipu_shim.machine.environment.effects import OptionEffect

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "reference" / "options"
HEADER = """---
type: reference
tags: [options, IPUConfig, flags, TF_POPLAR_FLAGS, POPLAR_ENGINE_OPTIONS, no effect]
---

# Options of IPUConfig

The effect of each option of `IPUConfig` on simulated IPUs. See also [flags and engine options](options_flags.md),
[layers, Keras and pipelines](options_layers.md) and [other arguments](options_arguments.md). A test sets each option
that claims an effect, and looks for the difference.

```
$ tf-ipu check train.py   # lists the options of a script that have no effect
```

The value of an option without effect is checked all the same. The option is listed in the memory report, and once in
the log: `no effect on a simulated system: ...`. The older functions of `ipu.utils` set the same options. Arguments that
no page lists have their documented effect.

The tables do not have the [options of Poplar's functions](poplar_options.md). An option of convolutions or matmuls that
PopLibs does not have is an error of the program that reads it.

"""


PART = """---
type: reference
tags: [options, arguments, no effect, {tags}]
---

# {title}

{purpose} [Options of IPUConfig](options.md) explains the effects.

```
$ tf-ipu check train.py   # lists the uses of a script that have no effect
```

"""
PAGES = {
    "options.md": HEADER,
    "options_flags.md": PART.format(
        title="Flags and engine options",
        tags="flags, TF_POPLAR_FLAGS, POPLAR_ENGINE_OPTIONS",
        purpose="The effect of each flag of `TF_POPLAR_FLAGS`, engine option and variable of the SDK.",
    ),
    "options_layers.md": PART.format(
        title="Arguments of layers, Keras and pipelines",
        tags="Keras, pipeline, layers",
        purpose="The effect of arguments of layers, Keras models and pipelines.",
    ),
    "options_arguments.md": PART.format(
        title="Arguments of feeds, ops and other calls",
        tags="feeds, ops, optimizers",
        purpose="The effect of arguments of feeds, loops, ops, optimizers and tools.",
    ),
}


def page(name: str) -> str:
    """Returns a whole page as Markdown."""
    from tf_ipu_shim.configuration import all_options
    from tf_ipu_shim.machine.environment.effects import MEANINGS

    lines = []
    if name == "options.md":
        lines += ["| effect | what differs |", "|---|---|"]
        lines += [f"| {effect} | {meaning} |" for effect, meaning in MEANINGS.items()]
    for heading, entries in all_options.sections().items():
        if _page_of(heading) == name:
            lines += ["", f"## {heading[0].upper()}{heading[1:]}", ""]
            lines += ["| option | effect | what, or why not |", "|---|---|---|"]
            lines += [f"| {', '.join(names)} | {effect} | {meaning} |" for names, effect, meaning in _alike(entries)]
    return PAGES[name] + "\n".join(lines).lstrip("\n") + "\n"


def _alike(entries: Iterable[OptionEffect]) -> Iterator[tuple[list[str], str, str]]:
    """Yields names, effect and meaning of each row: options without effect for the same reason share one."""
    from tf_ipu_shim.machine.environment import effects

    rows: dict[tuple[str, str, str], list[str]] = {}
    for entry in entries:
        own = "" if entry.effect == effects.RECORDED else entry.name
        rows.setdefault((own, entry.effect, entry.meaning), []).append(f"`{entry.name}`")
    yield from ((names, effect, meaning) for (_, effect, meaning), names in rows.items())


def _page_of(heading: str) -> str:
    """Returns the page that has a section."""
    from tf_ipu_shim.configuration import all_options, arguments

    if heading == all_options.IPU_CONFIG:
        return "options.md"
    if heading in (all_options.POPLAR_FLAGS, all_options.ENGINE_OPTIONS, all_options.SDK_ENVIRONMENT):
        return "options_flags.md"
    return next(call.page for call in arguments.CALLS.values() if call.heading == heading)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    pages = {DOCS / name: functools.partial(page, name) for name in PAGES}
    sys.exit(generated_page.write_or_check_all(pages, __doc__, "options"))
