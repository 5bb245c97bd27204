"""Holds the options of a memory analysis: the figures to estimate, and the what-if changes."""

from __future__ import annotations

import dataclasses
from typing import Any

from tf_ipu_shim.memory_model.computations.compute_set_names import ComputeSetNames
from tf_ipu_shim.memory_model.computations.planner_options import PlannerOptions
from tf_ipu_shim.memory_model.shapes.sizes import Sizes
from tf_ipu_shim.memory_model.variables.mapped_tensors import MappedTensors
from tf_ipu_shim.memory_model.variables.storage import Storage


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnalysisOptions:
    """Options of a memory analysis; every part of the analysis reads them here.

    Args:
        storage: the memory that stores variables and gradient accumulators.
        names: names of compute sets; with them steps record their computations, so that cycles can be estimated.
        planner_options: the planner options of matmuls without their own options.
        tensors: collects the tensors of the program for a tensor map.
        sizes: how many bytes tensors have.
        modules: the HLO of programs by content, shared between analyses of one program.
        post_order: whether instructions run in post-order instead of the order that keeps least memory alive.
    """

    storage: Storage = dataclasses.field(default_factory=Storage)
    names: ComputeSetNames | None = None
    planner_options: PlannerOptions = PlannerOptions()
    tensors: MappedTensors | None = None
    sizes: Sizes = dataclasses.field(default_factory=Sizes)
    modules: dict[Any, Any] | None = None
    post_order: bool = False
