"""Compares the two execution modes of a program, and the chosen one with the better of the two.

All sides run the same program in one process, in turns. The chosen mode is one of the other two, so its ratio says
whether the choice was right. Constants of `driver.execution_choice` were fitted to these results.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import four_shards, parallel_training, training_loops
from benchmarks.programs import forms, keras_models, models
from benchmarks.results import Result
from benchmarks.runner import Call, OutputsDiffer, Settings, judge

MODES = ("xla", "kernels", "auto")
WITHIN = 1.1  # of the better mode's time
PAIRS = 9
LEAST_SECONDS = 0.03  # of a sample
TOLERANCE = 1e-3
HALF_TOLERANCE = 2e-2  # twenty products, one after the other, of numbers with eleven bits
_VARIABLE = "TF_IPU_SHIM_EXECUTION_MODE"


def run(settings: Settings) -> Iterator[Result]:
    from tf_ipu_shim import ipu

    pairs = min(settings.pairs, PAIRS)
    before = os.environ.get(_VARIABLE)
    try:
        for name, (ipus, make) in tasks(settings.quick).items():
            ipu.config.reset_ipu_configuration()
            forms.configure(ipus, num_cpus=4)
            yield _measured(name, make, pairs, 0.0 if settings.quick else LEAST_SECONDS)
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before


def tasks(quick: bool) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Number of IPUs, and the function that makes a side, by name."""

    def loop(model: models.Model, steps: int) -> tuple[int, Callable[[], Any]]:
        return 1, lambda: training_loops.on_device(model, steps)

    def once(model: models.Model) -> tuple[int, Callable[[], Any]]:
        return 1, lambda: forms.session(model, forms.IPU)

    def pipeline(width: int, count: int) -> tuple[int, Callable[[], Any]]:
        stages = parallel_training._Stages(width, batch=8 if width == 16 else 64, count=count)
        return parallel_training.STAGES, stages.pipelined

    def replicas(number: int, widths: list[int]) -> tuple[int, Callable[[], Any]]:
        name = f"MLP {'-'.join(map(str, widths))}"
        return number, lambda: parallel_training.replicated(models.mlp_step(32, widths, name), 50, widths)

    def fit(task: keras_models.Task) -> tuple[int, Callable[[], Any]]:
        return 1, lambda: keras_models.Fit(task, ipu=True, steps_per_execution=task.steps_per_execution)

    if quick:
        return {"conv net, a step": once(models.conv_step(4, 8, 2, "conv net")), "pipeline": pipeline(16, 8)}
    return {
        "100 element-wise ops of 4": once(elementwise(100, 4)),
        "100 element-wise ops of 1000000": once(elementwise(100, 1_000_000)),
        "20 products of 64": once(models.matmul_chain(64, 20, "products")),
        "20 products of 256": once(models.matmul_chain(256, 20, "products")),
        "20 products of 384": once(models.matmul_chain(384, 20, "products")),
        "20 products of 256, float16": once(halves(models.matmul_chain(256, 20, "products"))),
        "four shards of 384": (
            four_shards.SHARDS,
            lambda: four_shards.sharded(four_shards.branches, four_shards.values(384)),
        ),
        "MLP 784-512-512-10, a step": once(models.mlp_step(128, [784, 512, 512, 10], "step")),
        "MLP 784-32-10, a step": once(models.mlp_step(32, [784, 32, 10], "step")),
        "MLP 784-32-10, 200 steps": loop(models.mlp_step(32, [784, 32, 10], "loop"), 200),
        "MLP 784-512-512-10, 100 steps": loop(models.mlp_step(32, [784, 512, 512, 10], "loop"), 100),
        "conv net, 20 steps": loop(models.conv_step(32, 28, 8, "loop"), 20),
        **{f"Keras {task.name}, an epoch": fit(task) for task in keras_models.TASKS},
        "pipeline of 4 stages 16 wide": pipeline(16, 32),
        "pipeline of 4 stages 512 wide": pipeline(512, 16),
        "2 replicas 784-32-10, 50 steps": replicas(2, [784, 32, 10]),
        "2 replicas 784-512-512-10, 50 steps": replicas(2, [784, 512, 512, 10]),
        "4 replicas 784-32-10, 50 steps": replicas(4, [784, 32, 10]),
    }


def elementwise(ops: int, size: int) -> models.Model:
    """A chain of element-wise ops, which XLA fuses into one."""
    import tensorflow as tf

    def function(variables: Any, x: Any) -> Any:
        for index in range(ops):
            x = tf.tanh(x * 1.01 + 0.1) if index % 2 else x * x * 0.5
        return x

    return models.Model(f"{ops} element-wise ops", [], [np.linspace(0, 1, size, dtype=np.float32)], function)


def halves(model: models.Model) -> models.Model:
    """Returns the same model of float16."""
    numbers = [[value.astype(np.float16) for value in values] for values in (model.variables, model.inputs)]
    return dataclasses.replace(model, name=f"{model.name} of float16", variables=numbers[0], inputs=numbers[1])


def _measured(name: str, make: Callable[[], Any], pairs: int, least: float) -> Result:
    # All are made before the first runs: Keras' seed has TensorFlow drop its kernels, and programs are lowered again.
    sides: dict[str, Call] = {mode: make() for mode in MODES}
    outputs, first = {}, {}
    for mode in MODES:
        os.environ[_VARIABLE] = mode  # read when a program first runs
        start = time.process_time()
        outputs[mode] = sides[mode].outputs(1)
        first[mode] = time.process_time() - start
        _check(name, mode, outputs[mode], outputs["xla"])
    calls = max(1, round(least / max(1e-9, min(side.seconds(1) for side in sides.values()))))
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    for index in range(pairs):
        for mode in MODES if index % 2 else MODES[::-1]:
            times[mode].append(sides[mode].seconds(calls) / calls)
    better = min(("xla", "kernels"), key=lambda mode: statistics.median(times[mode]))
    result = judge(f"{name}: auto, against {better}", list(zip(times["auto"], times[better])), ratio=WITHIN)
    more = {f"first run by {mode}, processor seconds": first[mode] for mode in MODES}
    more["kernels against xla"] = statistics.median(b / a for a, b in zip(times["xla"], times["kernels"]))
    return dataclasses.replace(result, more=more)


def _check(name: str, mode: str, found: list[list[np.ndarray]], expected: list[list[np.ndarray]]) -> None:
    for ours, theirs in zip(found[0], expected[0], strict=True):
        tolerance = HALF_TOLERANCE if ours.dtype == np.float16 else TOLERANCE
        if not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance):
            raise OutputsDiffer(f"{name}: by {mode} it gives\n{ours}\nwhere XLA gives\n{theirs}")
