"""Effects of the arguments of Keras models and estimators."""

from __future__ import annotations

from tf_ipu_shim.configuration.arguments.call import Argument, Call, recorded
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import MEMORY

_STATE = "the part of optimizer state that is kept on the chip"
_THREADS = "`tf.data` has separate threads"
_MEAN = "what is reported is the mean over mini-batches with and without it"

CALLS = {
    "Model.fit": Call(
        "`fit`, `evaluate` and `predict` of Keras models",
        {
            "max_queue_size": recorded("the infeed has a separate queue", 10),
            "workers": recorded(_THREADS, 1),
            "use_multiprocessing": recorded(_THREADS, False),
        },
    ),
    "Model.set_gradient_accumulation_options": Call(
        "`set_gradient_accumulation_options` of Keras models",
        {
            "use_v2_gradient_accumulation_optimizer": recorded(
                "both of Graphcore's optimizers give the same weights", False
            ),
            "offload_weight_update_variables": Argument(MEMORY, _STATE),
            "replicated_optimizer_state_sharding": Argument(MEMORY, _STATE),
            "verify_usage": recorded("all optimizers train as they should", True),
            "name": recorded("nothing is named after it"),
        },
    ),
    "serving": Call(
        "`serving.export_single_step`, `serving.export_pipeline` and `export_for_ipu_serving`",
        {
            "iterations": recorded("a request is computed at once; Graphcore's engine waits for a loop of them", 1),
            "pipeline_schedule": recorded("each request is computed separately; it decides which iterations may be"),
            "poplar_options": recorded(reasons.PLANNING),
        },
    ),
    "PipelineModel.fit": Call(
        "`fit` and `evaluate` of pipelined models up to SDK 2.1",
        {"accumulate_outfeed": recorded(_MEAN, False), "accumulate_outfeed_dtype": recorded(_MEAN)},
    ),
    "IPUPipelineEstimatorSpec": Call(
        "`IPUPipelineEstimatorSpec`",
        {"loss_accumulator_dtype": recorded("losses are sent one by one and averaged on the host in float32")},
    ),
}
