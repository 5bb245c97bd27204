"""`tf-ipu env`: prints the environment variables, flags and engine options with their current values."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterable

from tf_ipu_shim.configuration import environment
from tf_ipu_shim.machine.environment import engine_options, flags

# TensorFlow's own, which change what users of this package see.
TENSORFLOW = {
    "TF_CPP_MIN_LOG_LEVEL": "0 for all log lines, 1 without information, 2 only errors, 3 none",
    "TF_USE_LEGACY_KERAS": "1 for Keras 2 on TensorFlow 2.16 and later; set automatically if tf_keras is installed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    parser.add_argument("--set", action="store_true", help="list only what is set")


def run(arguments: argparse.Namespace) -> int:
    """Prints the lists."""
    problems = list(map(str, environment.problems()))
    _print_section("Environment variables", _rows(environment.SETTINGS), arguments.set)
    _print_section("Variables of a job's processes, which poprun sets", _rows(environment.JOB_VARIABLES), arguments.set)
    _print_section("TensorFlow's environment variables", _tensorflow(), arguments.set)
    for variable, rows in (
        (flags.ENVIRONMENT_VARIABLE, _flag_rows),
        (engine_options.ENVIRONMENT_VARIABLE, _option_rows),
    ):
        try:
            _print_section(f"{variable} ({os.environ.get(variable) or 'not set'})", rows(), arguments.set)
        except ValueError as error:
            problems.append(str(error))
    for problem in problems:
        print(f"tf-ipu env: {problem}", file=sys.stderr)
    return 2 if problems else 0


@dataclasses.dataclass(frozen=True)
class _Row:
    name: str
    value: str
    is_set: bool
    meaning: str


def _rows(variables: Iterable[environment.Variable]) -> Iterable[_Row]:
    for variable in variables:
        value = os.environ.get(variable.name, "")
        yield _Row(variable.name, value or f"({variable.default})", bool(value), variable.meaning)


def _tensorflow() -> Iterable[_Row]:
    for name, description in TENSORFLOW.items():
        value = os.environ.get(name, "")
        yield _Row(name, value or "(not set)", bool(value), description)


def _flag_rows() -> Iterable[_Row]:
    in_force, default = flags.current(), flags.PoplarFlags()
    for entry in flags.effects():
        if not hasattr(in_force, entry.name):
            continue
        value = getattr(in_force, entry.name)
        yield _Row(
            f"--{entry.name}",
            _format_value(value),
            value != getattr(default, entry.name),
            f"{entry.effect}: {entry.meaning}",
        )


def _option_rows() -> Iterable[_Row]:
    in_force = engine_options.current()
    options = {entry.name: entry for entry in engine_options.effects()}
    default_entry = options.pop("any other")
    errors = engine_options.unrecognised(in_force)
    for name in [*options, *(name for name in in_force if name not in options)]:
        entry = options.get(name, default_entry)
        meaning = errors.get(name, f"{entry.effect}: {entry.meaning}")
        yield _Row(name, in_force.get(name, "(not set)"), name in in_force, meaning)


def _format_value(value: object) -> str:
    if isinstance(value, (set, frozenset)):
        return ",".join(sorted(value)) or "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value) or "(none)"


def _print_section(title: str, rows: Iterable[_Row], only_set: bool) -> None:
    shown = [row for row in rows if row.is_set or not only_set]
    print(f"{title}:")
    if not shown:
        print("  nothing is set\n")
        return
    names, values = (max(len(getattr(row, field)) for row in shown) for field in ("name", "value"))
    for row in shown:
        mark = "*" if row.is_set else " "
        print(f"{mark} {row.name:<{names}}  {row.value:<{min(values, 30)}}  {row.meaning}")
    print()
