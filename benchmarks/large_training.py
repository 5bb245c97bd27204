"""BERT-Base and ResNet-50 on an IPU against stock Keras on the CPU: the first step, later ones, memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.programs.large_models import TASKS
from benchmarks.results import Result
from benchmarks.runner import OutputsDiffer, Settings, judge
from benchmarks.worker import Worker

FIRST_STEP = 1.2  # of stock Keras' without jit_compile
LOWERING = 0.1  # of the first step
STEPS = 5  # of each side, in turns
PROCESSES = 2  # of each side


def run(settings: Settings) -> Iterator[Result]:
    for name in TASKS:
        yield from _compared(name, settings)


def _compared(name: str, settings: Settings) -> list[Result]:
    """Returns all figures of a task, from pairs of processes."""
    task, first, later, peaks, shares = TASKS[name], [], [], [], []
    variables = {
        "BENCHMARK_TASK": name,
        "BENCHMARK_QUICK": "1" if settings.quick else None,
        "POPLAR_ENGINE_OPTIONS": '{"debug.allowOutOfMemory": "true"}',  # one IPU holds no BERT-Base with Adam
    }
    for index in range(1 if settings.quick else PROCESSES):
        workers = [
            Worker("benchmarks.programs.large_models", f"{side}_process", variables) for side in ("ipu", "stock")
        ]
        try:
            turns = (1, 0) if index % 2 else (0, 1)
            begun = dict(sorted((turn, workers[turn].outputs(1)[0][0].tolist()) for turn in turns))
            steps = [[worker.seconds(1) for worker in workers] for _ in range(2 if settings.quick else STEPS)]
            ended = [worker.outputs(1)[0][0].tolist() for worker in workers]
        finally:
            for worker in workers:
                worker.close()
        _check(task.name, begun[0], begun[1])
        _check(task.name, ended[0], ended[1])
        first.append((begun[0][1], begun[1][1]))
        shares.append((begun[0][2], begun[0][1]))
        later.extend((ours, stock) for ours, stock in steps)
        peaks.append((ended[0][3], ended[1][3]))
    memory = judge(f"{task.name}: peak memory of a process", peaks)
    more = {"GB ours": peaks[0][0] / 1e9, "GB stock": peaks[0][1] / 1e9}
    return [
        judge(f"{task.name}: first step", first, ratio=FIRST_STEP),
        judge(f"{task.name}: lowering and memory plan, of the first step", shares, ratio=LOWERING),
        judge(f"{task.name}: later steps", later),
        dataclasses.replace(memory, ours_us=None, reference_us=None, more=more),
    ]


def _check(name: str, ours: Sequence[float], stock: Sequence[float]) -> None:
    if not np.allclose(ours[0], stock[0], rtol=2e-2):
        raise OutputsDiffer(f"{name}: the loss is {ours[0]}, stock Keras has {stock[0]}")
