"""Runs pieces of the soak in parallel, each in a separate process: a crash or hang ends only one."""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from soak import models, parts
from soak.ops import op_lane

_PROGRAMS = 250  # to a piece; what a process keeps of programs that it has dropped stays small
_COMPARED = 50  # the same of those that are compared between execution modes, each several programs
_SHOWN = 5  # of what was wrong in a piece; of ops all, which are looked through by hand


@dataclasses.dataclass(frozen=True)
class Piece:
    """A part, or a piece of one, as a process runs it.

    Args:
        part: the part's name.
        arguments: arguments of the process, after the user's.
    """

    part: str
    arguments: tuple[str, ...] = ()


def pieces(names: Sequence[str], options: argparse.Namespace) -> Iterator[Piece]:
    """Yields the pieces to run: the long ones that cannot be cut first.

    Args:
        names: the names of parts.
        options: the command line.
    """
    for name in (name for name in parts.PARTS if name in names):
        if name == "programs":
            yield from _cut(name, "--programs", options.programs, _PROGRAMS, options.first)
        elif name in parts.COMPARED or name in ("keras_models", "accesses"):
            yield from _cut(name, "--compared", options.compared, _COMPARED, options.first)
        elif name == "models":
            yield from _cut(name, "--models", options.models, models.AT_ONCE, options.first)
        else:
            yield Piece(name)


def _cut(name: str, option: str, count: int, most: int, first: int) -> Iterator[Piece]:
    for done in range(0, count, most):
        yield Piece(name, (option, str(min(most, count - done)), "--first", str(first + done)))


def run(wanted: Sequence[Piece], arguments: Sequence[str], at_once: int) -> tuple[dict[str, parts.Found], bool]:
    """Runs pieces, and reports the findings of each when it ends.

    Args:
        wanted: the pieces.
        arguments: the user's command line.
        at_once: the number of processes that run in parallel.

    Returns:
        Returns the findings of each part, and whether all pieces have ended: Ctrl-C ends the run.
    """
    totals: dict[str, parts.Found] = {}
    whole = True
    pool = concurrent.futures.ThreadPoolExecutor(at_once)
    running = {pool.submit(_ran, piece, arguments): piece for piece in wanted}
    try:
        for done in concurrent.futures.as_completed(running):
            piece, (found, seconds) = running[done], done.result()
            tell(piece.part, found, seconds)
            total = totals.setdefault(piece.part, parts.Found(0, found.things, []))
            total.count += found.count
            total.wrong += found.wrong
            total.refused += found.refused
    except KeyboardInterrupt:
        whole = False
        print(f"Ended early: {sum(not future.done() for future in running)} of {len(running)} pieces have not ended.")
    pool.shutdown(cancel_futures=True)  # the terminal's Ctrl-C ends the pieces that run, too
    return totals, whole


def tell(name: str, found: parts.Found, seconds: float) -> None:
    """Says what was found."""
    summary = f"{name}: {len(found.wrong)} wrong of {found.count} {found.things}, {seconds:.0f} s"
    shown = found.wrong if name in ("ops", "edges") else found.wrong[:_SHOWN]
    print(*filter(None, [found.told, summary]), *(f"  {text}" for text in shown), sep="\n", flush=True)


def _ran(piece: Piece, arguments: Sequence[str]) -> tuple[parts.Found, float]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="soak_") as folder:
        report = pathlib.Path(folder, "report")
        command = [sys.executable, "-m", "soak", *arguments, *piece.arguments, "--only", piece.part]
        done = subprocess.run(
            [*command, "--at-once", "1", "--report", str(report)],
            # Its IPUs are its own: no piece waits for another's.
            env={**os.environ, "PYTHONPATH": op_lane.search_path(), "TF_IPU_SHIM_LOCK_DIR": folder},
            capture_output=True,
            text=True,
            errors="replace",
        )
        if report.exists():
            found = parts.Found(**json.loads(report.read_text()))
        else:
            found = parts.Found(0, "pieces", [f"it ended with {done.returncode}: {done.stderr[-12_000:]}"])
    return found, time.monotonic() - began
