"""Runs the soak: `PYTHONPATH=tools python -m soak`. Names wrong results, and ends with status 1 if there is one."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import pathlib
import sys
import time
from collections.abc import Sequence

from soak import lanes, tables
from soak.parts import PARTS, Found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the requested parts; returns the exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    options = _parsed(arguments)
    named = [name for name in ("ops", "edges") if getattr(options, name) is not None]
    wanted = named or options.only or list(PARTS)
    whole = True
    if options.at_once == 1:
        found = _in_turn(wanted, options)
    else:
        began = time.monotonic()
        found, whole = lanes.run(list(lanes.pieces(wanted, options)), arguments, options.at_once)
        print(f"In {time.monotonic() - began:.0f} s:")
        print(
            *(f"  {name}: {len(part.wrong)} wrong of {part.count} {part.things}" for name, part in found.items()),
            sep="\n",
        )
    if options.table and not options.report:
        tables.append(options.table, found, f"PYTHONPATH=tools python -m soak {' '.join(arguments)}")
    return 1 if any(part.wrong for part in found.values()) else 0 if whole else 130


def _in_turn(wanted: Sequence[str], options: argparse.Namespace) -> dict[str, Found]:
    """Runs parts in this process, one after the other."""
    found = {}
    for name in (name for name in PARTS if name in wanted):
        began = time.monotonic()
        part = found[name] = PARTS[name](options)
        lanes.tell(name, part, time.monotonic() - began)
        if options.report:
            options.report.write_text(json.dumps(dataclasses.asdict(part)))
    return found


# Of each count: its name, the number of a whole soak, the least that says something, and what is counted.
_COUNTS = (
    ("programs", 10_000, 2, "random programs with feeds, each in both execution modes"),
    ("compared", 500, 2, "random programs of each kind, in all execution modes"),
    ("models", 100, 1, "random models of each test that draws them"),
    ("runs", 10_000, 100, "runs over which memory must not grow"),
    ("recompilations", 200, 10, "programs, and Keras models, over which memory must not grow"),
    ("restarts", 2_000, 40, "starts of an infeed over which memory must not grow"),
    ("sessions", 100, 2, "sessions that are closed while they run"),
    ("processes", 100, 2, "processes that a signal ends at any moment"),
    ("thread-runs", 500, 10, "runs of each thread during reconfiguration"),
    ("calls", 1_000, 40, "of eight threads to one model, program or session"),
)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the command line; counts that are not set follow from `--size`."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not 0 < options.size <= 1:
        parser.error(f"--size is {options.size}; expected more than 0 and at most 1")
    for name, whole, least, _ in _COUNTS:
        name = name.replace("-", "_")
        if getattr(options, name) is None:
            setattr(options, name, max(least, round(whole * options.size)))
    if unknown := sorted({*(options.only or ())} - set(PARTS)):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the random programs")
    parser.add_argument("--first", type=int, default=0, help="number of the first random program")
    parser.add_argument("--size", type=float, default=1.0, help="part of a whole soak, at most 1; scales all counts")
    for name, whole, _, things in _COUNTS:
        parser.add_argument(f"--{name}", type=int, help=f"{things} [{whole} times the size]")
    parser.add_argument("--silence", type=float, default=600, help="seconds without progress that count as hanging")
    parser.add_argument("--seconds", type=float, default=math.inf, help="after which a process ends a part")
    parser.add_argument("--only", nargs="+", metavar="PART", help="of programs, models, memory, ... as it prints them")
    parser.add_argument("--ops", nargs="*", metavar="OP", help="only these TensorFlow ops; without names, all")
    parser.add_argument("--edges", nargs="*", metavar="OP", help="the same with elements at the edges of their types")
    parser.add_argument("--op-cases", type=int, default=8, help="valid inputs of each op, of different types")
    parser.add_argument("--valid", action="store_true", help="no wrong input for ops")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run ops at the same time")
    parser.add_argument(
        "--at-once", type=int, default=2, help="processes side by side; 1: all parts in this one, in turn"
    )
    parser.add_argument("--report", type=pathlib.Path, help="file for what was found, where one part is run")
    parser.add_argument("--table", type=pathlib.Path, help="CSV file to add a row for each part to")
    return parser


if __name__ == "__main__":
    sys.exit(main())
