"""Table of the effect of each argument of loops and ops."""

from __future__ import annotations

from tf_ipu_shim.configuration.arguments.call import Argument, Call, recorded
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import CYCLES

_DENSITY = "only densities that are refused have it"
_FORMAT = "the parameters say what the format is"
_IGNORED = "of no effect since SDK 1.2"
_SORTED = "lookups are not planned over tiles"

CALLS = {
    "get_current_iteration_counter": Call(
        "`internal_ops.get_current_iteration_counter`",
        {name: recorded("the counter is computed, and not bounded") for name in ("lower_bound", "upper_bound")},
    ),
    "fifo": Call("`internal_ops.fifo`", {"offload": recorded("the queue is a variable of the program", False)}),
    "nn_ops.softmax": Call(
        "`nn_ops.softmax`", {"stable": recorded("the largest element is always subtracted first", False)}
    ),
    "nn_ops.multi_conv": Call("`nn_ops.multi_conv`", {"options": Argument(CYCLES, reasons.PRODUCTS)}),
    "precompiled_user_op": Call(
        "`custom_ops.precompiled_user_op`",
        {
            "gp_path": recorded("where a registered TensorFlow function runs instead of the library", ""),
            "separate_gradients": recorded("where a registered TensorFlow function runs instead of the library", False),
        },
    ),
    "user_op_metadata": Call(
        "metadata functions of `precompiled_user_op`",
        {
            "is_elementwise": recorded("inputs without an allocator lie alike on the tiles anyway", False),
            "replica_identical_outputs": recorded("nothing is derived from values being equal on replicas"),
        },
    ),
    "embedding_lookup": Call(
        "`embedding_ops.embedding_lookup`",
        {
            "indices_are_sorted": recorded(_SORTED, False),
            "one_hot_threshold": recorded(_IGNORED, 0),
            "min_encoding_size": recorded(_IGNORED, 1216),
        },
    ),
    "HostEmbedding": Call(
        "host embeddings",
        {
            "partition_strategy": recorded("rows are read where they are; replicas share no transfer", "TOKEN"),
            "optimizer_name": recorded("what the optimizer does is in its class"),
            "count": recorded("of no effect since SDK 1.4", 1),
        },
    ),
    "device_embeddings": Call(
        "embeddings of `gen_pop_datastream_ops`",
        {
            "partition_strategy": recorded("rows are read where they are; replicas share no transfer", "ENCODING"),
            "device_ordinal": recorded("an id names one table for all devices", 0),
        },
    ),
    "cast_native_to_gfloat": Call(
        "casts to and from popfloat's formats",
        {
            "sr_norm_offset": recorded(_DENSITY, 0.0),
            "sr_norm_scale": recorded(_DENSITY, 1.0),
            "sr_norm_min": recorded(_DENSITY, -0.5),
            "sr_norm_max": recorded(_DENSITY, 0.5),
            "sr_prob": recorded(_DENSITY, 1.0),
            "gfloat_format": recorded(_FORMAT, "Invalid"),
            "calc_type": recorded("casts are computed in float64, which rounds once", "float32"),
        },
    ),
    "gen_popnn_ops": Call(
        "recurrent layers of `gen_popnn_ops`",
        {
            "is_training": recorded("what a backward pass needs is recomputed in it", True),
            "partials_dtype": Argument(CYCLES, "of partial sums; values are of the operands' dtype"),
            "options": Argument(CYCLES, reasons.PRODUCTS),
            "options_bwd": Argument(CYCLES, f"for gradients: {reasons.PRODUCTS}"),
        },
    ),
    "gen_popops_ops": Call("slices and updates of `gen_popops_ops`", {"indices_are_sorted": recorded(_SORTED, False)}),
}
