"""Adds a lowered program to the programs that `tf-ipu fit` captures."""

from __future__ import annotations

import dataclasses

from tf_ipu_shim.compiler.checks.diagnostics import program_name
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.driver.engine_needed import needs_engine
from tf_ipu_shim.machine.memory import MemoryPlan
from tf_ipu_shim.memory_model.computations.work import ProgramWork
from tf_ipu_shim.memory_model.memory_plan import PlanDetails
from tf_ipu_shim.memory_model.walk.analysis_context import batch_size_of
from tf_ipu_shim.runtime import captured_programs
from tf_ipu_shim.runtime.captured_programs import CapturedProgram
from tf_ipu_shim.runtime.device import IpuDevice


def add(
    request: ProgramRequest,
    program: LoweredProgram,
    device: IpuDevice,
    plan: MemoryPlan,
    details: PlanDetails,
    work: ProgramWork,
) -> None:
    """Captures a program if Graphcore would compile an engine for it."""
    if not needs_engine(request, program):
        return
    name = program_name(request.function, request.name)
    # Feeds go side by side, as samples and their labels do.
    steps, items = max(work.feeds.values(), default=(1.0, float(batch_size_of(request))))
    replicas = max(1, program.replicas)
    captured_programs.add(
        CapturedProgram(
            name,
            dataclasses.replace(plan, program=name, device=device.name),
            details.blocks,
            device.num_ipus,
            replicas,
            steps,
            items * replicas,
            request.is_keras,
            device.options.speed_size_config.allow_recompute,
            device.options.minimum_remote_tensor_size if device.has_remote_buffers else None,
        )
    )
