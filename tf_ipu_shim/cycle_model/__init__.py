"""Models the cycles of a program on each IPU before it runs. Never imports TensorFlow.

`docs/explanation/machine_model.md` has the sources, and compares them with published figures.
"""

from __future__ import annotations

from tf_ipu_shim.cycle_model import error_bars as error_bars
from tf_ipu_shim.cycle_model.computation import KINDS, Computation, SyncPoint
from tf_ipu_shim.cycle_model.entry import Entry, PipelineSlots
from tf_ipu_shim.cycle_model.error_bars import ERROR_FACTORS
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
