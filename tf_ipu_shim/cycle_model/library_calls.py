"""Finds the temporary memory of matmuls, and the matmul that computed a tensor."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tf_ipu_shim.cycle_model.code_counts import code_counts
from tf_ipu_shim.cycle_model.computation import Computation
from tf_ipu_shim.cycle_model.phases import matmul_plan
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.memory.code import code_of
from tf_ipu_shim.machine.memory.curve import curve_of
from tf_ipu_shim.machine.memory.description import Block, Mode
from tf_ipu_shim.machine.memory.plan import IpuPlan, LibraryCall


def largest_call(block: Block, chip: ChipSpec) -> LibraryCall | None:
    """Returns the matmul that needs most temporary memory on a tile; one runs at a time.

    Example:
        >>> from tf_ipu_shim.cycle_model.sizes import MatmulSizes
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> block = Block("one product")
        >>> block.run("y", (), (), work=Computation("product", "y/dot", MatmulSizes(1, 16, 4096, 1024)))
        >>> largest_call(block, CHIPS["gc200"]).parts
        1
    """
    found = None
    for computation in dict.fromkeys(_products(block)):
        plan = matmul_plan(computation, chip)
        if plan is None or (found is not None and plan.temporary_bytes <= found.tile_bytes):
            continue
        partials = plan.partial_bytes + plan.received_bytes
        found = LibraryCall(
            computation.name,
            plan.tiles,
            plan.temporary_bytes,
            plan.temporary_bytes - partials,
            partials,
            plan.serial,
            int(computation.planning.proportion * chip.bytes_per_tile),
        )
    return found


def with_library_and_code(plan: IpuPlan, block: Block, chip: ChipSpec) -> IpuPlan:
    """Returns an IPU's plan with the temporary memory of library ops and the code of its program."""
    return dataclasses.replace(
        plan,
        library=largest_call(block, chip),
        code=code_of(code_counts(block, chip)),
        library_tile_bytes=_above_peak(block, chip, plan.not_always_live_bytes),
    )


def _above_peak(block: Block, chip: ChipSpec, peak_bytes: int) -> int:
    """Returns the bytes of a tile by which matmuls exceed the peak: each is added to the bytes live at its step."""
    most = 0
    for point in curve_of(block).points:
        work = point.block.steps[point.step].work
        plan = matmul_plan(work, chip) if isinstance(work, Computation) and work.kind == "product" else None
        if plan is not None:
            most = max(most, plan.temporary_bytes - (peak_bytes - point.bytes) // chip.tiles)
    return most


def matmul_of(block: Block, value_id: int) -> Computation | None:
    """Returns the matmul whose result, possibly reshaped, a value is.

    Example:
        >>> from tf_ipu_shim.cycle_model.sizes import MatmulSizes
        >>> from tf_ipu_shim.machine.memory import Value
        >>> block = Block("one product")
        >>> y = block.add(Value(65536, "y", "temporary"))
        >>> block.run("y", (), (y,), work=Computation("product", "y/dot", MatmulSizes(1, 16, 4096, 1024)))
        >>> matmul_of(block, y).name
        'y/dot'
    """
    while block.values[value_id].mode is Mode.VIEW and len(block.values[value_id].of) == 1:
        value_id = block.values[value_id].of[0]
    for step in reversed(block.steps):
        if value_id in step.outputs:
            work = step.work
            return work if isinstance(work, Computation) and work.kind == "product" else None
    return None


def _products(block: Block) -> Iterator[Computation]:
    for step in block.steps:
        if isinstance(step.work, Computation) and step.work.kind == "product":
            yield step.work
        for inner in step.inside:
            yield from _products(inner)
