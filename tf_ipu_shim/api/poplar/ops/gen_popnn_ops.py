"""`gen_popnn_ops`: activations, softmax and gradients with Graphcore's arguments, computed by `ipu.ops`.

The arguments are the op's inputs, then its attributes, then `name`. Names that are not here are refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops import nn_ops, op_specs
from tf_ipu_shim.frontend.ops.norms.popnn_norms import (
    popnn_group_norm_grad,
    popnn_group_norm_inference,
    popnn_group_norm_statistics,
    popnn_group_norm_training,
)
from tf_ipu_shim.frontend.ops.popnn_ctc import (
    popnn_ctc_beam_search_with_log_probs,
    popnn_ctc_beam_search_with_logits,
    popnn_ctc_loss_with_log_probs,
    popnn_ctc_loss_with_logits,
)
from tf_ipu_shim.frontend.ops.recurrent.popnn_recurrent import (
    popnn_augru_layer,
    popnn_augru_layer_backprop,
    popnn_dynamic_gru_layer,
    popnn_dynamic_gru_layer_backprop,
    popnn_dynamic_lstm_layer,
    popnn_dynamic_lstm_layer_backprop,
    popnn_gru_layer,
    popnn_gru_layer_backprop,
    popnn_lstm_layer,
    popnn_lstm_layer_backprop,
)

__all__ = [
    "ipu_gelu",
    "ipu_gelu_grad",
    "ipu_hard_sigmoid",
    "ipu_hard_sigmoid_grad",
    "ipu_softmax",
    "ipu_stable_softmax",
    "ipu_swish",
    "ipu_swish_grad",
    "popnn_augru_layer",
    "popnn_augru_layer_backprop",
    "popnn_ctc_beam_search_with_log_probs",
    "popnn_ctc_beam_search_with_logits",
    "popnn_ctc_loss_with_log_probs",
    "popnn_ctc_loss_with_logits",
    "popnn_dynamic_gru_layer",
    "popnn_dynamic_gru_layer_backprop",
    "popnn_dynamic_lstm_layer",
    "popnn_dynamic_lstm_layer_backprop",
    "popnn_group_norm_grad",
    "popnn_group_norm_inference",
    "popnn_group_norm_statistics",
    "popnn_group_norm_training",
    "popnn_gru_layer",
    "popnn_gru_layer_backprop",
    "popnn_lstm_layer",
    "popnn_lstm_layer_backprop",
]


ipu_gelu = op_specs.op("ipu_gelu(features)", nn_ops.gelu)


def ipu_gelu_grad(gradients: Any, features: Any, name: Any = None) -> Any:
    """Returns the gradient of `ipu_gelu`."""
    return _gradient(nn_ops.gelu, gradients, features, name or "IpuGeluGrad")


ipu_hard_sigmoid = op_specs.op("ipu_hard_sigmoid(features)", nn_ops.hard_sigmoid)


def ipu_hard_sigmoid_grad(gradients: Any, features: Any, name: Any = None) -> Any:
    """Returns the gradient of `ipu_hard_sigmoid`."""
    return _gradient(nn_ops.hard_sigmoid, gradients, features, name or "IpuHardSigmoidGrad")


ipu_swish = op_specs.op("ipu_swish(features)", nn_ops.swish)


def ipu_swish_grad(gradients: Any, features: Any, name: Any = None) -> Any:
    """Returns the gradient of `ipu_swish`."""
    return _gradient(nn_ops.swish, gradients, features, name or "IpuSwishGrad")


ipu_softmax = op_specs.op("ipu_softmax(features)", nn_ops.softmax)


def ipu_stable_softmax(features: Any, name: Any = None) -> Any:
    """See `nn_ops.softmax`, `stable=True`."""
    return nn_ops.softmax(features, stable=True, name=name or "IpuStableSoftmax")


def _gradient(function: Callable[..., Any], gradients: Any, features: Any, name: str) -> Any:
    with tf.name_scope(name), tf.GradientTape() as tape:
        features = tf.convert_to_tensor(features)
        tape.watch(features)
        result = function(features)
        return tape.gradient(result, features, output_gradients=tf.convert_to_tensor(gradients))
