"""Chooses execution mode `xla` or `kernels` by estimated total time.

The estimate is a sum over the program's computations (`memory_model.computations.work`), so that the same script always
gets the same answer. The number of runs is unknown when a program is lowered. It is assumed to run for
`HORIZON_SECONDS` in the faster mode, at least once and at most `MOST_RUNS` times. So XLA's compile time counts for
more, the less there is to gain.

The costs are times of two cores of one machine (an AMD EPYC with AVX-512), fitted to measurements of
`benchmarks/execution_modes.py` and other programs. Work that both modes have in common matters little: differences
decide.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from tensorflow.compat.v2 import version as versions

from tf_ipu_shim import data_files
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
        wide_element: the same for ops that return many.
        chunked_element: the same in chunks, for other ops.
        window: for an element that the gradient of a pooling reads.
        product: whether it is a multiplication or addition of matmuls.
        even_product: the same for small ones that are not thin.
        square_product: the same for even ones that XLA runs on all cores.
        grouped_convolution: the same for grouped convolutions, for which XLA has no library on the CPU.
        looped_convolution: the same for convolutions within a loop of a program.
        result: for an element that XLA's program returns, or that kernels write to a variable.
        update: for an element of a variable of which some rows are new; kernels and chunks write those in place.
        start: once for each instruction of HLO.
        start_alone: added once for each that XLA compiles separately.
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
    update: float
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
            + self.update * work.work.updates
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


_LATER = (2, 18)
"""From this TensorFlow on XLA's programs have other libraries, update variables in place, and compile more slowly."""


@functools.cache
def _read(columns: str) -> dict[str, Costs]:
    """Returns the costs of each mode from columns of `execution_costs.csv`."""
    rows = data_files.rows(__file__, "execution_costs.csv")
    return {mode: Costs(**{row["cost"]: float(row[mode + columns]) for row in rows}) for mode in (XLA, KERNELS)}


def costs(version: str = versions.VERSION) -> Mapping[str, Costs]:
    """Returns the costs of each mode on a TensorFlow version, the installed one by default."""
    major, minor = version.split(".")[:2]
    return _read(" from 2.18" if (int(major), int(minor)) >= _LATER else "")


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
