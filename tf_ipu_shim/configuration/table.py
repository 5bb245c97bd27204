"""Every option of `IPUConfig` as data: type, default, the SDKs that have it, its protobuf field and its effect here.

One row is the whole truth about an option. `tree` builds the configuration from the rows, `translate` the protobuf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

from tf_ipu_shim.configuration.enums import (
    DeviceConnectionType,
    ExecutionProfileType,
    MergeRemoteBuffersBehaviour,
    SchedulingAlgorithm,
    SelectionOrder,
    StochasticRoundingBehaviour,
)
from tf_ipu_shim.configuration.verification import VerificationOptions
from tf_ipu_shim.machine.effects import DEVICES, MACHINE, MEMORY, OUTPUT, RECORDED, RESULTS

# Why an option is only recorded.
_PLANNING = "guides how PopLibs plans over tiles; XLA's CPU library computes here"
_COMPILER = "a pass of Poplar's compiler, which does not run here"
_TRANSFERS = "how data travel between host and IPU, which share their memory here"
_GROUPING = "when small transfers or collectives are sent together; each is made by itself here"
_REPORTS = "Poplar's own report, for which `memory_report()` stands here"
_REMOTE = "how remote buffers are laid out, which the memory model does not tell apart"
_ROUNDING = "arithmetic here is the CPU's, which does not round stochastically"
_TILES = "I/O tiles are not set apart in the memory model"
_EVENTS = {
    "profiling": "trace events of compilations, runs and transfers; a program that does not fit may run to its report",
    "enable_ipu_events": "trace events of compilations and runs",
}
_LAUNCHER = "processes and their ranks are those the launcher's environment names"

_IPU_NUMBERS = Union[int, list[int], tuple[int, ...]]
_ESR_2_4 = Union[StochasticRoundingBehaviour, bool]
_PROFILE = Union[ExecutionProfileType, bool]


@dataclass(frozen=True)
class Option:
    """One option.

    Args:
        path: dotted path.
        default: the default, or a function that makes a fresh one.
        doc: what the option does, on the hardware.
        field: dotted protobuf field; a leading `!` stands for its opposite; empty where `translate` does more.
        annotation: the type, where it is not the default's own.
        effect: what it changes here, one of `machine.effects.EFFECTS`.
        what: what that is, or why it is only recorded.
        since: the first SDK that has it.
        until: the last SDK that has it.
        older: for older SDKs, up to which one, with which type and which default.
        deprecated: what to use instead.
    """

    path: str
    default: Any
    doc: str
    field: str = ""
    annotation: Any = None
    effect: str = RECORDED
    what: str = ""
    since: tuple[int, int] = (2, 1)
    until: tuple[int, int] = (3, 4)
    older: tuple[tuple[tuple[int, int], Any, Any], ...] = ()
    deprecated: str | None = None

    def at(self, sdk: tuple[int, int]) -> tuple[Any, Any]:
        """Type and a fresh default in the given SDK."""
        for last, annotation, default in self.older:
            if sdk <= last:
                return annotation, default
        default = self.default() if isinstance(self.default, Callable) else self.default  # type: ignore[arg-type]
        return (type(default) if self.annotation is None else self.annotation), default


CATEGORIES: dict[str, str] = {
    "convolutions": "How convolutions are planned.",
    "device_connection": "When, and whether, TensorFlow devices attach to IPUs.",
    "slices": "How embedding lookups and updates are planned.",
    "experimental": "Options that may change or vanish.",
    "experimental.multi_replica_distribution": "Several processes that together run one replicated program.",
    "floating_point_behaviour": "Floating-point exceptions and rounding.",
    "io_tiles": "Tiles set apart for transfers, so that they overlap with computation.",
    "ipu_model": "The simulated chip; used with the flag --use_ipu_model.",
    "matmuls": "How matrix products are planned.",
    "norms": "How batch, group, layer and instance normalisation are computed.",
    "norms.experimental": "Normalisation options that may change or vanish.",
    "optimizations": "Passes over the graph before it is compiled.",
    "optimizations.math": "Algebraic simplification.",
    "pooling": "How pooling is planned.",
    "scheduling": "The order in which instructions run.",
    "_profiling": "Reports and trace events.",
    "_verified_transfers": "Verified transfers between host and device.",
}

OPTIONS: tuple[Option, ...] = (
    Option(
        "allow_recompute",
        False,
        "Compute forward activations again in the backward pass instead of keeping them: less memory, more work.",
        "speed_size_config.allow_recompute",
        effect=MEMORY,
        what="pipelines keep stashes instead of FIFOs",
    ),
    Option(
        "selection_order",
        SelectionOrder.AUTO,
        "Order in which shards take the IPUs of a multi-IPU device.",
        "selection_order",
        effect=DEVICES,
        what="the IPU of each shard, and so between which IPUs exchanges are",
    ),
    Option(
        "serialization_output_folder",
        "",
        "Directory for compiled executables; empty for none.",
        "serialization_folder",
        what="there are no Poplar executables to write",
    ),
    Option(
        "compilation_poplar_options",
        dict,
        "Options of the Poplar engine, from name to value, both text. `debug.allowOutOfMemory` lets a program that "
        "does not fit run to its report.",
        "compilation_options",
        effect=MEMORY,
        what="see the engine options",
    ),
    Option(
        "gcl_poplar_options",
        dict,
        "Options of the collectives library, from name to value, both text.",
        "gcl_options",
        what="collectives are computed in one place, on no links",
    ),
    Option(
        "auto_select_ipus",
        list,
        "Number of IPUs, or one number for each TensorFlow device; the first free ones are taken.",
        annotation=_IPU_NUMBERS,
        effect=DEVICES,
        what="how many IPUs each TensorFlow device has",
    ),
    Option(
        "select_ipus",
        list,
        "Poplar device id as `gc-info -l` lists them, or one for each TensorFlow device.",
        annotation=_IPU_NUMBERS,
        effect=DEVICES,
        what="which IPUs each TensorFlow device has",
    ),
    Option(
        "convolutions.poplar_options",
        dict,
        "Options of PopLibs convolutions, from name to value, both text.",
        "convolution_options",
        what=_PLANNING,
    ),
    Option(
        "device_connection.type",
        DeviceConnectionType.ALWAYS,
        "Attach when configured, when first used, or never.",
        "device_connection_type",
        effect=DEVICES,
        what="when they are attached; with NEVER and PRE_COMPILE programs are compiled only",
    ),
    Option(
        "device_connection.version",
        "",
        "Chip to compile for when no device is attached: ipu1, ipu2 or ipu21.",
        "ipu_version",
        effect=MACHINE,
        what="the chip of a device that never attaches",
    ),
    Option(
        "device_connection.enable_remote_buffers",
        False,
        "Whether the chip compiled for without a device has remote buffers.",
        "enable_remote_buffers_without_device",
        effect=MEMORY,
        what="optimizer state is in remote memory where a pipeline leaves it open",
    ),
    Option(
        "slices.poplar_options",
        dict,
        "Options of PopLibs slicing, from name to value, both text.",
        "slice_options",
        since=(2, 3),
        what=_PLANNING,
    ),
    Option(
        "experimental.always_rearrange_copies_on_the_host",
        False,
        "Change the layout of streams on the host instead of on the device.",
        "always_rearrange_copies_on_the_host",
        what=_TRANSFERS,
    ),
    Option(
        "experimental.enable_remote_buffer_embedding",
        False,
        "Keep host embeddings in remote buffers.",
        "enable_experimental_remote_buffer_embedding",
        what="host embeddings are in the host's memory either way",
    ),
    Option(
        "experimental.enable_prng_stability",
        False,
        "Keep the replicas' random numbers in step, so that they drift apart less under stochastic rounding.",
        "enable_experimental_prng_stability",
        since=(2, 3),
        what=_ROUNDING,
    ),
    Option(
        "experimental.multi_replica_distribution.process_index",
        0,
        "Rank of this process.",
        "multi_replica_process_index",
        what=_LAUNCHER,
    ),
    Option(
        "experimental.multi_replica_distribution.process_count",
        0,
        "Number of processes; 0 if there is only this one.",
        "multi_replica_process_count",
        what=_LAUNCHER,
    ),
    Option(
        "floating_point_behaviour.inv",
        False,
        "Stop at an invalid operation.",
        "floating_point_behaviour.inv",
        effect=RESULTS,
        what="a program stops at the op, as `docs/execution.md` says",
    ),
    Option(
        "floating_point_behaviour.div0",
        False,
        "Stop at a division by zero.",
        "floating_point_behaviour.div0",
        effect=RESULTS,
        what="a program stops at the op",
    ),
    Option(
        "floating_point_behaviour.oflo",
        False,
        "Stop at an overflow.",
        "floating_point_behaviour.oflo",
        effect=RESULTS,
        what="a program stops at the op",
    ),
    Option(
        "floating_point_behaviour.esr",
        StochasticRoundingBehaviour.OFF,
        "Where float16 results round stochastically.",
        older=(((2, 3), bool, False), ((2, 4), _ESR_2_4, StochasticRoundingBehaviour.OFF)),
        what=_ROUNDING,
    ),
    Option(
        "floating_point_behaviour.nanoo",
        False,
        "A float16 overflow gives NaN instead of the largest number.",
        "floating_point_behaviour.nanoo",
        effect=RESULTS,
        what="NaN where it is True; where it is False such a result is infinite, as in IEEE 754, and not clipped",
    ),
    Option(
        "floating_point_behaviour.set_all",
        False,
        "Switch on everything in this category.",
        effect=RESULTS,
        what="a program stops at the op; `esr` stays recorded only",
    ),
    Option(
        "io_tiles.num_io_tiles",
        0,
        "Number of tiles set apart for transfers.",
        "num_io_tiles",
        what=_TILES,
    ),
    Option(
        "io_tiles.place_ops_on_io_tiles",
        False,
        "Put transfer operations on the I/O tiles.",
        "place_ops_on_io_tiles",
        what=_TILES,
    ),
    Option(
        "io_tiles.available_memory_proportion",
        0.9,
        "Share of an I/O tile's memory that data may take.",
        "io_tile_available_memory_proportion",
        what=_TILES,
    ),
    Option(
        "ipu_model.compile_ipu_code",
        True,
        "Compile the chip's own code when simulating.",
        "ipu_model_config.compile_ipu_code",
        what="there is no IPU code to compile",
    ),
    Option(
        "ipu_model.tiles_per_ipu",
        0,
        "Tiles of each simulated IPU; 0 for the chip's own number.",
        "ipu_model_config.tiles_per_ipu",
        effect=MACHINE,
        what="tiles, with the flag --use_ipu_model",
    ),
    Option(
        "ipu_model.version",
        "ipu2",
        "The simulated chip: ipu1, ipu2 or ipu21.",
        "ipu_model_config.ipu_model_version",
        effect=MACHINE,
        what="the chip, with the flag --use_ipu_model",
    ),
    Option(
        "matmuls.clear_pass_type",
        False,
        "Do not tell PopLibs whether a product belongs to the forward or the backward pass.",
        "clear_matmul_pass_type",
        what=_PLANNING,
    ),
    Option(
        "matmuls.poplar_options",
        dict,
        "Options of PopLibs matrix products, from name to value, both text.",
        "matmul_options",
        what=_PLANNING,
    ),
    Option(
        "norms.use_stable_statistics",
        False,
        "Subtract the mean before the variance is computed: slower and steadier.",
        "use_stable_norm_statistics",
        what="TensorFlow's own kernels compute them; group norms always subtract the mean first",
    ),
    Option(
        "norms.experimental.distributed_batch_norm_replica_group_size",
        1,
        "Number of replicas that share batch-normalisation statistics in training.",
        "experimental_distributed_batch_norm_replica_group_size",
        effect=RESULTS,
        what="above 1, several replicas that train a batch normalisation are refused",
    ),
    Option(
        "optimizations.math.fast",
        False,
        "Allow rewrites that may change values a little.",
        "algebraic_simplifier_config.enable_fast_math",
        since=(2, 3),
        what=_COMPILER,
    ),
    Option(
        "optimizations.math.dot_strength",
        True,
        "Turn degenerate products of matrices into element-wise ones.",
        "algebraic_simplifier_config.enable_dot_strength",
        since=(2, 3),
        what=_COMPILER,
    ),
    Option(
        "optimizations.prefetch_data_streams",
        True,
        "Fetch data from the host while the device computes.",
        "prefetch_data_streams",
        what=_TRANSFERS,
    ),
    Option(
        "optimizations.combine_embedding_lookups",
        False,
        "Make one lookup of several on the same table.",
        "enable_multi_slice_combiner",
        what=_COMPILER,
    ),
    Option(
        "optimizations.combine_matmuls",
        False,
        "Make one product of several that share an operand.",
        "enable_matmul_combiner",
        what=_COMPILER,
    ),
    Option(
        "optimizations.enable_graph_outlining",
        True,
        "Let equal parts of the graph share code.",
        "!disable_graph_outlining",
        what=_COMPILER,
    ),
    Option(
        "optimizations.merge_infeed_io_copies",
        True,
        "Make one copy of an infeed's several.",
        "merge_infeed_io_copies",
        older=(((2, 4), bool, False),),
        what=_TRANSFERS,
    ),
    *(
        Option(
            f"optimizations.maximum_{name}",
            0,
            f"Bytes up to which {what} wait to be sent together; 0 for no waiting.",
            f"max_{name}",
            since=since,
            what=_GROUPING,
        )
        for name, what, since in (
            ("cross_replica_sum_buffer_size", "all-reduces", (2, 1)),
            ("reduce_scatter_buffer_size", "reduce-scatters", (2, 1)),
            ("inter_ipu_copies_buffer_size", "copies between IPUs", (2, 1)),
            ("send_recv_cluster_size", "transfers with the host", (2, 1)),
            ("reduce_many_buffer_size", "reductions", (2, 3)),
            ("all_gather_buffer_size", "all-gathers", (2, 4)),
        )
    ),
    Option(
        "optimizations.minimum_remote_tensor_size",
        128,
        "Bytes a tensor must have to be kept in remote memory.",
        "minimum_remote_tensor_size",
        effect=MEMORY,
        what="smaller tensors stay on the chip",
    ),
    Option(
        "optimizations.merge_remote_buffers",
        MergeRemoteBuffersBehaviour.IF_BENEFICIAL,
        "Whether compatible remote buffers share one.",
        "remote_buffer_merging_mode",
        what=_REMOTE,
    ),
    Option(
        "optimizations.enable_gather_simplifier",
        True,
        "Rewrite embedding lookups more freely.",
        "!disable_gather_simplifier",
        what=_COMPILER,
    ),
    Option(
        "optimizations.triangular_solve_expander_block_size",
        0,
        "Block size of triangular solves; 0 to have it chosen.",
        "triangular_solve_expander_block_size",
        what=_COMPILER,
    ),
    Option(
        "optimizations.cholesky_block_size",
        0,
        "Block size of Cholesky decompositions; 0 to have it chosen.",
        "cholesky_block_size",
        what=_COMPILER,
    ),
    Option(
        "optimizations.enable_fast_math",
        False,
        "The old place of optimizations.math.fast.",
        "enable_fast_math",
        deprecated="use optimizations.math.fast instead.",
        what=_COMPILER,
    ),
    Option(
        "optimizations.enable_dynamic_slice_replacement",
        True,
        "Plan dynamic slices and updates like embedding lookups.",
        "enable_dynamic_slice_replacement",
        since=(2, 5),
        what=_COMPILER,
    ),
    Option(
        "pooling.poplar_options",
        dict,
        "Options of PopLibs pooling, from name to value, both text.",
        "pooling_options",
        what=_PLANNING,
    ),
    Option(
        "scheduling.algorithm",
        SchedulingAlgorithm.CHOOSE_BEST,
        "Which scheduler is used.",
        "speed_size_config.scheduler_selection",
        what="the memory model has one schedule of its own",
    ),
    Option(
        "scheduling.maximum_scheduler_lookahead_depth",
        5,
        "How far the look-ahead scheduler searches.",
        "max_scheduler_lookahead_depth",
        what="the memory model has one schedule of its own",
    ),
    Option(
        "scheduling.maximum_scheduler_search_space_size",
        64,
        "How widely the look-ahead scheduler searches.",
        "max_scheduler_search_space_size",
        what="the memory model has one schedule of its own",
    ),
    *(
        Option(
            f"_profiling.{name}",
            default,
            doc,
            f"profiling.{field}",
            annotation,
            until=(2, 3),
            older=older,
            effect=OUTPUT if name in _EVENTS else RECORDED,
            what=_EVENTS.get(name, _REPORTS),
        )
        for name, default, doc, field, annotation, older in (
            ("profiling", False, "Make compilation reports and trace events.", "enable_compilation_trace", None, ()),
            ("enable_ipu_events", False, "Make trace events only.", "enable_ipu_trace_events", None, ()),
            ("use_poplar_text_report", False, "Reports as text.", "enable_poplar_reports_text", None, ()),
            ("use_poplar_cbor_report", False, "Reports as CBOR.", "enable_poplar_reports_cbor", None, ()),
            (
                "profile_execution",
                ExecutionProfileType.NO_PROFILE,
                "How fine the execution profile is; True for one figure for the device.",
                "execution_trace_type",
                _PROFILE,
                (),
            ),
            ("enable_poplar_serialized_graph", False, "The graph in trace events.", "enable_poplar_graph", None, ()),
            ("report_every_nth_execution", 0, "Runs per report; 0 for one.", "report_every_nth_execution", None, ()),
            ("max_report_size", 0x10000000, "Bytes a report may have.", "max_report_size", None, ()),
            ("report_directory", "", "Directory for reports.", "report_directory", None, ()),
            ("graph_poplar_options", dict, "Options of graph reports.", "graph_options", None, ()),
            ("execution_poplar_options", dict, "Options of execution reports.", "execution_options", None, ()),
            (
                "auto_assign_report_subdirectories",
                True,
                "A report directory for each program.",
                "auto_assign_report_subdirectories",
                None,
                (((2, 1), bool, False),),
            ),
        )
    ),
    Option(
        "_verified_transfers.enabled",
        False,
        "Verify transfers.",
        "verified_transfers.enabled",
        until=(2, 2),
        what=_TRANSFERS,
    ),
    Option(
        "_verified_transfers.key_id_pairs",
        VerificationOptions,
        "The keys of the streams.",
        until=(2, 2),
        what=_TRANSFERS,
    ),
)


def options_of(sdk: tuple[int, int]) -> list[Option]:
    """The options that `IPUConfig` has in an SDK; SDKs before 2.1, which have no `IPUConfig`, get those of 2.1."""
    line = max(tuple(sdk), (2, 1))
    return [option for option in OPTIONS if option.since <= line <= option.until]
