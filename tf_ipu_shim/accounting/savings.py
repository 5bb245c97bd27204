"""Plans a program that does not fit anew, as other options would have it: what each of them saves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator

from tensorflow.core.framework import function_pb2

from tf_ipu_shim.accounting import variable_kinds
from tf_ipu_shim.accounting.pipeline_memory import pipelines_in
from tf_ipu_shim.accounting.storage import Storage
from tf_ipu_shim.accounting.work import ProgramWork
from tf_ipu_shim.lowering import vocabulary
from tf_ipu_shim.lowering.program import ProgramRequest
from tf_ipu_shim.machine.memory import MemoryPlan, Saving, beside, best, of_figures, worst

MOST_INSTRUCTIONS = 20_000
"""Of programs that are planned anew; a larger one would take long to be refused."""
_OFFLOADING = {
    variable_kinds.STATE: "offload_weight_update_variables=True",
    variable_kinds.ACCUMULATOR: "offload_gradient_accumulation_buffers=True",
    variable_kinds.WEIGHT: "offload_weights=True",
}


def savings(
    request: ProgramRequest,
    plan: MemoryPlan,
    work: ProgramWork,
    storage: Storage,
    plan_with: Callable[[Storage], MemoryPlan],
) -> tuple[Saving, ...]:
    """The actions that save most on the IPU that is fullest.

    Args:
        request: the program.
        plan: its memory, which does not fit.
        work: what it computes: how large it is.
        storage: where its variables are.
        plan_with: plans it anew with variables elsewhere.
    """
    full = worst(plan)
    if full is None:
        return ()
    found = of_figures(plan, full, storage.replicas, request.is_keras)
    if sum(size.instructions for size in work.compiled.values()) <= MOST_INSTRUCTIONS:
        found += [
            beside(plan, full, plan_with(changed), action) for action, changed in _changes(request, plan, storage)
        ]
    return best(found)


def _changes(request: ProgramRequest, plan: MemoryPlan, storage: Storage) -> Iterator[tuple[str, Storage]]:
    """What the options of this program could be."""
    kinds = {kind for ipu in plan.ipus for kind, size in ipu.categories.items() if size}
    training = [one for one in pipelines_in(request.library.values()) if one.training]
    if any(one.stages > 1 for one in training) and not storage.recomputes and kinds & {"fifo", "activation"}:
        yield "recomputation (allow_recompute=True)", dataclasses.replace(storage, recomputes=True)
    state, movable = variable_kinds.STATE, _movable(request, bool(training))
    for kind, option in _OFFLOADING.items():
        if kind in movable & kinds - storage.offloaded:
            changed = dataclasses.replace(storage, offloaded=storage.offloaded | {kind})
            yield f"{kind.replace('_', ' ')} in remote memory ({option})", changed
    if state in movable & kinds - storage.shared and storage.replicas > 1:
        changed = dataclasses.replace(storage, shared=storage.shared | {state})
        yield "optimizer state shared by the replicas (replicated_optimizer_state_sharding=True)", changed


def _movable(request: ProgramRequest, trains_in_pipeline: bool) -> set[str]:
    """The kinds of variables for which the program has options that say where they are."""
    movable = {variable_kinds.ACCUMULATOR, variable_kinds.WEIGHT} if trains_in_pipeline else set()
    if trains_in_pipeline or _accumulates(request.library.values()):
        movable.add(variable_kinds.STATE)
    return movable


def _accumulates(functions: Iterable[function_pb2.FunctionDef]) -> bool:
    """Whether an optimizer of the program accumulates gradients, and so has these options."""
    return any(
        vocabulary.ACCUMULATOR_ATTRIBUTE in node.attr or vocabulary.UPDATE_ATTRIBUTE in node.attr
        for function in functions
        for node in function.node_def
    )
