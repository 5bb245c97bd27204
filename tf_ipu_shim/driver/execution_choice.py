"""Chooses execution mode `xla` or `kernels` by estimated total time.

The estimate is a sum over what the program computes (`memory_model.computations.work`), so that the same script
always gets the same answer. The number of runs is unknown when a program is lowered. It is assumed to run for
`HORIZON_SECONDS` in the faster mode, at least once and at most `MOST_RUNS` times. So what XLA takes to compile counts
for more, the less there is to gain.

The constants are times of two cores of one machine (an AMD EPYC with AVX-512), fitted to measurements of
`benchmarks/execution_ways.py` and other programs. Work that both modes have in common matters little; their differences
decide.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tensorflow.compat.v2 import version as versions

from tf_ipu_shim.compiler.kernels.execution_mode import Execution
from tf_ipu_shim.machine.environment.execution_mode import KERNELS, XLA
from tf_ipu_shim.memory_model.computations.work import ProgramWork, Work

HORIZON_SECONDS = 30.0
"""The assumed time that a program runs in a process: a few epochs of a small model."""
MOST_RUNS = 5000.0
"""The largest assumed number of runs."""
SHORT_SECONDS = 200e-6
"""A program that takes less time in mode `kernels` gains nothing from a second thread: waking one takes 20 to 60 us."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Costs:
    """Cost coefficients of an execution mode, in nanoseconds.

    Args:
        iteration: for an iteration of a loop with feeds, in chunks if the mode has them.
        inner_iteration: for an iteration of a loop within a program.
        element: for an element that an op returns or reads.
        wide_element: the same of ops that return many.
        chunked_element: the same in chunks, of other ops.
        window: for an element that the gradient of a pooling reads.
        product: whether it is a multiplication or addition of matmuls.
        even_product: the same of small ones that are not thin.
        square_product: the same of these that XLA runs on all cores.
        grouped_convolution: the same of those of groups of channels, which XLA has no library for on the CPU.
        looped_convolution: the same of convolutions within a loop of a program.
        result: for an element that XLA's program returns, or that kernels write to a variable.
        start: once for each instruction of HLO.
        start_alone: once for each that XLA compiles by itself, besides.
        start_squared: once for the square of their count in one XLA program.
    """

    call: float
    iteration: float
    op: float
    inner_iteration: float
    element: float
    wide_element: float
    chunked_element: float
    window: float
    product: float
    small_product: float
    even_product: float
    square_product: float
    convolution: float
    grouped_convolution: float
    looped_convolution: float
    result: float
    chunked_result: float
    random: float
    start: float
    start_alone: float
    start_squared: float

    def run(self, work: ProgramWork) -> float:
        """Returns the seconds of a run."""
        return 1e-9 * (
            self.call * work.launches
            + self.iteration * work.iterations
            + self.random * work.random
            + self._computing(work.work, self.element, self.result)
            + self._computing(work.chunked_work, self.chunked_element, self.chunked_result)
        )

    def begin(self, work: ProgramWork) -> float:
        """Returns the seconds before the first run: compiling or creating ops."""
        return 1e-9 * sum(
            self.start * count + self.start_alone * alone + self.start_squared * count * count
            for count, alone in work.compiled.values()
        )

    def _computing(self, work: Work, elements: float, result: float) -> float:
        return (
            self.op * work.ops
            + self.inner_iteration * work.iterations
            + elements * (work.passes + work.inner)
            + self.wide_element * work.wide_passes
            + result * work.results
            + self.window * work.windows
            + self.product * work.products
            + self.small_product * work.small_products
            + self.even_product * work.even_products
            + self.square_product * work.square_products
            + self.convolution * work.convolutions
            + self.grouped_convolution * work.grouped_convolutions
            + self.looped_convolution * work.looped_convolutions
        )


_KERNELS = Costs(
    call=6_000,
    iteration=45_000,
    op=600,
    inner_iteration=20_000,
    element=0.8,
    wide_element=0.25,
    chunked_element=0.35,
    window=0.25,
    product=0.0026,
    small_product=0.0064,
    even_product=0.0064,
    square_product=0.0064,
    convolution=0.014,
    grouped_convolution=0.06,
    looped_convolution=0.014,
    result=0.35,
    chunked_result=0.35,
    random=120_000,
    start=120_000,
    start_alone=0,
    start_squared=0,
)
_XLA = Costs(
    call=32_000,
    iteration=4_700,
    op=125,
    inner_iteration=500,
    element=1.4,
    wide_element=0.17,
    chunked_element=0.4,
    window=3.0,
    product=0.0027,
    small_product=0.01,
    even_product=0.01,
    square_product=0.0036,
    convolution=0.029,
    grouped_convolution=1.2,
    looped_convolution=0.35,
    result=0.9,
    chunked_result=0.6,
    random=2_000,
    start=500_000,
    start_alone=8_000_000,
    start_squared=500,
)
_COSTS = {XLA: _XLA, KERNELS: _KERNELS}
# XLA's programs have other libraries since, update variables in place, and take several times as much to compile.
_LATER_COSTS = {
    XLA: dataclasses.replace(
        _XLA,
        call=18_500,
        element=0.95,
        chunked_element=0.3,
        window=1.7,
        product=0.0026,
        small_product=0.0045,
        even_product=0.006,
        convolution=0.017,
        result=0.1,
        chunked_result=0.1,
        start=1_000_000,
        start_alone=15_000_000,
    ),
    KERNELS: dataclasses.replace(_KERNELS, wide_element=0.15),
}
_LATER = (2, 18)


def costs(version: str = versions.VERSION) -> Mapping[str, Costs]:
    """Returns the costs of each mode on a TensorFlow version, the installed one by default."""
    major, minor = version.split(".")[:2]
    return _LATER_COSTS if (int(major), int(minor)) >= _LATER else _COSTS


def is_short(work: ProgramWork) -> bool:
    """Returns whether a program's kernels run sequentially on the calling thread."""
    return costs()[KERNELS].run(work) < SHORT_SECONDS


def choose(work: ProgramWork) -> Execution:
    """Returns the execution mode for a program."""
    mode_costs = costs()
    runs = {mode: mode_costs[mode].run(work) for mode in mode_costs}
    begins = {mode: mode_costs[mode].begin(work) for mode in mode_costs}
    count = min(MOST_RUNS, max(1.0, HORIZON_SECONDS / max(min(runs.values()), 1e-6)))
    mode = min(mode_costs, key=lambda mode: begins[mode] + count * runs[mode])
    messages = [f"{runs[mode] * 1e3:.3g} ms a run after {begins[mode]:.2g} s" for mode in (XLA, KERNELS)]
    return Execution(mode, f"estimated {messages[0]} by XLA, {messages[1]} by kernels")
