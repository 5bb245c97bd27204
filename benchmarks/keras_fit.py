"""Keras on an IPU against stock Keras on the CPU: the same models, the same data, equal losses after each epoch."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.programs import forms, keras_models
from benchmarks.results import Result
from benchmarks.runner import Settings, compare, judge
from benchmarks.worker import Worker

SAME_STEPS = 1.0  # of stock fit's time with the same steps_per_execution
DEFAULTS = 1 / 3  # of stock fit's time with its defaults
FIRST_BATCH = 1.5  # of stock Keras' with jit_compile=True
MEMORY = 1.1
PAIRS = 9  # a sample is an epoch
QUICK_STEPS = 4


def run(settings: Settings) -> Iterator[Result]:
    forms.configure()
    settings = dataclasses.replace(settings, pairs=min(settings.pairs, PAIRS), sample_seconds=0.0)
    tasks = keras_models.TASKS[:1] if settings.quick else keras_models.TASKS
    for task in tasks:
        if settings.quick:
            task = dataclasses.replace(task, steps=QUICK_STEPS, steps_per_execution=2)
        for name, target, options in (
            ("the same steps_per_execution", SAME_STEPS, {"steps_per_execution": task.steps_per_execution}),
            (
                "the same, jit_compile=True",
                None,
                {"steps_per_execution": task.steps_per_execution, "jit_compile": True},
            ),
            ("defaults", DEFAULTS if task.name == "MLP" else None, {}),
        ):
            ours = keras_models.Fit(task, ipu=True, steps_per_execution=task.steps_per_execution)
            stock = keras_models.Fit(task, ipu=False, **options)
            yield compare(f"{task.name}: fit, stock with {name}", ours, stock, settings, ratio=target, tolerance=1e-3)
    for task in tasks:
        yield _first_batch(task, settings)
    for task in tasks[:2]:
        yield _memory(task, settings)


def _first_batch(task: keras_models.Task, settings: Settings) -> Result:
    """From a compiled model to the end of its first batch; each has a new width, for which XLA has no program."""
    times = []
    for index in range(settings.repeats + 1):
        seconds: dict[bool, float] = {}
        losses: dict[bool, np.ndarray] = {}
        sides = (True, False) if index % 2 else (False, True)
        for ipu in sides:
            only = dataclasses.replace(task, width=task.width + index, steps=1)
            side = keras_models.Fit(only, ipu=ipu, steps_per_execution=1, jit_compile=not ipu)
            start = time.perf_counter()
            losses[ipu] = side.outputs(1)[0][0]
            seconds[ipu] = time.perf_counter() - start
        keras_models.check_equal(task, losses[True], losses[False])
        times.append((seconds[True], seconds[False]))
    return judge(f"{task.name}: first batch, stock with jit_compile=True", times[1:], ratio=FIRST_BATCH)


def _memory(task: keras_models.Task, settings: Settings) -> Result:
    """Peak memory of a process that imports, builds and trains."""
    peaks = []
    for _ in range(min(settings.repeats, 3)):
        pair = []
        for function in ("ipu_process", "stock_process"):
            worker = Worker("benchmarks.programs.keras_models", function, {"BENCHMARK_TASK": task.name})
            try:
                pair.append((worker.outputs(1)[0][0], worker.seconds(1)))
            finally:
                worker.close()
        keras_models.check_equal(task, pair[0][0], pair[1][0])
        peaks.append((pair[0][1], pair[1][1]))
    result = judge(f"{task.name}: peak memory of a process", peaks, ratio=MEMORY)
    more = {"MB ours": peaks[0][0] / 1e6, "MB stock": peaks[0][1] / 1e6}
    return dataclasses.replace(result, ours_us=None, reference_us=None, more=more)
