"""Runs the benchmarks, each in its own Python process, and prints and writes their results."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks import BENCHMARKS
from benchmarks.results import Result, table
from benchmarks.runner import QUICK, Settings

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="only show that everything works; the times mean nothing")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results there")
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = list(dict.fromkeys(arguments.only or BENCHMARKS))
    if arguments.in_this_process:
        found = {name: _measure(name, QUICK if arguments.quick else Settings()) for name in names}
    else:
        found = {}
        with ThreadPoolExecutor(2 if arguments.quick else 1) as pool:  # quick times mean nothing, so they may mix
            for name, results in zip(names, pool.map(lambda name: _in_own_process(name, arguments.quick), names)):
                found[name] = results
                print(f"\n{name}\n{table(results)}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(_document(found, arguments.quick), indent=1) + "\n")
    return 0


def _measure(name: str, settings: Settings) -> list[Result]:
    return list(importlib.import_module(f"benchmarks.{name}").run(settings))


def _in_own_process(name: str, quick: bool) -> list[Result]:
    """Benchmarks configure TensorFlow differently, which is possible once in a process."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "results.json"
        command = [sys.executable, "-m", "benchmarks", "--in-this-process", "--only", name, "--json", str(path)]
        search = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        quiet = {"TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3"), "PYTHONPATH": search}
        subprocess.run([*command, *["--quick"] * quick], env={**os.environ, **quiet}, check=True)
        return [Result.from_json(fields) for fields in json.loads(path.read_text())["benchmarks"][name]]


def _document(found: dict[str, list[Result]], quick: bool) -> dict[str, Any]:
    from tf_ipu_shim.cli import doctor

    return {
        "tensorflow": ", ".join(sorted(set(doctor.find_tensorflows().values()))),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "quick": quick,
        "benchmarks": {name: [result.as_json() for result in results] for name, results in found.items()},
    }


if __name__ == "__main__":
    sys.exit(main())
