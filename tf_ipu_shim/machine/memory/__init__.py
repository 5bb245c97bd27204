"""Computes how much memory a program needs on each IPU before it runs. Never imports TensorFlow."""

from __future__ import annotations

from tf_ipu_shim.machine.memory.code import CODE_ERROR_FACTOR, CodeCounts, TilePart, code_of
from tf_ipu_shim.machine.memory.description import Block, LoopResults, Mode, Step, Value
from tf_ipu_shim.machine.memory.liveness import Liveness, live, smallest
from tf_ipu_shim.machine.memory.out_of_memory import (
    advice_lines,
    close_text,
    fullest_ipu,
    out_of_memory_text,
    overflow_sentence,
)
from tf_ipu_shim.machine.memory.plan import (
    CATEGORIES,
    LIBRARY_ERROR_FACTOR,
    IpuPlan,
    LibraryCall,
    MemoryPlan,
    Owner,
    Saving,
    plan_of,
)
from tf_ipu_shim.machine.memory.savings import best, saving_between
from tf_ipu_shim.machine.memory.verdict import Verdict

__all__ = [
    "CATEGORIES",
    "CODE_ERROR_FACTOR",
    "CodeCounts",
    "LIBRARY_ERROR_FACTOR",
    "Block",
    "IpuPlan",
    "LibraryCall",
    "Liveness",
    "MemoryPlan",
    "Mode",
    "Owner",
    "Saving",
    "Step",
    "LoopResults",
    "TilePart",
    "Value",
    "Verdict",
    "close_text",
    "code_of",
    "saving_between",
    "best",
    "live",
    "out_of_memory_text",
    "overflow_sentence",
    "plan_of",
    "smallest",
    "advice_lines",
    "fullest_ipu",
]
