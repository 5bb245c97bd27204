"""`tensorflow.python.ipu.ops.nn_ops`: activations, CTC, sampled losses and multi-convolutions."""

from tf_ipu_shim.frontend.ops.nn_ops import (
    _compute_sampled_logits,
    ctc_beam_search_decoder,
    ctc_beam_search_decoder_with_log_probs,
    ctc_loss,
    ctc_loss_v2,
    ctc_loss_with_log_probs,
    ctc_loss_with_logits,
    gelu,
    hard_sigmoid,
    multi_conv,
    nce_loss,
    sampled_softmax_loss,
    softmax,
    swish,
)

__all__ = [
    "_compute_sampled_logits",
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_with_log_probs",
    "ctc_loss",
    "ctc_loss_v2",
    "ctc_loss_with_log_probs",
    "ctc_loss_with_logits",
    "gelu",
    "hard_sigmoid",
    "multi_conv",
    "nce_loss",
    "sampled_softmax_loss",
    "softmax",
    "swish",
]
