"""Runs `tf-ipu fit` on a program, and picks the figure that is published."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.calibration.rows import Row
from tf_ipu_shim.machine.chips import CHIPS

_MIB = 1 << 20
POPRT_LAUNCH_SECONDS = 300e-6
"""A launch by PopRT's runner. Source: docs/reference/facts.md, section "Host traffic and syncs"."""
Record = dict[str, Any]


class ModelError(RuntimeError):
    """A program that `tf-ipu fit` does not finish."""


@functools.cache
def record_of(program: str, system: str) -> Record:
    """Returns the record of the program with most cycles, on one system."""
    module, *arguments = program.split()
    command = [sys.executable, "-m", "tf_ipu_shim.cli", "fit", "--format", "json", "--system", system]
    found = subprocess.run(
        [*command, "-m", f"benchmarks.published.{module}", *arguments],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    begin = found.stdout.find("{")
    if begin < 0:
        raise ModelError(f"{program} on {system}: no record. {found.stderr[-2000:]}")
    programs = json.loads(found.stdout[begin:])["programs"]
    longest = max(programs, key=lambda one: one["systems"][0]["cycles"])
    return {**longest["systems"][0], "steps": longest["steps"], "ipus_used": longest["ipus"]}


def _verdict(record: Record) -> str:
    return str(record["verdict"])


def _rate(record: Record) -> float:
    return float(record["items_per_second_end_to_end"])


def _rate_by_poprt(record: Record) -> float:
    """Returns the rate of a program that PopRT's runner launches for each mini-batch."""
    seconds = CHIPS[record["chip"]].seconds(record["cycles"])
    return float(record["items_per_second"]) * seconds / (seconds + record["steps"] * POPRT_LAUNCH_SECONDS)


def _by_ipu(record: Record, *fields: str) -> float:
    return sum(ipu[field] for ipu in record["by_ipu"] for field in fields) / _MIB


SPEED_UP = "times as fast as one IPU"
FIGURES: dict[str, Callable[[Record], Any]] = {
    "items a second": _rate,
    "items a second, between launches": lambda record: record["items_per_second"],
    "items a second, a run for each batch": _rate_by_poprt,
    "cycles": lambda record: record["cycles"],
    "cycles of 160 mini-batches": lambda record: record["cycles"],
    SPEED_UP: lambda record: record["cycles"],
    "cycles a slot": lambda record: record["slot_cycles"],
    "verdict": _verdict,
    "peak, MiB": lambda record: _by_ipu(record, "peak_bytes", "code_bytes", "library_bytes"),
    "fullest tile, KiB": lambda record: max(ipu["expected_tile_bytes"] for ipu in record["by_ipu"]) / 1024,
    "always live, MiB": lambda record: _by_ipu(record, "always_live_bytes", "code_bytes"),
    "variables, MiB": lambda record: _by_ipu(record, "variable_bytes"),
    "code, MiB": lambda record: _by_ipu(record, "code_bytes"),
    "not always live, MiB": lambda record: _by_ipu(record, "not_always_live_bytes"),
}
"""The figures of a row, by the words in the data file."""


def modelled(row: Row) -> str:
    """Runs the models on a row; returns the modelled figure."""
    found = FIGURES[row.figure](record_of(row.program, row.system))
    if row.figure == SPEED_UP:
        found = record_of(f"{row.program.split()[0]} 1", row.system)["cycles"] / found
    return found if isinstance(found, str) else f"{found:.4g}" if found < 1e4 else f"{float(f'{found:.4g}'):.0f}"
