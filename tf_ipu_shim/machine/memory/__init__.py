"""Computes how much memory a program needs on each IPU before it runs. Never imports TensorFlow.

description     a program as values, and the steps that make and use them
liveness        live memory at each step: always-live, and the largest not-always-live step
schedule        an order of the steps that keeps little alive
tiles           spreading over the tiles of a chip
kept            a plan as text, for a cache
code            code and stacks of a tile, from counts of compute sets, exchanges and vertex types
verdict         fits, close or does not fit
curve           live tensors at every step, and their lifetimes
dot             the schedule as a graph in the DOT language
plan            `MemoryPlan`: the figures of a program, IPU by IPU
byte_text       numbers of bytes: in units, or all digits
savings         savings of an action if it does not fit
out_of_memory   whether it fits, and the text of the error if it does not
"""

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
