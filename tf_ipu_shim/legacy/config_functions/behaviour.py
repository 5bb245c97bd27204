"""`IpuOptions` functions for optimization, rounding, normalization, tiles and transfers."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.configuration import checks, translate
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.enums import MergeRemoteBuffersBehaviour
from tf_ipu_shim.configuration.verification import VerificationOptions
from tf_ipu_shim.configuration.warnings import warn
from tf_ipu_shim.legacy.config_functions.deprecation import replaced_by_ipu_config


@replaced_by_ipu_config
@argument_order(7, "gather_simplifier triangular_solve_expander_block_size", until=(1, 3))
@argument_order(11, "enable_fast_math", since=(1, 4), until=(2, 0))
def set_optimization_options(
    opts: Any,
    combine_embedding_lookups: bool = False,
    combine_matmuls: bool = False,
    max_cross_replica_sum_buffer_size: int = 0,
    max_reduce_scatter_buffer_size: int = 0,
    max_inter_ipu_copies_buffer_size: int = 0,
    max_send_recv_cluster_size: int = 0,
    minimum_remote_tensor_size: int = 128,
    merge_remote_buffers: MergeRemoteBuffersBehaviour | bool = MergeRemoteBuffersBehaviour.NO_MERGING,
    gather_simplifier: bool = True,
    triangular_solve_expander_block_size: int = 0,
    cholesky_block_size: int = 0,
    enable_fast_math: bool = False,
) -> Any:
    """Sets the passes over the graph; see `IPUConfig.optimizations` for each. Sizes are bytes.

    Args:
        opts: an `IpuOptions`; it is changed.
        merge_remote_buffers: a `MergeRemoteBuffersBehaviour`, or a bool as in SDK 1.4.

    Returns:
        `opts`.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).
    """
    if isinstance(merge_remote_buffers, bool):
        merge_remote_buffers = MergeRemoteBuffersBehaviour(int(merge_remote_buffers))
    opts.enable_multi_slice_combiner = combine_embedding_lookups
    opts.enable_matmul_combiner = combine_matmuls
    opts.remote_buffer_merging_mode = merge_remote_buffers.value
    opts.disable_gather_simplifier = not gather_simplifier
    opts.enable_fast_math = enable_fast_math
    for name, value in (
        ("max_cross_replica_sum_buffer_size", max_cross_replica_sum_buffer_size),
        ("max_reduce_scatter_buffer_size", max_reduce_scatter_buffer_size),
        ("max_inter_ipu_copies_buffer_size", max_inter_ipu_copies_buffer_size),
        ("max_send_recv_cluster_size", max_send_recv_cluster_size),
        ("minimum_remote_tensor_size", minimum_remote_tensor_size),
        ("triangular_solve_expander_block_size", triangular_solve_expander_block_size),
        ("cholesky_block_size", cholesky_block_size),
    ):
        translate.set_number(opts, name, value, f"`{name}`")
    return opts


@replaced_by_ipu_config
def set_norm_options(
    opts: Any,
    use_stable_statistics: bool = False,
    experimental_distributed_batch_norm_replica_group_size: int = 1,
) -> Any:
    """Says how normalisations compute their statistics.

    Args:
        opts: an `IpuOptions`; it is changed.
        use_stable_statistics: subtract the mean before the variance is computed.
        experimental_distributed_batch_norm_replica_group_size: replicas that share statistics in training.

    Returns:
        `opts`.

    Raises:
        ValueError: if the group is empty.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).
    """
    group = experimental_distributed_batch_norm_replica_group_size
    checks.check_statistics_group(group, "experimental_distributed_batch_norm_replica_group_size")
    opts.use_stable_norm_statistics = use_stable_statistics
    opts.experimental_distributed_batch_norm_replica_group_size = group
    return opts


@replaced_by_ipu_config
def set_floating_point_behaviour_options(
    opts: Any, inv: bool = True, div0: bool = True, oflo: bool = True, esr: bool = True, nanoo: bool = True
) -> Any:
    """Sets at which errors the device stops, and how it rounds; see `IPUConfig.floating_point_behaviour`.

    Args:
        opts: an `IpuOptions`; it is changed.
        inv: stop at an invalid operation.
        div0: stop at a division by zero.
        oflo: stop at an overflow.
        esr: round float16 results stochastically.
        nanoo: a float16 overflow becomes NaN.

    Returns:
        `opts`.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).
    """
    behaviour = opts.floating_point_behaviour
    behaviour.flags_set = True
    behaviour.inv, behaviour.div0, behaviour.oflo = inv, div0, oflo
    behaviour.esr, behaviour.nanoo = int(esr), nanoo
    return opts


@replaced_by_ipu_config
def set_recomputation_options(
    opts: Any, allow_recompute: bool = True, allow_stateful_recompute: bool | None = None
) -> Any:
    """Says whether forward activations are computed again in the backward pass.

    Args:
        opts: an `IpuOptions`; it is changed.
        allow_recompute: whether they are.
        allow_stateful_recompute: has no effect and warns, as in SDK 1.4.

    Returns:
        `opts`.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).
    """
    if allow_stateful_recompute is not None:
        warn("`allow_stateful_recompute` has no effect: it is deprecated. Leave it out.")
    opts.speed_size_config.allow_recompute = allow_recompute
    return opts


@replaced_by_ipu_config
def set_io_tile_options(
    opts: Any,
    num_io_tiles: int,
    place_ops_on_io_tiles: bool | None = None,
    io_tile_available_memory_proportion: float = 0.9,
) -> Any:
    """Sets tiles apart for transfers.

    Args:
        opts: an `IpuOptions`; it is changed.
        num_io_tiles: how many tiles.
        place_ops_on_io_tiles: whether transfer operations run on them; None leaves it unchanged.
        io_tile_available_memory_proportion: share of their memory that data may use.

    Returns:
        `opts`.

    Raises:
        ValueError: if operations are placed on I/O tiles without any, or the number of tiles is negative.

    Source: `tensorflow.python.ipu.utils` (SDK 1.4 to 2.3).
    """
    checks.check_io_tiles(num_io_tiles, place_ops_on_io_tiles, "`num_io_tiles`", "`place_ops_on_io_tiles`")
    translate.set_number(opts, "num_io_tiles", num_io_tiles, "`num_io_tiles`")
    if place_ops_on_io_tiles is not None:
        opts.place_ops_on_io_tiles = place_ops_on_io_tiles
    opts.io_tile_available_memory_proportion = io_tile_available_memory_proportion
    return opts


@replaced_by_ipu_config
def set_serialization_options(opts: Any, output_folder: str = "") -> Any:
    """Sets the directory for compiled executables; empty for none. Changes and returns `opts`.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).
    """
    opts.serialization_folder = output_folder
    return opts


@replaced_by_ipu_config
def set_experimental_multi_replica_distribution_options(opts: Any, process_count: int, process_index: int) -> Any:
    """Says which of several processes this is, that together run one replicated program.

    Args:
        opts: an `IpuOptions`; it is changed.
        process_count: number of processes.
        process_index: the index of this one, from 0.

    Returns:
        `opts`.

    Raises:
        ValueError: if the index is not below the number.

    Source: `tensorflow.python.ipu.utils` (SDK 1.3 to 2.3).
    """
    if not 0 <= process_index < process_count:
        raise ValueError(
            f"0 <= process_index < process_count does not hold: {process_index} of {process_count}. Set process_index "
            "below process_count."
        )
    opts.multi_replica_process_count, opts.multi_replica_process_index = process_count, process_index
    return opts


@replaced_by_ipu_config
def set_transfer_options(opts: Any, use_verified_transfers: bool = False) -> Any:
    """Says whether transfers between host and device are verified. Changes and returns `opts`.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.2).
    """
    opts.verified_transfers.enabled = use_verified_transfers
    return opts


@replaced_by_ipu_config
def set_verification_options(opts: Any, verification_options: VerificationOptions) -> Any:
    """Sets the keys of verified transfers.

    Args:
        opts: an `IpuOptions`; it is changed.
        verification_options: the keys.

    Returns:
        `opts`.

    Raises:
        Exception: if `verification_options` is not a `VerificationOptions`.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.2).
    """
    if not isinstance(verification_options, VerificationOptions):
        raise Exception(
            "`verification_options` must be of type VerificationOptions; received "
            f"{type(verification_options).__name__}."
        )
    translate.set_verification(opts.verified_transfers, verification_options)
    return opts
