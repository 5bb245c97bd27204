"""Lowers a traced function to XLA programs by running the passes of `pipeline` in order."""

from __future__ import annotations

from tf_ipu_shim.compiler import pipeline
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.compiler.lowering_state import LoweringOptions, LoweringState, XlaState
from tf_ipu_shim.plugin.library import Call, Library


def lower(plugin: Library, call: Call, request: ProgramRequest, options: LoweringOptions) -> LoweredProgram:
    """Turns a traced function into XLA programs, exchanges and host ops."""
    state = LoweringState(plugin, call, request, options)
    for compiler_pass in pipeline.PASSES:
        compiler_pass.run(state)
    return state.program


def prepare_for_xla(state: XlaState) -> LoweredProgram:
    """Returns the planned program with rewrites that make XLA compute, stop and fail as an IPU does."""
    for compiler_pass in pipeline.XLA_PASSES:
        compiler_pass.run(state)
    return state.program
