"""`tf-ipu compare`: compares two profiles as text and as an HTML page."""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Callable, Sequence

from tf_ipu_shim.cli.output import formats, sizes, terminal
from tf_ipu_shim.machine.memory.byte_text import format_bytes, format_pair
from tf_ipu_shim.profiling import comparison, page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    help_text = "a program's profile.pop, its folder, or a directory of profiles"
    parser.add_argument("before", metavar="BEFORE", help=help_text)
    parser.add_argument("after", metavar="AFTER", help="the same, to compare it with")
    formats.add_argument(parser)
    sizes.add_arguments(parser, 10, "largest changes of each list")
    parser.add_argument("--html", metavar="FILE", help="write a page to look at in a browser")


def run(arguments: argparse.Namespace) -> int:
    """Prints the growth and shrinkage between two profiles, and writes the page if requested."""
    sizes.apply(arguments)
    try:
        sides = [comparison.profiles_in(path) for path in (arguments.before, arguments.after)]
    except (FileNotFoundError, ValueError) as error:
        print(f"tf-ipu compare: {error}", file=sys.stderr)
        return 2
    paired = comparison.pair_profiles(*sides)
    if not paired.programs:
        names = [", ".join(side) for side in sides]
        print(
            f"tf-ipu compare: {arguments.before} has the programs {names[0]}, {arguments.after} has {names[1]}, "
            "and no name is in both. Give two profile.pop files to compare any two.",
            file=sys.stderr,
        )
        return 2
    if arguments.html:
        html_page = page.render_comparison(*paired, (str(arguments.before), str(arguments.after)))
        pathlib.Path(arguments.html).write_text(html_page)
        print(f"Page: {arguments.html}", file=sys.stderr)
    if arguments.format == formats.JSON:
        print(formats.to_json({"programs": paired.programs, "only_before": paired.removed, "only_after": paired.new}))
        return 0
    for compared in paired.programs:
        terminal.show("\n".join(_format_comparison(compared, arguments.top)))
    for name, where in [*((name, "BEFORE") for name in paired.removed), *((name, "AFTER") for name in paired.new)]:
        print(f"{name}: only in {where}")
    return 0


def _format_comparison(compared: comparison.Comparison, top: int) -> list[str]:
    titles = (("memory by category", compared.categories, format_bytes), ("cycles by kind", compared.kinds, _number))
    shown = [(compared.cycles, _number), (compared.fullest, format_bytes)]
    shown += [(change, format_figure) for _, changes, format_figure in titles for change in changes]
    width = max(len(format_figure(size)) for change, format_figure in shown for size in (change.before, change.after))
    lines = [
        f"{compared.program}",
        _format_change("cycles a run", compared.cycles, _number, width),
        _format_change("the fullest IPU", compared.fullest, format_bytes, width),
    ]
    if compared.fits[0] != compared.fits[1]:
        lines.insert(1, f"  {'it does NOT fit any more' if compared.fits[0] else 'it fits now'}")
    lines += [f"  {name}: {before} -> {after}" for name, (before, after) in compared.facts.items()]
    for title, changes, format_figure in titles:
        lines += [f"  {title}", *(_format_change(change.name, change, format_figure, width, 4) for change in changes)]
    for title, changes, is_size in (
        ("cycles by op", compared.op_cycles, False),
        ("memory by owner", compared.op_bytes, True),
        ("cycles by line", compared.line_cycles, False),
        ("memory by line", compared.line_bytes, True),
    ):
        lines += _largest_changes(title, list(changes), is_size, top)
    return lines


def _number(value: float, sign: bool = False) -> str:
    return f"{value:+,.0f}" if sign else f"{value:,.0f}"


def _format_change(
    name: str, change: comparison.Change, format_figure: Callable[[float], str], width: int, indent: int = 2
) -> str:
    sizes_shown = f"{format_figure(change.before):>{width}}  {format_figure(change.after):>{width}}"
    return f"{' ' * indent}{name:<{28 - indent}} {sizes_shown}  {_format_percent(change)}"


def _format_percent(change: comparison.Change) -> str:
    if not change.more:
        return "="
    return f"{100 * change.more / change.before:+.1f} %" if change.before else "new"


def _largest_changes(title: str, rows: Sequence[comparison.Change], is_size: bool, top: int) -> list[str]:
    format_figure = format_bytes if is_size else _number
    lines = []
    for row in rows[:top]:
        pair = format_pair(row.before, row.after) if is_size else f"{row.before:,.0f} -> {row.after:,.0f}"
        lines.append(
            f"    {format_figure(row.more, True):>18}  {row.name} ({pair})" + (f", {row.line}" if row.line else "")
        )
    if len(rows) > top:
        lines.append(f"    {format_figure(sum(row.more for row in rows[top:]), True):>18}  {len(rows) - top} more")
    return [f"  {title}, what changed most", *lines] if lines else []
