"""The parts of the soak, by name: the programs that each runs, and its findings."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import faulthandler
import random
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from soak import (
    abrupt_ends,
    access_programs,
    families,
    legacy_graphs,
    models,
    modes,
    steadiness,
    thread_calls,
)
from soak.ops import op_lane
from soak.programs import (
    feed_programs,
    keras_programs,
    library_programs,
    list_programs,
    seed_programs,
    size_programs,
    slice_programs,
)


@dataclasses.dataclass
class Found:
    """The outcome of a part, or of a piece of one.

    Args:
        count: the number of programs that it ran.
        things: what these are.
        wrong: the faults of these programs.
        told: figures for a reader.
        refused: how many of them every execution mode refused.
    """

    count: int
    things: str
    wrong: list[str]
    told: str = ""
    refused: int = 0


Options = argparse.Namespace


@contextlib.contextmanager
def watched(silence: float) -> Iterator[Callable[[], None]]:
    """Ends the process, with its threads' stacks, if the function that it yields is not called for some seconds."""

    def heard() -> None:
        faulthandler.dump_traceback_later(silence, exit=True)

    heard()
    try:
        yield heard
    finally:
        faulthandler.cancel_dump_traceback_later()


def _programs(options: Options) -> Iterator[str]:
    """Random programs with feeds, in both execution modes."""
    for number in range(options.first, options.first + options.programs):
        program = feed_programs.Program.draw(random.Random(options.seed * 1_000_003 + number))
        yield "\n".join(filter(None, (feed_programs.difference(program, mode) for mode in feed_programs.MODES)))


def random_models(options: Options) -> Found:
    """Returns the tests' random models, pipelines and memory plans."""
    found = Found(0, "models", [])
    began = time.monotonic()
    with watched(options.silence) as heard:
        for end in models.found(options.first, options.models):
            heard()
            found.count += end.models
            found.wrong += [end.failed] if end.failed else []
            if end != models.End() and time.monotonic() - began > options.seconds:
                break
    return found


def all_ops(options: Options) -> Found:
    """TensorFlow's ops against the CPU; each lot has its own time limit."""
    names = options.ops or _some_ops(options)
    return _ran(options, names, "valid" if options.valid else "wrong")


def edges(options: Options) -> Found:
    """Returns the same with NaN, infinities, denormals and the largest and least numbers of each type."""
    names = options.edges or _some_ops(options)
    found, halves = _ran(options, names, "edges"), _ran(options, names, "float16")
    found.count += halves.count
    found.wrong += halves.wrong
    return found


def _some_ops(options: Options) -> list[str]:
    """Returns a share of all ops that follows from `--size`."""
    names = list(op_lane.all_ops())
    return sorted(random.Random(options.seed).sample(names, max(1, round(len(names) * options.size))))


def _ran(options: Options, names: Iterable[str], inputs: str) -> Found:
    report = op_lane.run(names, options.op_cases, options.silence, options.jobs, inputs)
    refused = sum(count for (_, status), count in report.counts.items() if status == "refused")
    things = f"runs of {len(report.ran)} ops"
    return Found(sum(report.counts.values()), things, report.differences, report.text(), refused)


COMPARED = {
    "slices": slice_programs,
    "lists": list_programs,
    "sizes": size_programs,
    "seeds": seed_programs,
    "library": library_programs,
}
"""Kinds of programs that are compared between execution modes."""


def _compared(kind: Any) -> Callable[[Options], Iterator[modes.Finding]]:
    """Returns a function that draws programs of a kind and runs each in all execution modes."""

    def look(options: Options) -> Iterator[modes.Finding]:
        for number in range(options.first, options.first + options.compared):
            program = kind.Program.draw(random.Random(options.seed * 1_000_003 + number))
            yield kind.compare(program, modes.FORMS[number % len(modes.FORMS)])

    return look


def _one(look: Callable[[int], str], option: str, things: str) -> Callable[[Options], Found]:
    """Returns a part that accepts a number from the command line and returns the fault, or an empty string."""

    def part(options: Options) -> Found:
        count = getattr(options, option)
        with watched(options.silence):
            problem = look(count)
        return Found(count, things, [problem] if problem else [])

    return part


def _each(look: Callable[[Options], Iterable[str | modes.Finding]], things: str) -> Callable[[Options], Found]:
    """Returns a part that checks programs until its time is over, each with a finding or the text of its fault."""

    def part(options: Options) -> Found:
        found = Found(0, things, [])
        began = time.monotonic()
        with watched(options.silence) as heard:
            for finding in look(options):
                heard()
                if isinstance(finding, str):
                    finding = modes.Finding("different" if finding else "same", finding)
                found.count += 1
                found.refused += finding.status == "refused"
                found.wrong += [finding.detail] if finding.status == "different" else []
                if time.monotonic() - began > options.seconds:
                    break
        return found

    return part


def _calls(kind: str) -> Callable[[Options], Found]:
    """Returns a part in which eight threads call one model, program or session."""
    return _each(lambda options: thread_calls.found(kind, options.calls), f"calls of {kind}")


PARTS: dict[str, Callable[[Options], Found]] = {
    "ops": all_ops,
    "edges": edges,
    "memory": _one(steadiness.grown, "runs", "runs of a training loop"),
    "recompilations": _one(steadiness.recompiled, "recompilations", "functions made, run and dropped"),
    "keras": _one(steadiness.modelled, "recompilations", "Keras models"),
    "restarts": _one(steadiness.restarted, "restarts", "starts of an infeed"),
    "threads": _one(steadiness.beside_reconfiguration, "thread_runs", "runs of each thread during reconfiguration"),
    **{f"calls_{kind}": _calls(kind) for kind in thread_calls.KINDS},
    "sessions": _one(steadiness.closed_while_running, "sessions", "sessions closed while they ran"),
    "signals": _each(lambda options: abrupt_ends.found(options.processes, options.seed), "processes ended by signals"),
    "full_disk": _each(lambda _: abrupt_ends.without_room(), "processes on a full disk"),
    "families": _each(lambda _: families.found(), "kinds of spawned and forked processes"),
    "tensorflow1": _each(
        lambda options: legacy_graphs.found(options.first, options.compared), "graphs of TensorFlow 1"
    ),
    "accesses": _each(lambda options: access_programs.found(options.first, options.compared), "functions of variables"),
    "keras_models": _each(lambda options: keras_programs.found(options.first, options.compared), "random Keras models"),
    "models": random_models,
    "programs": _each(_programs, "programs"),
    **{name: _each(_compared(kind), "programs") for name, kind in COMPARED.items()},
}
