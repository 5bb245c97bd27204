"""Models the cycles of a program on each IPU before it runs. Never imports TensorFlow.

computation   the computation of one step, independent of the chip
sizes         the sizes of a computation, one class for each kind
planning      planner options of matmuls
popops_loops  the inner loops of element-wise vertices, by operation and dtype
vertices      cycles of a tile's element-wise vertices: PopLibs' published estimators
library_vertices  cycles of reductions, slices, pooling, random numbers and other library vertices
matmuls       matmuls and convolutions: how they are split over tiles, and the cycles of that
code_counts   counts of code owners: compute sets, exchanges, messages, vertex types
library_calls temporary memory of matmuls, and which matmul computed a tensor
phase         a sync, exchange or compute set, and how tensors are spread over tiles
lookups       gathers, scatters and slices as phases
phases        a computation as syncs, exchanges and compute sets of one IPU
entry         a node of the timeline
io_overlap    feed copies that overlap with an iteration
bars          error bars by the limit of a program
timeline      when each part of a program begins, and which IPU waits for which

`docs/explanation/machine_model.md` has the sources, and compares them with published figures.
"""

from __future__ import annotations

from tf_ipu_shim.cycle_model import bars as bars
from tf_ipu_shim.cycle_model.computation import KINDS, Computation, SyncPoint
from tf_ipu_shim.cycle_model.entry import Entry, PipelineSlots
from tf_ipu_shim.cycle_model.error_factors import ERROR_FACTORS
from tf_ipu_shim.cycle_model.library_calls import largest_call, matmul_of, with_library_and_code
from tf_ipu_shim.cycle_model.matmuls import MatmulPlan, plan_matmul
from tf_ipu_shim.cycle_model.phase import Phase
from tf_ipu_shim.cycle_model.phases import phases_of
from tf_ipu_shim.cycle_model.planning import MatmulOptions, OptionError
from tf_ipu_shim.cycle_model.timeline import Timeline, timeline_of

__all__ = [
    "ERROR_FACTORS",
    "KINDS",
    "Computation",
    "Entry",
    "SyncPoint",
    "Phase",
    "MatmulOptions",
    "OptionError",
    "MatmulPlan",
    "PipelineSlots",
    "Timeline",
    "largest_call",
    "phases_of",
    "plan_matmul",
    "matmul_of",
    "timeline_of",
    "with_library_and_code",
]
