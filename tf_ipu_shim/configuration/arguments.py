"""What arguments of calls change here: pipelines, normalisations, recurrent layers, Keras' `fit`, queues, loops.

Left out are arguments that are the computation itself, such as a pipeline's stages or a layer's size. What is recorded
only is noted by the call (`runtime.accepted.note_arguments`) under the name that it has here.
"""

from __future__ import annotations

from tf_ipu_shim.machine import reasons
from tf_ipu_shim.machine.effects import DEVICES, MEMORY, RECORDED, RESULTS, OptionEffect

_PARTIALS = "partial results have the precision of the layer's dtype"
_LATENCY = "nothing is faster for it here"
_WHERE = "the part of {} that is kept on the chip"

PIPELINE, NORM, RNN, KERAS_RNN, FIT = "pipeline", "group_norm", "PopnnLSTM", "keras PopnnLSTM", "Model.fit"
ACCUMULATION = "Model.set_gradient_accumulation_options"
INFEED, OUTFEED, REPEAT, SOFTMAX = "IPUInfeedQueue", "IPUOutfeedQueue", "loops.repeat", "nn_ops.softmax"
OPTIMIZER = "IpuOptimizerBase"

HEADINGS = {
    PIPELINE: "`pipelining_ops.pipeline`, and `set_pipelining_options` of Keras models",
    NORM: "`group_norm`, `layer_norm` and `instance_norm`",
    RNN: "recurrent layers: `PopnnLSTM`, `PopnnGRU` and their dynamic and AUGRU forms",
    KERAS_RNN: "the same as Keras layers",
    FIT: "`fit`, `evaluate` and `predict` of Keras models",
    ACCUMULATION: "`set_gradient_accumulation_options` of Keras models",
    INFEED: "`IPUInfeedQueue`",
    OUTFEED: "`IPUOutfeedQueue`",
    REPEAT: "`loops.repeat` and `loops.while_loop`",
    SOFTMAX: "`nn_ops.softmax`",
    OPTIMIZER: "optimizers of `ipu_tensorflow_addons`",
}

_ROWS: dict[str, dict[str, tuple[str, str]]] = {
    PIPELINE: {
        "gradient_accumulation_count": (RESULTS, "mini-batches to an update"),
        "gradient_accumulation_dtype": (RESULTS, "the precision of accumulated gradients"),
        "repeat_count": (RESULTS, "executions"),
        "batch_serialization_iterations": (RESULTS, "mini-batches of an execution"),
        "device_mapping": (DEVICES, "the IPU of each stage"),
        "pipeline_schedule": (MEMORY, "how many mini-batches' values are kept; the counts that are allowed"),
        "recomputation_mode": (RECORDED, "with `allow_recompute` the memory model has one way to compute anew"),
        "forward_propagation_stages_poplar_options": (RECORDED, reasons.PLANNING),
        "backward_propagation_stages_poplar_options": (RECORDED, reasons.PLANNING),
        "weight_update_poplar_options": (RECORDED, reasons.PLANNING),
        "offload_weight_update_variables": (MEMORY, _WHERE.format("optimizer state")),
        "replicated_optimizer_state_sharding": (MEMORY, _WHERE.format("optimizer state")),
        "offload_activations": (MEMORY, _WHERE.format("activations")),
        "offload_gradient_accumulation_buffers": (MEMORY, _WHERE.format("accumulated gradients")),
        "replicated_weight_sharding": (MEMORY, _WHERE.format("weights")),
        "offload_weights": (MEMORY, _WHERE.format("weights")),
        "outfeed_loss": (RESULTS, "what is sent to the outfeed"),
        "accumulate_outfeed": (RESULTS, "what is sent to the outfeed"),
        "accumulate_outfeed_dtype": (RESULTS, "the dtype of what is sent"),
        "outfeed_mask": (RESULTS, "what is sent to the outfeed"),
        "reduction_method": (RESULTS, "sum or mean of gradients"),
    },
    NORM: {
        "groups": (RESULTS, "channels that are normalised together"),
        "channels_axis": (RESULTS, "which axis the channels are"),
        "center": (RESULTS, "whether an offset is added"),
        "scale": (RESULTS, "whether there is a factor"),
        "epsilon": (RESULTS, "what is added to the variance"),
        "strided_channel_grouping": (RESULTS, "which channels make a group"),
        "training": (RECORDED, "statistics are those of the sample, in training and in inference"),
        "reduction_axes": (RECORDED, "ignored by all releases that have it"),
    },
    RNN: {
        "activation": (RESULTS, "of the candidate and the output"),
        "recurrent_activation": (RESULTS, "of the gates"),
        "return_state": (RESULTS, "whether the last state is given too"),
        "partials_dtype": (RECORDED, _PARTIALS),
        "available_memory_proportion_fwd": (RECORDED, reasons.PLANNING),
        "available_memory_proportion_bwd": (RECORDED, reasons.PLANNING),
        "options": (RECORDED, reasons.PLANNING),
        "options_bwd": (RECORDED, reasons.PLANNING),
    },
    KERAS_RNN: {
        "activation": (RESULTS, "of the candidate and the output"),
        "recurrent_activation": (RESULTS, "of the gates"),
        "return_sequences": (RESULTS, "whether all outputs are given"),
        "return_state": (RESULTS, "whether the last state is given too"),
        "time_major": (RESULTS, "which axis is time"),
        "partials_dtype": (RECORDED, _PARTIALS),
        "available_memory_proportion_fwd": (RECORDED, reasons.PLANNING),
        "available_memory_proportion_bwd": (RECORDED, reasons.PLANNING),
        "options": (RECORDED, reasons.PLANNING),
        "options_bwd": (RECORDED, reasons.PLANNING),
    },
    FIT: {
        "max_queue_size": (RECORDED, "the infeed has a queue of its own"),
        "workers": (RECORDED, "`tf.data` has threads of its own"),
        "use_multiprocessing": (RECORDED, "`tf.data` has threads of its own"),
    },
    ACCUMULATION: {
        "use_v2_gradient_accumulation_optimizer": (RECORDED, "both of Graphcore's optimizers give the same weights"),
    },
    INFEED: {"optimise_latency": (RECORDED, _LATENCY)},
    OUTFEED: {"optimise_latency": (RECORDED, _LATENCY)},
    REPEAT: {"use_while_v1": (RECORDED, "loops are functional ones whichever is asked for")},
    SOFTMAX: {"stable": (RECORDED, "the largest element is always subtracted first")},
    OPTIMIZER: {
        "outline_apply_gradients": (RECORDED, "sharing code between updates changes no value"),
        "outline_apply_gradients_kwargs": (RECORDED, "sharing code between updates changes no value"),
    },
}


def effects(call: str) -> tuple[OptionEffect, ...]:
    """What the arguments of a call change.

    Args:
        call: a key of `HEADINGS`.

    Example:
        >>> effects("loops.repeat")[0].effect
        'recorded only'
    """
    return tuple(OptionEffect(name=name, effect=effect, what=what) for name, (effect, what) in _ROWS[call].items())
