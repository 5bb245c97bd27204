"""Effects of the arguments of pipelines."""

from __future__ import annotations

from tf_ipu_shim.configuration.arguments.call import Argument, Call, recorded
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import CYCLES, DEVICES, MEMORY, RESULTS

_STAGE = "of products of each stage"
_WHERE = "the part of {} that is kept on the chip"

CALLS = {
    "pipeline": Call(
        "`pipelining_ops.pipeline`, and `set_pipelining_options` of Keras models",
        {
            "gradient_accumulation_count": Argument(RESULTS, "mini-batches to an update"),
            "gradient_accumulation_dtype": Argument(RESULTS, "the precision of accumulated gradients"),
            "repeat_count": Argument(RESULTS, "executions"),
            "batch_serialization_iterations": Argument(RESULTS, "mini-batches of an execution"),
            "device_mapping": Argument(DEVICES, "the IPU of each stage"),
            "pipeline_schedule": Argument(
                MEMORY, "how many mini-batches' values are kept; the counts that are allowed"
            ),
            "recomputation_mode": Argument(MEMORY, "with `allow_recompute`: in which order values are recomputed"),
            "forward_propagation_stages_poplar_options": Argument(CYCLES, f"{_STAGE}: {reasons.PRODUCTS}"),
            "backward_propagation_stages_poplar_options": Argument(
                CYCLES, f"{_STAGE}, for their gradients outside loops: {reasons.PRODUCTS}"
            ),
            "weight_update_poplar_options": recorded(reasons.PLANNING),
            "offload_weight_update_variables": Argument(MEMORY, _WHERE.format("optimizer state")),
            "replicated_optimizer_state_sharding": Argument(MEMORY, _WHERE.format("optimizer state")),
            "offload_activations": Argument(MEMORY, _WHERE.format("activations")),
            "offload_gradient_accumulation_buffers": Argument(MEMORY, _WHERE.format("accumulated gradients")),
            "replicated_weight_sharding": Argument(MEMORY, _WHERE.format("weights")),
            "offload_weights": Argument(MEMORY, _WHERE.format("weights")),
            "outfeed_loss": Argument(RESULTS, "what is sent to the outfeed"),
            "accumulate_outfeed": Argument(RESULTS, "what is sent to the outfeed"),
            "accumulate_outfeed_dtype": Argument(RESULTS, "the dtype of what is sent"),
            "outfeed_mask": Argument(RESULTS, "what is sent to the outfeed"),
            "reduction_method": Argument(RESULTS, "sum or mean of gradients"),
        },
    ),
}
