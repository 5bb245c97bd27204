"""Names the arguments of the configuration functions of `ipu.utils` by which a script sets options without effect.

These functions (SDK 1.2 to 2.3) came before `IPUConfig`. The log, the memory report and `tf-ipu check` name the
argument that the script wrote, not the path of the option.
"""

from __future__ import annotations

from tf_ipu_shim.configuration import table
from tf_ipu_shim.configuration.table import Option

_INVERTED = "!"

ARGUMENTS: dict[str, dict[str, str]] = {
    "create_ipu_config": {
        "use_poplar_text_report": "_profiling.use_poplar_text_report",
        "use_poplar_cbor_report": "_profiling.use_poplar_cbor_report",
        "enable_poplar_serialized_graph": "_profiling.enable_poplar_serialized_graph",
        "always_rearrange_copies_on_the_host": "experimental.always_rearrange_copies_on_the_host",
        "merge_infeed_io_copies": "optimizations.merge_infeed_io_copies",
        "disable_graph_outlining": "!optimizations.enable_graph_outlining",
        "max_scheduler_lookahead_depth": "scheduling.maximum_scheduler_lookahead_depth",
        "max_scheduler_search_space_size": "scheduling.maximum_scheduler_search_space_size",
        "prefetch_data_streams": "optimizations.prefetch_data_streams",
        "enable_experimental_remote_buffer_embedding": "experimental.enable_remote_buffer_embedding",
        "max_inter_ipu_copies_buffer_size": "optimizations.maximum_inter_ipu_copies_buffer_size",
    },
    "set_optimization_options": {
        "combine_embedding_lookups": "optimizations.combine_embedding_lookups",
        "combine_matmuls": "optimizations.combine_matmuls",
        "max_reduce_scatter_buffer_size": "optimizations.maximum_reduce_scatter_buffer_size",
        "max_inter_ipu_copies_buffer_size": "optimizations.maximum_inter_ipu_copies_buffer_size",
        "merge_remote_buffers": "optimizations.merge_remote_buffers",
        "gather_simplifier": "optimizations.enable_gather_simplifier",
        "triangular_solve_expander_block_size": "optimizations.triangular_solve_expander_block_size",
        "cholesky_block_size": "optimizations.cholesky_block_size",
        "enable_fast_math": "optimizations.enable_fast_math",
    },
    "set_norm_options": {"use_stable_statistics": "norms.use_stable_statistics"},
    "set_ipu_model_options": {"compile_ipu_code": "ipu_model.compile_ipu_code"},
    "set_transfer_options": {"use_verified_transfers": "_verified_transfers.enabled"},
    "set_verification_options": {"verification_options": "_verified_transfers.key_id_pairs"},
    "set_convolution_options": {"convolution_options": "convolutions.poplar_options"},
    "set_matmul_options": {"matmul_options": "matmuls.poplar_options", "clear_pass_type": "matmuls.clear_pass_type"},
    "set_pooling_options": {"pooling_options": "pooling.poplar_options"},
    "set_gcl_options": {"gcl_options": "gcl_poplar_options"},
    "set_report_options": {
        "graph_options": "_profiling.graph_poplar_options",
        "report_options": "_profiling.graph_poplar_options",
        "execution_options": "_profiling.execution_poplar_options",
    },
    "set_compilation_options": {"compilation_options": "compilation_poplar_options"},
}
"""By function and argument: the path of the option; a leading `!` marks an argument of the opposite sense."""

POSITIONAL = frozenset(ARGUMENTS) - {"create_ipu_config", "set_report_options"}
"""Functions whose first entry comes right after the `IpuOptions` in every SDK."""


def argument_of(path: str) -> tuple[str, bool] | None:
    """Returns the argument that sets an option, and whether it has the opposite sense; None if no function sets it.

    Example:
        >>> argument_of("optimizations.enable_graph_outlining")
        ('create_ipu_config(disable_graph_outlining)', True)
    """
    for function, rows in ARGUMENTS.items():
        for argument, row in rows.items():
            if row.removeprefix(_INVERTED) == path:
                return f"{function}({argument})", row.startswith(_INVERTED)
    return None


def option_of(function: str, argument: str) -> tuple[Option, bool] | None:
    """Returns the option that an argument sets, and whether it has the opposite sense; None for any other argument.

    Example:
        >>> option_of("set_norm_options", "use_stable_statistics")[0].path
        'norms.use_stable_statistics'
    """
    path = ARGUMENTS.get(function, {}).get(argument)
    if path is None:
        return None
    name = path.removeprefix(_INVERTED)
    return next(option for option in table.OPTIONS if option.path == name), path != name
