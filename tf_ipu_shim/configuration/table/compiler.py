"""Compiler options: passes, scheduling, recomputation, dumps."""

from __future__ import annotations

from tf_ipu_shim.configuration.enums import SchedulingAlgorithm
from tf_ipu_shim.configuration.table.option import Option
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import MEMORY, OUTPUT

_SCHEDULE = "the memory model has one schedule"

OPTIONS: tuple[Option, ...] = (
    Option(
        "allow_recompute",
        False,
        "Compute forward activations again in the backward pass instead of keeping them: less memory, more work.",
        "speed_size_config.allow_recompute",
        effect=MEMORY,
        meaning="pipelines keep stashes instead of FIFOs, and stages run forward twice",
    ),
    Option(
        "serialization_output_folder",
        "",
        "Directory for compiled executables; empty for none.",
        "serialization_folder",
        effect=OUTPUT,
        meaning="two files for each program, in the form of the executable cache and as a list of its streams",
    ),
    Option(
        "optimizations.math.fast",
        False,
        "Allow rewrites that may change values a little.",
        "algebraic_simplifier_config.enable_fast_math",
        since=(2, 3),
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.math.dot_strength",
        True,
        "Turn degenerate products of matrices into element-wise ones.",
        "algebraic_simplifier_config.enable_dot_strength",
        since=(2, 3),
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.combine_embedding_lookups",
        False,
        "Make one lookup of several on the same table.",
        "enable_multi_slice_combiner",
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.combine_matmuls",
        False,
        "Make one product of several that share an operand.",
        "enable_matmul_combiner",
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.enable_graph_outlining",
        True,
        "Let equal parts of the graph share code.",
        "!speed_size_config.disable_graph_outlining",
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.enable_gather_simplifier",
        True,
        "Rewrite embedding lookups more freely.",
        "!disable_gather_simplifier",
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.triangular_solve_expander_block_size",
        0,
        "Block size of triangular solves; 0 to have it chosen.",
        "triangular_solve_expander_block_size",
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.cholesky_block_size",
        0,
        "Block size of Cholesky decompositions; 0 to have it chosen.",
        "cholesky_block_size",
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.enable_fast_math",
        False,
        "The old place of optimizations.math.fast.",
        "enable_fast_math",
        deprecated="use optimizations.math.fast instead.",
        meaning=reasons.COMPILER,
    ),
    Option(
        "optimizations.enable_dynamic_slice_replacement",
        True,
        "Plan dynamic slices and updates like embedding lookups.",
        "enable_dynamic_slice_replacement",
        since=(2, 5),
        meaning=reasons.COMPILER,
    ),
    Option(
        "scheduling.algorithm",
        SchedulingAlgorithm.CHOOSE_BEST,
        "Which scheduler is used.",
        "speed_size_config.scheduler_selection",
        effect=MEMORY,
        meaning="`POST_ORDER`: instructions run in post-order, whatever memory that needs; the others change nothing",
    ),
    Option(
        "scheduling.maximum_scheduler_lookahead_depth",
        5,
        "How far the look-ahead scheduler searches.",
        "max_scheduler_lookahead_depth",
        meaning=_SCHEDULE,
    ),
    Option(
        "scheduling.maximum_scheduler_search_space_size",
        64,
        "How widely the look-ahead scheduler searches.",
        "max_scheduler_search_space_size",
        meaning=_SCHEDULE,
    ),
)
