"""Transfer options: between host and IPU, and between IPUs."""

from __future__ import annotations

from tf_ipu_shim.configuration.enums import MergeRemoteBuffersBehaviour
from tf_ipu_shim.configuration.table.option import Option
from tf_ipu_shim.configuration.verification import VerificationOptions
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import CYCLES, MEMORY, RECORDED

_GROUPING = "when small transfers or collectives are sent together; each is made by itself here"
_TOGETHER = "collectives of replicas that do not need each other wait for the same syncs"
_REMOTE = "how remote buffers are laid out, which the memory model does not distinguish"
_TILES = "with `place_ops_on_io_tiles`: elements of feeds go to other tiles by an exchange; the tensor map of events"
_SENT_TOGETHER = {
    "cross_replica_sum_buffer_size": _TOGETHER,
    "all_gather_buffer_size": _TOGETHER,
    "send_recv_cluster_size": "copies with the host that scopes on it need, one after the other, wait for one sync",
}

OPTIONS: tuple[Option, ...] = (
    Option(
        "experimental.always_rearrange_copies_on_the_host",
        False,
        "Change the layout of streams on the host instead of on the device.",
        "speed_size_config.always_rearrange_copies_on_the_host",
        meaning=reasons.TRANSFERS,
    ),
    Option(
        "experimental.enable_remote_buffer_embedding",
        False,
        "Keep host embeddings in remote buffers.",
        "enable_experimental_remote_buffer_embedding",
        meaning="host embeddings are in the host's memory either way",
    ),
    Option(
        "io_tiles.num_io_tiles",
        0,
        "Number of tiles set apart for transfers.",
        "num_io_tiles",
        effect=CYCLES,
        meaning=_TILES,
    ),
    Option(
        "io_tiles.place_ops_on_io_tiles",
        False,
        "Put transfer operations on the I/O tiles.",
        "place_ops_on_io_tiles",
        effect=CYCLES,
        meaning=_TILES,
    ),
    Option(
        "io_tiles.available_memory_proportion",
        0.9,
        "Share of an I/O tile's memory that data may take.",
        "io_tile_available_memory_proportion",
        effect=CYCLES,
        meaning=_TILES,
    ),
    Option(
        "optimizations.prefetch_data_streams",
        True,
        "Fetch data from the host while the device computes.",
        "prefetch_data_streams",
        meaning=reasons.TRANSFERS,
    ),
    Option(
        "optimizations.merge_infeed_io_copies",
        True,
        "Make one copy of an infeed's several.",
        "speed_size_config.merge_infeed_io_copies",
        older=(((2, 4), bool, False),),
        meaning=reasons.TRANSFERS,
    ),
    *(
        Option(
            f"optimizations.maximum_{name}",
            0,
            f"Bytes up to which {meaning} wait to be sent together; 0 for no waiting.",
            f"max_{name}",
            since=since,
            effect=CYCLES if name in _SENT_TOGETHER else RECORDED,
            meaning=_SENT_TOGETHER.get(name, _GROUPING),
        )
        for name, meaning, since in (
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
        meaning="smaller tensors stay on the chip",
    ),
    Option(
        "optimizations.merge_remote_buffers",
        MergeRemoteBuffersBehaviour.IF_BENEFICIAL,
        "Whether compatible remote buffers share one.",
        "remote_buffer_merging_mode",
        meaning=_REMOTE,
    ),
    Option(
        "_verified_transfers.enabled",
        False,
        "Verify transfers.",
        "verified_transfers.enabled",
        until=(2, 2),
        meaning=reasons.TRANSFERS,
    ),
    Option(
        "_verified_transfers.key_id_pairs",
        VerificationOptions,
        "The keys of the streams.",
        until=(2, 2),
        meaning=reasons.TRANSFERS,
    ),
)
