"""Rows for validation/benchmarks.csv, from what `python -m benchmarks --json FILE` wrote.

python -m benchmarks.rows --machine "2 cores of an AMD EPYC" results.json >> validation/benchmarks.csv
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import pathlib
import platform
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.results import Result

COLUMNS = (
    "benchmark,name,baseline,unit,target,tensorflow,figure,low,high,verdict,outputs_compared,machine,command,date,commit,note"
).split(",")
# The reference of a benchmark, if the name of a figure does not say it.
BASELINES = {
    "device_overhead": "the same ops on the CPU device",
    "one_ipu": "jit_compile=True on the CPU",
    "four_shards": "the same model divided manually over logical CPU devices",
    "memory_accounting": "memory accounting off",
    "lowering_time": "XLA's compilation of the same program",
    "large_training": "stock Keras without jit_compile",
    "execution_modes": "xla",
}
WITHOUT_OUTPUTS = ("import_time", "lowering_time")


def rows(document: Mapping[str, Any], machine: str, date: str) -> Iterator[dict[str, str]]:
    """Yields a row for each figure of a run.

    Args:
        document: the file that the run wrote.
        machine: the machine on which it was measured.
        date: the date of the run.
    """
    for benchmark, figures in document["benchmarks"].items():
        for fields in figures:
            result = Result.from_json(fields)
            _, _, named = result.name.partition(", against ")
            measured = {
                "benchmark": benchmark,
                "name": result.name,
                "baseline": named or BASELINES.get(benchmark, ""),
                "unit": result.unit,
                "target": "" if result.target is None else _number(result.target, result.unit),
                "tensorflow": document["tensorflow"],
                "figure": _number(result.figure, result.unit),
                "verdict": {None: "", True: "met", False: "missed"}[result.met],
                "outputs_compared": "not applicable" if benchmark in WITHOUT_OUTPUTS else "yes",
                "machine": machine,
                "command": f"python -m benchmarks --only {benchmark}",
                "date": date,
            }
            if result.samples > 1:
                measured |= {"low": _number(result.low, result.unit), "high": _number(result.high, result.unit)}
            yield {column: measured.get(column, "") for column in COLUMNS}


def _number(value: float, unit: str) -> str:
    return f"{value:.2f}" if unit == "x" else f"{value:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__)
    parser.add_argument("results", nargs="+", type=pathlib.Path, help="files of `python -m benchmarks --json`")
    parser.add_argument("--machine", default=platform.machine(), help="processor and number of cores")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="date of the runs")
    arguments = parser.parse_args()
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    for path in arguments.results:
        writer.writerows(rows(json.loads(path.read_text()), arguments.machine, arguments.date))


if __name__ == "__main__":
    main()
