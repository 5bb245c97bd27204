"""Formats the out-of-memory error: the place, the reason, and possible fixes."""

from __future__ import annotations

from tf_ipu_shim import sdk
from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.machine.memory.plan import IpuPlan, MemoryPlan
from tf_ipu_shim.machine.memory.verdict import PEAK_ERROR_FACTOR

_OWNERS_SHOWN = 5
_CONTRIBUTIONS_SHOWN = 3
_EXCEPTION_NAMES_SINCE = (2, 3)


def fullest_ipu(plan: MemoryPlan) -> IpuPlan | None:
    """Returns the IPU whose fullest tile exceeds its memory most; None if the program fits.

    Example:
        >>> from tf_ipu_shim.machine.memory import plan
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> empty = plan.plan_of(0, plan.Block("nothing"), CHIPS["gc200"])
        >>> fullest_ipu(MemoryPlan(program="cluster", device="/device:IPU:0", chip="GC200", ipus=(empty,))) is None
        True
    """
    over = [ipu for ipu in plan.ipus if not ipu.fits]
    return max(over, key=lambda ipu: (ipu.max_tile_bytes - ipu.bytes_per_tile, -ipu.ipu), default=None)


def out_of_memory_text(plan: MemoryPlan, line: sdk.SdkVersion, is_keras: bool = False) -> str:
    """Returns Graphcore's out-of-memory message, then where and why the program does not fit, and possible fixes.

    Source: docs/reference/facts.md, section "Out of memory".

    Example:
        >>> from tf_ipu_shim.machine.memory import plan
        >>> from tf_ipu_shim.machine.chips import CHIPS
        >>> block = plan.Block("too large")
        >>> x = block.add(plan.Value(3_000_000, "x", "argument"))
        >>> block.run("x", (), (x,))
        >>> full = plan.plan_of(0, block, CHIPS["gc200"].with_tiles(4))
        >>> whole = MemoryPlan(program="cluster", device="/device:IPU:0", chip="GC200", ipus=(full,))
        >>> out_of_memory_text(whole, sdk.parse("3.4")).splitlines()[0]
        '[Poplar][Compile engine] graph_memory_allocation_error: Out of memory on tile 0: 750000 bytes used but ...'
    """
    full = fullest_ipu(plan)
    if full is None:
        return ""
    origin = "[Error][Compile engine] "
    if line >= _EXCEPTION_NAMES_SINCE:
        origin = "[Poplar][Compile engine] graph_memory_allocation_error: "
    lines = [
        f"{origin}Out of memory on tile {full.max_tile}: {full.max_tile_bytes} bytes used but tiles only have "
        f"{full.bytes_per_tile} bytes of memory",
        overflow_sentence(plan),
        f"Always live: {format_bytes(full.always_live_bytes)}. Not always live: "
        f"{format_bytes(full.not_always_live_bytes)}, at step {full.largest_step or '(none)'}. Code and library "
        "temporaries come on top.",
        "Largest allocations:",
    ]
    shown = full.owners[:_OWNERS_SHOWN]
    width = max([len("activation"), *(len(owner.kind) for owner in shown)])
    for owner in shown:
        where = f", {owner.line}" if owner.line else ""
        lines.append(
            f"  {format_bytes(owner.bytes):>10}  {owner.kind:<{width}}  {owner.name} (shard {full.ipu}{where})"
        )
    other_ipus = [ipu.ipu for ipu in plan.ipus if not ipu.fits and ipu is not full]
    if other_ipus:
        lines.append(f"Also too full: IPU {', '.join(map(str, other_ipus))}.")
    lines += advice_lines(plan, is_keras)
    lines.append(
        'The whole report: with the engine option "debug.allowOutOfMemory": "true" and tf_ipu_shim.memory_report().'
    )
    return "\n".join(lines)


def overflow_sentence(plan: MemoryPlan) -> str:
    """Returns how much a program needs on its fullest IPU, and by how much that is too much; empty if it fits."""
    full = fullest_ipu(plan)
    if full is None:
        return ""
    over = sum(max(0, size - full.bytes_per_tile) for size in full.tile_bytes)
    return (
        f"Program {plan.program} on {plan.device} ({plan.chip}) does NOT fit: it needs {format_bytes(full.peak_bytes)} "
        f"on IPU {full.ipu} (shard {full.ipu}), which has {format_bytes(full.limit_bytes)}: {format_bytes(over)} over, "
        f"on {sum(size > full.bytes_per_tile for size in full.tile_bytes)} of {len(full.tile_bytes)} tiles."
    )


def close_text(plan: MemoryPlan) -> str:
    """Returns the warning about a program that may not fit on IPUs, with the three largest contributions."""
    full = max(plan.ipus, key=lambda ipu: ipu.expected_tile_bytes / ipu.bytes_per_tile)
    return (
        f"Program {plan.program} on {plan.device} ({plan.chip}) is close to the memory of IPU {full.ipu}: "
        f"{fullest_tile_sentence(full)} The error factor is {PEAK_ERROR_FACTOR}, so the program may not fit on "
        "hardware. Run `tf-ipu fit` on the script for advice."
    )


def fullest_tile_sentence(ipu: IpuPlan) -> str:
    """Returns a sentence on the expected bytes of an IPU's fullest tile, with the three largest contributions."""
    parts = ", ".join(f"{name} {format_bytes(size)}" for name, size in ipu.contributions[:_CONTRIBUTIONS_SHOWN])
    return (
        f"the fullest tile is expected to hold {format_bytes(ipu.expected_tile_bytes)} of "
        f"{format_bytes(ipu.bytes_per_tile)}. Largest contributions: {parts}."
    )


def advice_lines(plan: MemoryPlan, is_keras: bool = False) -> list[str]:
    """Advice for a program that does not fit, as lines; empty if it fits."""
    full = fullest_ipu(plan)
    if full is None:
        return []
    if not plan.savings:
        return [f"What to try: {'; '.join(_advice(plan, full, is_keras))}."]
    return [
        f"The actions that save most on IPU {full.ipu}, by a new memory plan for each:",
        *(
            f"  {format_bytes(saving.bytes):>10}  {saving.action}: "
            + ("fits then" if saving.fits else "not enough by itself")
            for saving in plan.savings
        ),
    ]


def _advice(plan: MemoryPlan, full: IpuPlan, is_keras: bool) -> list[str]:
    """Returns generic advice for programs without recommendations."""
    sizes = full.categories
    advice = []
    if len(plan.ipus) == 1:
        how = "PipelineStage or model.set_pipeline_stage_assignment" if is_keras else "ipu_shard"
        do = "pipeline" if is_keras else "shard"
        advice.append(f"{do} the model over more IPUs (auto_select_ipus with {how})")
    else:
        part = "pipeline stage" if is_keras else "shard"
        advice.append(f"move layers to another {part}, or use more IPUs")
    if sizes["activation"] + sizes["temporary"] + sizes["argument"] >= sizes["weight"]:
        advice.append("a smaller batch")
    if sizes["fifo"]:
        advice.append("recomputation (allow_recompute)")
    if sizes["fifo"] + sizes["stash"]:
        advice.append("another pipeline schedule (Interleaved or Sequential), or offload_activations")
    if sizes["optimizer_state"] and sizes["accumulator"]:
        advice.append("offload_weight_update_variables")
    advice.append("float16 instead of float32")
    return advice
