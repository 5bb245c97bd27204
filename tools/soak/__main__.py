"""Runs the soak: `PYTHONPATH=tools python -m soak`. Ends with status 1 where something was wrong, after saying what."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
import time
from collections.abc import Sequence

from soak import lanes, tables
from soak.parts import PARTS, Found, watch


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for; gives the exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    parser = _parser()
    options = parser.parse_args(arguments)
    named = [name for name in ("ops", "edges") if getattr(options, name) is not None]
    wanted = named or options.only or list(PARTS)
    if unknown := sorted(set(wanted) - set(PARTS)):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
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
        watch(options.silence)
        part = found[name] = PARTS[name](options)
        lanes.tell(name, part, time.monotonic() - began)
        if options.report:
            options.report.write_text(json.dumps(dataclasses.asdict(part)))
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the random programs")
    parser.add_argument(
        "--programs", type=int, default=10_000, help="random programs with feeds, each in both execution modes"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    parser.add_argument(
        "--compared", type=int, default=500, help="random programs of each kind, in all execution modes"
    )
    parser.add_argument("--models", type=int, default=20, help="times as many random models as the tests have")
    parser.add_argument("--runs", type=int, default=10_000, help="runs over which memory must not grow")
    parser.add_argument(
        "--recompilations", type=int, default=200, help="programs, and Keras models, over which it must not grow"
    )
    parser.add_argument("--restarts", type=int, default=2_000, help="starts of an infeed over which it must not grow")
    parser.add_argument("--sessions", type=int, default=100, help="sessions that are closed while they run")
    parser.add_argument("--processes", type=int, default=100, help="processes that a signal ends at any moment")
    parser.add_argument("--thread-runs", type=int, default=500, help="runs of each thread during reconfiguration")
    parser.add_argument("--calls", type=int, default=1_000, help="of eight threads to one model, program or session")
    parser.add_argument("--silence", type=float, default=600, help="seconds without progress that count as hanging")
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
