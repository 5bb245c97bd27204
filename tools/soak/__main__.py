"""Runs the soak: `PYTHONPATH=tools python -m soak`. Ends with status 1 where something was wrong, after saying what."""

from __future__ import annotations

import argparse
import faulthandler
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from soak import abrupt_ends, families, feed_programs, models, ops, steadiness


def main(argv: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for; gives the exit status."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the random programs")
    parser.add_argument("--programs", type=int, default=2000, help="random programs with feeds, each in both ways")
    parser.add_argument("--models", type=int, default=20, help="times as many random models as the tests have")
    parser.add_argument("--runs", type=int, default=10_000, help="runs over which memory must not grow")
    parser.add_argument(
        "--recompilations", type=int, default=200, help="programs, and Keras models, over which it must not grow"
    )
    parser.add_argument("--restarts", type=int, default=2_000, help="starts of an infeed over which it must not grow")
    parser.add_argument("--sessions", type=int, default=100, help="sessions that are closed while they run")
    parser.add_argument("--processes", type=int, default=100, help="processes that a signal ends at any moment")
    parser.add_argument("--thread-runs", type=int, default=500, help="runs of each thread beside reconfiguration")
    parser.add_argument("--silence", type=float, default=600, help="seconds without progress that count as hanging")
    parser.add_argument("--only", nargs="+", metavar="PART", help="of programs, models, memory, ... as it prints them")
    parser.add_argument("--ops", nargs="*", metavar="OP", help="nothing but these TensorFlow ops; without names, all")
    parser.add_argument("--op-cases", type=int, default=8, help="valid inputs of each op, of different types")
    parser.add_argument("--valid", action="store_true", help="no wrong input for ops")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run ops at the same time")
    options = parser.parse_args(argv)
    parts: dict[str, Callable[[], list[str]]] = {
        "programs": lambda: _programs(options.seed, options.programs, options.silence),
        "memory": lambda: _found(steadiness.grown(options.runs)),
        "recompilations": lambda: _found(steadiness.recompiled(options.recompilations)),
        "keras": lambda: _found(steadiness.modelled(options.recompilations)),
        "restarts": lambda: _found(steadiness.restarted(options.restarts)),
        "threads": lambda: _found(steadiness.beside_reconfiguration(options.thread_runs)),
        "sessions": lambda: _found(steadiness.closed_while_running(options.sessions)),
        "signals": lambda: _all(abrupt_ends.found(options.processes, options.seed), options.silence),
        "room": lambda: _all(abrupt_ends.without_room(), options.silence),
        "families": lambda: _all(families.found(), options.silence),
        "models": lambda: _all(models.found(options.models), options.silence),
        "ops": lambda: _ops(options),
    }
    wanted = ["ops"] if options.ops is not None else options.only or list(parts)
    if unknown := sorted(set(wanted) - set(parts)):
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(parts)}")
    parts = {name: part for name, part in parts.items() if name in wanted}
    wrong = 0
    for name, part in parts.items():
        began = time.monotonic()
        _watch(options.silence)
        problems = part()
        shown = problems if name == "ops" else problems[:5]
        print(f"{name}: {len(problems)} wrong, {time.monotonic() - began:.0f} s", *shown, sep="\n  ", flush=True)
        wrong += len(problems)
    return 1 if wrong else 0


def _watch(silence: float) -> None:
    """Ends the process, with the stacks of its threads, where nothing more is heard of it."""
    faulthandler.dump_traceback_later(silence, exit=True)


def _programs(seed: int, count: int, silence: float) -> list[str]:
    problems = []
    for number in range(count):
        _watch(silence)
        program = feed_programs.Program.draw(random.Random(seed * 1_000_003 + number))
        problems += [text for way in feed_programs.WAYS if (text := feed_programs.difference(program, way))]
    return problems


def _ops(options: argparse.Namespace) -> list[str]:
    """Lots watch over their own silence."""
    faulthandler.cancel_dump_traceback_later()
    names = options.ops or ops.all_ops()
    report = ops.run(names, options.op_cases, options.silence, options.jobs, wrong=not options.valid)
    print(report.text(), flush=True)
    return report.differences


def _all(problems: Iterable[str], silence: float) -> list[str]:
    found = []
    for problem in problems:
        _watch(silence)
        found += _found(problem)
    return found


def _found(problem: str) -> list[str]:
    return [problem] if problem else []


if __name__ == "__main__":
    sys.exit(main())
