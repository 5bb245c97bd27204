"""The table of docs/performance.md, from what `python -m benchmarks --json FILE` wrote on one TensorFlow or several.

python -m benchmarks.page on-2.15.1.json on-2.21.0.json
"""

from __future__ import annotations

import argparse
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.results import Result

TITLES = {
    "device_overhead": "Plain ops on the IPU device, against the CPU device",
    "one_ipu": "A compiled program on one IPU, against `jit_compile=True` on the CPU",
    "four_shards": "Four shards, against the same cut by hand over logical CPU devices",
    "import_time": "Start",
    "memory_accounting": "Memory accounting on, against off: steady state",
    "lowering_time": "Lowering, against XLA's compilation of the same programs",
    "training_loops": "Loops on the device, against loops in Python",
    "parallel_training": "Pipelines against their stages in turn, replicas against `MirroredStrategy`",
    "keras_fit": "Keras `fit`, an epoch, against stock Keras",
    "large_training": "Large models, against stock Keras",
    "execution_ways": "The two ways to run a program: kernels against XLA",
}


def page(documents: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The lines of the table, a benchmark after the other, a column for each document.

    Args:
        documents: what the runs wrote. A figure that a run has not measured is left empty.
    """
    versions = [document["tensorflow"] for document in documents]
    yield "| " + " | ".join(["", "target", *versions]) + " |"
    yield "|" + "---|" * (2 + len(versions))
    for benchmark, title in TITLES.items():
        columns = [_results(document, benchmark) for document in documents]
        names = dict.fromkeys(name for column in columns for name in column)
        if names:
            yield f"| **{title}** |" + " |" * (1 + len(versions))
        for name in names:
            found = [column.get(name) for column in columns]
            target = next((result.target for result in found if result is not None), None)
            unit = next(result.unit for result in found if result is not None)
            cells = [name, "" if target is None else _figure(target, unit), *map(_cell, found)]
            yield "| " + " | ".join(cells) + " |"


def _results(document: dict[str, Any], benchmark: str) -> dict[str, Result]:
    return {fields["name"]: Result.from_json(fields) for fields in document["benchmarks"].get(benchmark, ())}


def _cell(result: Result | None) -> str:
    """The median, its quartiles where there are several measurements, and whether it misses its target."""
    if result is None:
        return ""
    text = _figure(result.figure, result.unit)
    if result.samples > 1:
        text += f" ({_number(result.low, result.unit)} to {_number(result.high, result.unit)})"
    return f"{text}, missed" if result.met is False else text


def _figure(value: float, unit: str) -> str:
    return _number(value, unit) + ("" if unit == "x" else f" {unit}")


def _number(value: float, unit: str) -> str:
    return f"{value:.2f}" if unit == "x" else f"{value:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__)
    parser.add_argument("results", nargs="+", type=pathlib.Path, help="files of `python -m benchmarks --json`")
    print("\n".join(page([json.loads(path.read_text()) for path in parser.parse_args().results])))


if __name__ == "__main__":
    main()
