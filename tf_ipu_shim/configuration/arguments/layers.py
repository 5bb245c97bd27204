"""Table of the effect of each argument of normalisation, recurrent and other layers."""

from __future__ import annotations

from tf_ipu_shim.configuration.arguments.call import Argument, Call, recorded
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import CYCLES, RESULTS

_PLANNER = {
    "partials_dtype": Argument(CYCLES, "of partial sums; values are of the layer's dtype"),
    "available_memory_proportion_fwd": Argument(CYCLES, "temporary memory of the forward pass's matmuls"),
    "available_memory_proportion_bwd": Argument(CYCLES, "temporary memory of their gradients"),
    "options": Argument(CYCLES, reasons.PRODUCTS),
    "options_bwd": Argument(CYCLES, f"for gradients: {reasons.PRODUCTS}"),
}

CALLS = {
    "group_norm": Call(
        "`group_norm`, `layer_norm` and `instance_norm`",
        {
            "groups": Argument(RESULTS, "channels that are normalised together"),
            "channels_axis": Argument(RESULTS, "which axis the channels are"),
            "center": Argument(RESULTS, "whether an offset is added"),
            "scale": Argument(RESULTS, "whether there is a factor"),
            "epsilon": Argument(RESULTS, "what is added to the variance"),
            "strided_channel_grouping": Argument(RESULTS, "which channels make a group"),
            "training": recorded("statistics are those of the sample, in training and in inference", True),
            "reduction_axes": recorded("ignored by all releases that have it"),
        },
    ),
    "PopnnLSTM": Call(
        "recurrent layers: `PopnnLSTM`, `PopnnGRU` and their dynamic and AUGRU forms",
        {
            "activation": Argument(RESULTS, "of the candidate and the output"),
            "recurrent_activation": Argument(RESULTS, "of the gates"),
            "return_state": Argument(RESULTS, "whether the last state is given too"),
            **_PLANNER,
            "training": recorded("when called: what a backward pass needs is recomputed in it", True),
        },
    ),
    "keras PopnnLSTM": Call(
        "the same as Keras layers",
        {
            "activation": Argument(RESULTS, "of the candidate and the output"),
            "recurrent_activation": Argument(RESULTS, "of the gates"),
            "return_sequences": Argument(RESULTS, "whether all outputs are given"),
            "return_state": Argument(RESULTS, "whether the last state is given too"),
            "time_major": Argument(RESULTS, "which axis is time"),
            **_PLANNER,
        },
    ),
    "keras Embedding": Call(
        "`Embedding` of `ipu_tensorflow_addons`",
        {"input_length": recorded("the inputs have their length themselves")},
    ),
    "AssumeEqualAcrossReplicas": Call(
        "`AssumeEqualAcrossReplicas` as a Keras layer",
        {"inplace": recorded("the place of a tensor does not change its values", False)},
    ),
}
