"""Models how many cycles a program takes on each IPU before it runs. Never imports TensorFlow.

computation   what one step computes, whatever chip it is for
planning      what scripts ask of PopLibs' planner for products
vertices      cycles of a tile's vertices: PopLibs' published formulas
products      matrix products and convolutions: a plan over the tiles, and its cycles
library_calls what products need beside the tensors, and what they give
phases        a computation as syncs, exchanges and compute sets of one chip
entry         a node of the tree below
io_overlap    copies of feeds with the host, beside what an iteration computes
timeline      a program as a tree of these, with the time each begins: who waits for whom

`docs/machine_model.md` has the sources, and published figures beside these.
"""

from __future__ import annotations

from tf_ipu_shim.cycle_model.computation import KINDS, Computation, SyncPoint
from tf_ipu_shim.cycle_model.entry import Entry, PipelineSlots
from tf_ipu_shim.cycle_model.library_calls import largest_call, matmul_of
from tf_ipu_shim.cycle_model.phases import ERROR_FACTORS, Phase, phases_of
from tf_ipu_shim.cycle_model.planning import MatmulOptions, OptionError
from tf_ipu_shim.cycle_model.products import MatmulPlan, plan_matmul
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
]
