"""Lists the compiler's passes in order, with the program properties that each needs, guarantees and destroys.

`tests/compiler/test_pipeline.py` checks that a pass's preconditions still hold when it runs.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tf_ipu_shim.compiler.checks import diagnostics, host_ops, nested_calls, outlined_arguments, outside_scopes
from tf_ipu_shim.compiler.emit import replica_programs
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.loops import (
    gradient_accumulation,
    interruptible_loops,
    outfeed_counts,
    overlap_iterations,
    pipeline_description,
    writing_conditions,
)
from tf_ipu_shim.compiler.loops.chunks import chunk_loops
from tf_ipu_shim.compiler.lowering_state import LoweringState, XlaState
from tf_ipu_shim.compiler.passes import (
    assertions,
    branch_lists,
    candidate_samplers,
    constant_propagation,
    feed_order,
    forward_resource_handles,
    host_control_dependencies,
    prune_loop_bodies,
    random_seeds,
    returned_handles,
    row_updates,
    shuffles,
    synthetic_data,
    variable_order,
)
from tf_ipu_shim.compiler.placement.placement import Placer
from tf_ipu_shim.compiler.replicas import distributed_batch_norm, replicas
from tf_ipu_shim.compiler.xla_semantics import (
    float16_overflow,
    integer_cast_wraparound,
    kernel_results,
    reassociation_barriers,
    resize_gradients,
    slice_updates,
    string_comparisons,
    user_op_calls,
    xla_workarounds,
)
from tf_ipu_shim.machine.environment import flags


class Property(enum.Enum):
    """The properties of a program between two passes."""

    SCRIPT_LOOPS = "each loop has the variables and the trip count that the script gave it"
    SINGLE_ITERATIONS = "a loop's body runs one iteration"
    NESTING_CHECKED = "calls are nested no deeper than XLA compiles"
    MINI_BATCHES_CHECKED = "the counts of mini-batches fit together"
    HOST_OPS_CHECKED = "outfeeds are not dequeued by the program that fills them"
    OPTIONS_CHECKED = "Poplar accepts the options of each op"
    SCOPES_CHECKED = "host scopes are outside loops and branches"
    OUTLINED_ARGUMENTS_CHECKED = "outlined functions have no argument whose value XLA must know"
    FEEDS_ORDERED = "feed ops are in program order, before the side effects of their iteration"
    BODIES_PRUNED = "loops and branches of TensorFlow 1 run only what their results need"
    CONDITIONS_PURE = "conditions of loops write no variables"
    HOST_EFFECTS_ORDERED = "host ops wait directly for earlier host effects"
    ACCUMULATORS_CARRIED = "accumulated gradients are loop variables"
    LISTS_PRESENT = "branches return lists instead of `FakeParam`"
    HANDLES_FORWARDED = "ops take a resource handle from its argument"
    HANDLES_NOT_RETURNED = "branches return no unused resource handle"
    CONSTANTS_PROPAGATED = "constant results of functions are constants in the callers"
    STRINGS_FOLDED = "comparisons of constant strings are constants"
    USER_OPS_TARGETED = "users' Poplar ops have the chip they are built for"
    CASTS_WRAP = "casts to narrow integers wrap around"
    MISCOMPILED_REPLACED = "ops that XLA computes wrongly are replaced"
    RESIZES_REPLACED = "gradients of nearest-neighbour resizing are matmuls"
    SAMPLERS_REPLACED = "candidate samplers are replaced by other ops"
    SHUFFLES_REPLACED = "random shuffles are replaced by other ops"
    RANDOM_OPS_STATELESS = "random ops take an explicit seed"
    FEEDS_FINAL = "infeeds and outfeeds are those that run, or synthetic data"
    ITERATIONS_OVERLAPPED = "mini-batches of a pipeline wait only for their own feeds"
    REPLICAS_KNOWN = "the replicas and their IPUs are known"
    REPLICA_COUNT_FOLDED = "no op asks for the number of replicas; collectives have two replicas or more"
    ROW_UPDATES_SCATTERED = "gradient descent on looked-up rows writes these rows"
    STATISTICS_SHARED = "batch normalisations use the statistics of their group of replicas"
    ENQUEUES_COUNTED = "the number of elements that a run enqueues is known"
    LOCATIONS_KNOWN = "each op can be given a location"
    LONG_LOOPS_MARKED = "loops that may take long are marked"
    LOOPS_CHUNKED = "loops with feeds have functions that run several iterations"
    EMITTED = "the functions that run are written"
    COMPILABLE = "XLA can compile each op"
    DESCRIBED = "the program lists the values that its runs send and receive"
    KERNEL_RESULTS = "XLA computes the values of TensorFlow's kernels, NaN and infinity included"
    NOT_REASSOCIATED = "XLA keeps the order of float arithmetic"
    SLICE_UPDATES_CORRECT = "launches with slice updates that XLA miscompiles are not fused"
    ACCESSES_ORDERED = "calls, loops and branches access variables in program order"
    USER_OPS_CALLED = "users' Poplar ops are custom calls"
    ASSERTIONS_COMPILED = "assertions stop a launch"
    FLOAT16_SATURATED = "float16 results that overflow are clipped"
    INTERRUPTIBLE = "long loops check for Ctrl-C"


_State = TypeVar("_State")


@dataclasses.dataclass(frozen=True)
class Pass(Generic[_State]):
    """A step of the compiler.

    Args:
        run: changes the state of a lowering.
        needs: its preconditions.
        destroys: conditions that may no longer hold afterwards.
    """

    name: str
    run: Callable[[_State], None]
    needs: frozenset[Property]
    guarantees: frozenset[Property]
    destroys: frozenset[Property]


_P = Property
INITIAL = frozenset({_P.SCRIPT_LOOPS, _P.SINGLE_ITERATIONS})
"""The properties of a traced function."""


def _pass(
    step: Callable[[_State], None],
    guarantees: Property,
    *needs: Property,
    destroys: tuple[Property, ...] = (),
    name: str = "",
) -> Pass[_State]:
    return Pass(name or step.__name__.lstrip("_"), step, frozenset(needs), frozenset({guarantees}), frozenset(destroys))


def _rewrite(
    change: Callable[[Functions], Any], guarantees: Property, *needs: Property, destroys: tuple[Property, ...] = ()
) -> Pass[LoweringState]:
    """Returns a pass that needs nothing but the functions."""

    def step(state: LoweringState) -> None:
        change(state.functions)

    return _pass(step, guarantees, *needs, destroys=destroys, name=change.__name__)


def _check(
    check: Callable[[diagnostics.Diagnostics, Functions], None], guarantees: Property, *needs: Property
) -> Pass[LoweringState]:
    """Returns a pass that refuses programs, with the script's line."""

    def step(state: LoweringState) -> None:
        check(state.diagnostics, state.functions)

    return _pass(step, guarantees, *needs, name=check.__name__)


def _xla(change: Callable[[LoweredProgram], LoweredProgram], guarantees: Property, *needs: Property) -> Pass[XlaState]:
    """Returns a pass that changes the planned program for XLA."""

    def step(state: XlaState) -> None:
        state.program = change(state.program)

    return _pass(step, guarantees, *needs, name=change.__name__)


def _check_outfeeds(state: LoweringState) -> None:
    host_ops.check_outfeeds(state.diagnostics, state.functions, state.request.ordinal)


def _refuse_constant_arguments(state: LoweringState) -> None:
    outlined_arguments.refuse_constant_arguments(state.call, state.diagnostics, state.functions)


def _add_seeds(state: LoweringState) -> None:
    random_seeds.add_seeds(state.functions, state.request.ordinal)


def _set_targets(state: LoweringState) -> None:
    ipus = replicas.ipus_of_replica(state.functions, state.options.num_ipus)
    user_op_calls.set_targets(state.functions, state.options.target, ipus)


def _use_synthetic_data(state: LoweringState) -> None:
    synthetic_data.use_synthetic_data(state.functions, flags.current())


def _make_replicas(state: LoweringState) -> None:
    options = state.options
    state.replicas = replicas.make_replicas(
        state.functions, options.num_ipus, state.group, options.order, options.share
    )


def _fold_replica_count(state: LoweringState) -> None:
    replicas.fold_replica_count(state.functions, state.replicas[0])


def _share_statistics(state: LoweringState) -> None:
    total = state.replicas[0].total
    distributed_batch_norm.share_statistics(state.functions, total, state.options.statistics_group)


def _count_enqueues(state: LoweringState) -> None:
    state.enqueues = outfeed_counts.count_enqueues(state.functions)


def _make_placer(state: LoweringState) -> None:
    state.placer = Placer(state.functions, state.replicas[0].shards, line_of=state.diagnostics.user_line)


def _chunk_loops(state: LoweringState) -> None:
    is_single = len(state.replicas) == 1 and not state.functions.with_ops(vocabulary.COLLECTIVES)
    if state.options.chunks and is_single:
        chunk_loops(state.functions, state.placer)


def _refuse_uncompilable(state: LoweringState) -> None:
    diagnostics.refuse_uncompilable(state.plugin, state.diagnostics, state.functions, state.compiled)


def _use_kernel_results(state: XlaState) -> None:
    state.program = kernel_results.with_kernel_results(state.program, state.runs_by_one_dnn)


def _compile_assertions(state: XlaState) -> None:
    state.program = assertions.compile_assertions(state.program, state.diagnostics.describe)


def _saturate_float16(state: XlaState) -> None:
    if not state.on_model:
        state.program = float16_overflow.saturate_float16(state.program)


def _make_interruptible(state: XlaState) -> None:
    if not state.in_application:  # Ctrl-C must not end a program that serves other processes
        state.program = interruptible_loops.make_interruptible(state.program)


_BEFORE_EMISSION = frozenset(
    kept
    for kept in itertools.takewhile(lambda property_: property_ is not _P.EMITTED, _P)
    if kept not in (_P.SCRIPT_LOOPS, _P.SINGLE_ITERATIONS, _P.FEEDS_ORDERED)
)
PASSES = (
    _check(nested_calls.refuse_deep_nesting, _P.NESTING_CHECKED),
    _rewrite(pipeline_description.check_counts, _P.MINI_BATCHES_CHECKED, _P.SCRIPT_LOOPS),
    _pass(_check_outfeeds, _P.HOST_OPS_CHECKED),
    _rewrite(feed_order.order_feeds, _P.FEEDS_ORDERED),
    _rewrite(prune_loop_bodies.prune_bodies, _P.BODIES_PRUNED),
    # A condition that is moved into the body carries its effects with it: what is to go has gone by then.
    _rewrite(writing_conditions.carry_conditions, _P.CONDITIONS_PURE, _P.BODIES_PRUNED),
    _rewrite(host_control_dependencies.add_control_dependencies, _P.HOST_EFFECTS_ORDERED, _P.BODIES_PRUNED),
    _check(diagnostics.refuse_invalid_options, _P.OPTIONS_CHECKED),
    _check(outside_scopes.refuse_in_control_flow, _P.SCOPES_CHECKED),
    _pass(_refuse_constant_arguments, _P.OUTLINED_ARGUMENTS_CHECKED),
    _rewrite(
        gradient_accumulation.carry_accumulators,
        _P.ACCUMULATORS_CARRIED,
        _P.SCRIPT_LOOPS,  # the trip count has to be a multiple of the mini-batches
        destroys=(_P.SCRIPT_LOOPS,),
    ),
    _rewrite(branch_lists.replace_missing_lists, _P.LISTS_PRESENT),
    _rewrite(forward_resource_handles.forward_handles, _P.HANDLES_FORWARDED),
    _rewrite(returned_handles.drop_returned_handles, _P.HANDLES_NOT_RETURNED, _P.HANDLES_FORWARDED),
    _rewrite(constant_propagation.propagate_constants, _P.CONSTANTS_PROPAGATED, _P.LISTS_PRESENT),
    _rewrite(string_comparisons.fold_comparisons, _P.STRINGS_FOLDED, _P.CONSTANTS_PROPAGATED),
    _pass(_set_targets, _P.USER_OPS_TARGETED),
    _rewrite(integer_cast_wraparound.widen_casts, _P.CASTS_WRAP),
    _rewrite(xla_workarounds.replace_miscompiled_ops, _P.MISCOMPILED_REPLACED),
    _rewrite(resize_gradients.replace_resize_gradients, _P.RESIZES_REPLACED),
    # Both draw by random ops.
    _rewrite(candidate_samplers.replace_samplers, _P.SAMPLERS_REPLACED, destroys=(_P.RANDOM_OPS_STATELESS,)),
    _rewrite(shuffles.replace_shuffles, _P.SHUFFLES_REPLACED, destroys=(_P.RANDOM_OPS_STATELESS,)),
    _pass(_add_seeds, _P.RANDOM_OPS_STATELESS),
    # The seed is an op of the host, which the flags may replace too.
    _pass(_use_synthetic_data, _P.FEEDS_FINAL, _P.FEEDS_ORDERED, _P.RANDOM_OPS_STATELESS),
    _rewrite(
        overlap_iterations.overlap_mini_batches,
        _P.ITERATIONS_OVERLAPPED,
        _P.FEEDS_FINAL,
        _P.BODIES_PRUNED,
        _P.ACCUMULATORS_CARRIED,  # an accumulation op has an effect, a loop variable has none
        destroys=(_P.FEEDS_ORDERED,),  # each feed waits only for itself
    ),
    _pass(_make_replicas, _P.REPLICAS_KNOWN, _P.FEEDS_FINAL),
    _pass(_fold_replica_count, _P.REPLICA_COUNT_FOLDED, _P.REPLICAS_KNOWN),
    _rewrite(row_updates.update_rows, _P.ROW_UPDATES_SCATTERED, _P.REPLICA_COUNT_FOLDED),
    # It adds collectives, each of as many replicas as there are.
    _pass(_share_statistics, _P.STATISTICS_SHARED, _P.REPLICAS_KNOWN, _P.REPLICA_COUNT_FOLDED),
    _pass(_count_enqueues, _P.ENQUEUES_COUNTED, _P.FEEDS_FINAL, _P.SINGLE_ITERATIONS),
    _pass(_make_placer, _P.LOCATIONS_KNOWN, _P.REPLICAS_KNOWN, _P.HANDLES_FORWARDED),
    _rewrite(interruptible_loops.mark_long_loops, _P.LONG_LOOPS_MARKED, _P.SINGLE_ITERATIONS),
    _pass(
        _chunk_loops,
        _P.LOOPS_CHUNKED,
        _P.SINGLE_ITERATIONS,
        _P.LOCATIONS_KNOWN,
        _P.LONG_LOOPS_MARKED,
        _P.STATISTICS_SHARED,  # a program with collectives has no chunks
        _P.FEEDS_FINAL,
        destroys=(_P.SINGLE_ITERATIONS,),
    ),
    _pass(
        replica_programs.emit_replicas,
        _P.EMITTED,
        *_BEFORE_EMISSION,
    ),
    _pass(_refuse_uncompilable, _P.COMPILABLE, _P.EMITTED),
    _pass(replica_programs.describe_runs, _P.DESCRIBED, _P.EMITTED, _P.ENQUEUES_COUNTED),
)

_LOWERED = (_P.EMITTED, _P.COMPILABLE, _P.DESCRIBED)
XLA_PASSES = (
    _pass(_use_kernel_results, _P.KERNEL_RESULTS, *_LOWERED),
    # The ops that replace others are reassociated, and overflow, like all.
    _xla(reassociation_barriers.with_barriers, _P.NOT_REASSOCIATED, *_LOWERED, _P.KERNEL_RESULTS),
    _xla(slice_updates.disable_fusion, _P.SLICE_UPDATES_CORRECT, *_LOWERED),
    _xla(variable_order.order_variable_accesses, _P.ACCESSES_ORDERED, *_LOWERED),
    _xla(user_op_calls.compile_user_ops, _P.USER_OPS_CALLED, *_LOWERED, _P.USER_OPS_TARGETED),
    _pass(_compile_assertions, _P.ASSERTIONS_COMPILED, *_LOWERED),
    _pass(_saturate_float16, _P.FLOAT16_SATURATED, *_LOWERED, _P.KERNEL_RESULTS),
    _pass(_make_interruptible, _P.INTERRUPTIBLE, *_LOWERED, _P.LONG_LOOPS_MARKED),
)
"""The passes of what XLA runs, after the program's memory is planned: the plan must not see what they add."""
