"""`tf-ipu compare`: compares two profiles as text and as an HTML page."""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Iterable

from tf_ipu_shim.cli.output import formats, terminal
from tf_ipu_shim.profiling import comparison, page

_SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    help_text = "a program's profile.pop, its folder, or a directory of profiles"
    parser.add_argument("before", metavar="BEFORE", help=help_text)
    parser.add_argument("after", metavar="AFTER", help="the same, to compare it with")
    formats.add_argument(parser)
    parser.add_argument("--html", metavar="FILE", help="write a page to look at in a browser")


def run(arguments: argparse.Namespace) -> int:
    """Prints what grew and what shrank, and writes the page that is asked for."""
    try:
        sides = [comparison.profiles_in(path) for path in (arguments.before, arguments.after)]
    except (FileNotFoundError, ValueError) as error:
        print(f"tf-ipu compare: {error}", file=sys.stderr)
        return 2
    found, removed, new = comparison.pair_profiles(*sides)
    if not found:
        names = [", ".join(side) for side in sides]
        print(
            f"tf-ipu compare: {arguments.before} has the programs {names[0]}, {arguments.after} has {names[1]}, "
            "and none has the same name. Give two profile.pop files to compare any two.",
            file=sys.stderr,
        )
        return 2
    if arguments.html:
        text = page.render_comparison(found, removed, new, (str(arguments.before), str(arguments.after)))
        pathlib.Path(arguments.html).write_text(text)
    if arguments.format == formats.JSON:
        print(formats.to_json({"programs": found, "only_before": removed, "only_after": new}))
        return 0
    for compared in found:
        terminal.show("\n".join(_format_comparison(compared)))
    for name, where in [*((name, "BEFORE") for name in removed), *((name, "AFTER") for name in new)]:
        print(f"{name}: only in {where}")
    return 0


def _format_comparison(compared: comparison.Comparison) -> list[str]:
    lines = [
        f"{compared.program}",
        _format_change("cycles a run", compared.cycles),
        _format_change("bytes of the fullest IPU", compared.fullest),
    ]
    if compared.fits[0] != compared.fits[1]:
        lines.append(f"  {'it does NOT fit any more' if compared.fits[0] else 'it fits now'}")
    lines += [f"  {name}: {before} -> {after}" for name, (before, after) in compared.facts.items()]
    lines += [
        "  bytes by category",
        *(_format_change(category.name, category, 4) for category in compared.categories),
    ]
    lines += ["  cycles by kind", *(_format_change(kind.name, kind, 4) for kind in compared.kinds)]
    lines += _largest_changes("cycles by op", compared.op_cycles) + _largest_changes(
        "bytes by owner", compared.op_bytes
    )
    lines += _largest_changes("cycles by line", compared.line_cycles) + _largest_changes(
        "bytes by line", compared.line_bytes
    )
    return lines


def _format_change(name: str, change: comparison.Change, indent: int = 2) -> str:
    return (
        f"{' ' * indent}{name:<{28 - indent}} {change.before:>18,.0f} {change.after:>18,.0f}  {_format_percent(change)}"
    )


def _format_percent(change: comparison.Change) -> str:
    if not change.more:
        return "="
    return f"{100 * change.more / change.before:+.1f} %" if change.before else "new"


def _largest_changes(title: str, changes: Iterable[comparison.Change]) -> list[str]:
    rows = list(changes)
    lines = [
        f"    {row.more:>+18,.0f}  {row.name} ({row.before:,.0f} -> {row.after:,.0f})"
        + (f", {row.line}" if row.line else "")
        for row in rows[:_SHOWN]
    ]
    if len(rows) > _SHOWN:
        lines.append(f"    {sum(row.more for row in rows[_SHOWN:]):>+18,.0f}  {len(rows) - _SHOWN} more")
    return [f"  {title}, what changed most", *lines] if lines else []
