"""Counts the parts of a program that need code: compute sets, exchanges, messages and vertex types."""

from __future__ import annotations

from collections.abc import Iterator

from tf_ipu_shim.cycle_model.computation import Computation, SyncPoint
from tf_ipu_shim.cycle_model.phase import MINIMUM_BYTES_PER_TILE, Phase
from tf_ipu_shim.cycle_model.phases import phases_of
from tf_ipu_shim.cycle_model.sizes import CollectiveSizes, ExchangeSizes
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory.code import MESSAGES_OF_EXCHANGE, CodeCounts
from tf_ipu_shim.machine.memory.description import Block

OPERAND_MESSAGE_BYTES = 32
"""Bytes of a group of a matmul operand's channels: 16 of float16 or 8 of float32."""


def code_counts(block: Block, chip: ChipSpec) -> CodeCounts:
    """Returns the counts of an IPU's program; equal computations are outlined, so they count once.

    Example:
        >>> from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> block = Block("two additions")
        >>> add = Computation("elementwise", "add", ElementwiseSizes(1472 * 64, 2))
        >>> block.run("a", (), (), work=add); block.run("b", (), (), work=add)
        >>> code_counts(block, CHIPS["gc200"])
        CodeCounts(vertex_types=1.0, compute_sets=1, compute_set_parts=1.0, exchanges=0, messages=0.0, host_exchanges=0)
    """
    types: dict[tuple[str, int], float] = {}
    compute_sets = exchanges = host_exchanges = 0
    compute_set_parts = messages = 0.0
    for computation in {one._replace(name="", product=None): None for one in _computations(block)}:
        if isinstance(computation.sizes, (CollectiveSizes, ExchangeSizes)):
            exchanges += 1
            continue
        for phase in phases_of(computation, chip):
            part = phase.tiles / chip.tiles
            if phase.kind == "compute":
                compute_sets += 1
                compute_set_parts += part
                vertex = phase.vertex, computation.element_bytes
                types[vertex] = max(types.get(vertex, 0.0), part)
            elif phase.kind == "host":
                host_exchanges += 1
            elif phase.kind == "exchange":
                exchanges += 1
                messages += part * _messages(phase, computation.kind == "product" and phase.name == "/PreArrange")
    return CodeCounts(sum(types.values()), compute_sets, compute_set_parts, exchanges, messages, host_exchanges)


def _messages(phase: Phase, is_operand: bool) -> int:
    """Returns the messages of an exchange that each of its tiles receives."""
    length = OPERAND_MESSAGE_BYTES if is_operand else MINIMUM_BYTES_PER_TILE
    return min(MESSAGES_OF_EXCHANGE, -(-phase.bytes // max(1, phase.tiles) // length))


def _computations(block: Block) -> Iterator[Computation]:
    for step in block.steps:
        work = step.work.computation if isinstance(step.work, SyncPoint) else step.work
        if isinstance(work, Computation):
            yield work
        for inner in step.inside:
            yield from _computations(inner)
