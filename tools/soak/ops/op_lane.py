"""All TensorFlow ops with a CPU kernel on simulated IPUs, in lots, each in a separate process."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tensorflow.python.framework import kernels

from soak.ops import op_cases, op_known

_LOT = 40  # ops to a process


@dataclasses.dataclass
class Report:
    """The outcome of a set of ops.

    Args:
        ran: ops that were run.
        not_run: the reason by op.
        counts: runs by mode, and the verdicts of their comparison.
        differences: strings.
        refused: ops that programs refused.
        not_compiled: ops that XLA could not compile in some program.
        known: differences of ops in `op_known.DIFFERENCES`.
    """

    ran: set[str] = dataclasses.field(default_factory=set)
    not_run: dict[str, str] = dataclasses.field(default_factory=dict)
    counts: collections.Counter[tuple[str, str]] = dataclasses.field(default_factory=collections.Counter)
    differences: list[str] = dataclasses.field(default_factory=list)
    refused: set[str] = dataclasses.field(default_factory=set)
    not_compiled: set[str] = dataclasses.field(default_factory=set)
    known: list[str] = dataclasses.field(default_factory=list)

    def add(self, line: dict[str, Any]) -> None:
        """Adds a line of a lot."""
        if "not_run" in line:
            self.not_run[line["op"]] = line["not_run"]
        if "status" not in line:
            return
        self.not_run.pop(line["op"], None)
        self.ran.add(line["op"])
        self.counts[line["mode"], line["status"]] += 1
        if line["status"] == "refused":
            self.refused.add(line["op"])
        if line["status"] == "not compiled":
            self.not_compiled.add(line["op"])
        if line["status"] == "different":
            has_ended = line["detail"].startswith("the process ")
            listed = op_known.reason(line["op"], line["mode"], line.get("what", ""), line["case"])
            by_op = line["op"] in op_known.OUT_OF_BOUNDS if has_ended else listed
            found = self.known if by_op else self.differences
            found.append(f"{line['case']} {line['mode']}: {line['detail']}")

    def text(self) -> str:
        """Returns a text: figures, then reasons with the ops that they apply to."""
        reasons = collections.defaultdict(list)
        for op, reason in sorted(self.not_run.items()):
            reasons[reason].append(op)
        counts = [f"{mode}, {status}: {count}" for (mode, status), count in sorted(self.counts.items())]
        reasoned = [f"{len(names)} not run ({reason}): {' '.join(names)}" for reason, names in reasons.items()]
        refused, stopped = len(self.refused), len(self.not_compiled)
        told = f"{len(self.ran)} ops run, in some program {refused} refused, {stopped} not compiled"
        known = [f"{len(self.known)} differences are known:", *self.known] if self.known else []
        return "\n".join([told, *counts, *reasoned, *known])


def all_ops() -> list[str]:
    """Returns every op that has a kernel for the CPU."""
    return sorted({kernel.op for kernel in kernels.get_all_registered_kernels().kernel if kernel.device_type == "CPU"})


def search_path() -> str:
    """`PYTHONPATH` for a process of the soak, which finds the same modules as this one."""
    return os.pathsep.join([str(pathlib.Path(__file__).parents[2]), *filter(None, sys.path)])


def run(names: Iterable[str], most: int = 8, silence: float = 60, jobs: int = 1, inputs: str = "wrong") -> Report:
    """Runs ops.

    Args:
        names: which.
        most: valid cases of each.
        silence: seconds for one case; longer is a hang.
        jobs: processes at the same time.
        inputs: the inputs, as in `op_runs.look_at`.
    """
    report = Report()
    wanted = []
    for name in names:
        reason = op_cases.why_not(name)
        if reason:
            report.not_run[name] = reason
        else:
            wanted.append(name)
    lots = [wanted[start : start + _LOT] for start in range(0, len(wanted), _LOT)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for lines in pool.map(lambda lot: list(_lot(lot, most, silence, inputs)), lots):
            for line in lines:
                report.add(line)
    return report


def _lot(names: Sequence[str], most: int, silence: float, inputs: str) -> Iterator[dict[str, Any]]:
    """Yields the lines of one lot. If an op ends the process or hangs, one more process runs what is left."""
    left = list(names)
    while left:
        lines, end = _process(left, most, silence, inputs)
        yield from lines
        done = {line["op"] for line in lines if "done" in line}
        left = [name for name in left if name not in done]
        if left:
            yield _ended(left.pop(0), lines, end)


def _ended(name: str, lines: Sequence[dict[str, Any]], end: str) -> dict[str, Any]:
    last: dict[str, Any] = next((line for line in reversed(lines) if line["op"] == name), {})
    if "case" not in last:
        return {"op": name, "not_run": f"TensorFlow's own CPU kernel ended the process: it {end}"}
    status = "TensorFlow's own crash" if last["mode"] == "CPU" else "different"
    return {"op": name, "case": last["case"], "mode": last["mode"], "status": status, "detail": f"the process {end}"}


def _process(names: Sequence[str], most: int, silence: float, inputs: str) -> tuple[list[dict[str, Any]], str]:
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "lines")
        path.touch()
        environment = {**os.environ, "PYTHONPATH": search_path(), "TF_CPP_MIN_LOG_LEVEL": "3"}
        if inputs == "edges":  # float16 is as IEEE 754 has it there, and as the CPU does
            environment["TF_POPLAR_FLAGS"] = "--use_ipu_model"
        command = [sys.executable, "-m", "soak.ops.op_runs", str(path), str(most), inputs, *names]
        with open(path.with_name("errors"), "w+") as errors:
            child = subprocess.Popen(command, env=environment, stdout=errors, stderr=errors, cwd=directory)
            end = _waited(child, path, silence)
            errors.seek(0)
            last = errors.read()[-600:]
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        if not lines and child.returncode:
            raise RuntimeError(f"The lot of {names[0]} could not start: it {end}: {last}")
        return lines, end


def _waited(child: subprocess.Popen[bytes], path: pathlib.Path, silence: float) -> str:
    """Waits for a process while its report grows; returns how it ended."""
    size, since = 0, time.monotonic()
    while True:
        try:
            status = child.wait(1)
            return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        except subprocess.TimeoutExpired:
            if path.stat().st_size != size:
                size, since = path.stat().st_size, time.monotonic()
            elif time.monotonic() - since > silence:
                child.kill()
                child.wait()
                return f"did not answer for {silence:g} s"
