"""The recurrent ops of `gen_popnn_ops`, made from the table of `popnn_layers`.

Intermediate results for backward ops are not kept here: `intermediates` is empty, and the wrappers of backward ops
recompute them.
"""

from __future__ import annotations

import collections
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops import op_specs, planner_options
from tf_ipu_shim.frontend.ops.recurrent.popnn_layers import LAYERS, LayerKind, check_channels, matmul_options
from tf_ipu_shim.frontend.ops.recurrent.popnn_recurrent_legacy import legacy_form

_OUTPUTS = ("output", "output_h_state", "output_c_state")  # by the position in a layer's results
_DEFAULTS = {
    "preserve_final_state": False,
    "partials_dtype": tf.float32,
    "reset_after": False,
    "options": "{}",
    "options_bwd": "{}",
    "name": None,
}

PopnnLstmLayer = collections.namedtuple("PopnnLstmLayer", "output output_c_state intermediates")
PopnnLstmLayerBackprop = collections.namedtuple(
    "PopnnLstmLayerBackprop",
    "inputs_backprop input_h_state_backprop input_c_state_backprop kernel_backprop biases_backprop",
)
PopnnGRULayer = collections.namedtuple("PopnnGRULayer", "output intermediates")
PopnnGRULayerBackprop = collections.namedtuple(
    "PopnnGRULayerBackprop", "inputs_backprop initial_state_backprop kernel_backprop biases_backprop"
)
PopnnAUGRULayerBackprop = collections.namedtuple(
    "PopnnAUGRULayerBackprop", "inputs_backprop initial_state_backprop kernel_backprop biases_backprop att_backprop"
)


def _op(title: str, kind: str, form: Any, backward: bool = False) -> Callable[..., Any]:
    """Returns the wrapper of an op: `title` is its name in graphs, `form` the type of its results."""
    layer = LAYERS[kind]
    signature = _signature(kind, layer, backward)
    name = f"popnn_{kind}_layer" + ("_backprop" if backward else "")

    call = op_specs.wrapper(
        name,
        signature,
        lambda arguments: _call(layer, title, form, arguments, backward),
        f"The gradients of `popnn_{kind}_layer`." if backward else layer.run.__doc__,
    )
    return legacy_form(kind, backward)(call)


def _signature(kind: str, layer: LayerKind, backward: bool) -> inspect.Signature:
    """Returns the arguments of an op since SDK 2.6: operands, attributes, and `name`."""
    inputs = list(layer.operands)
    if backward:
        outputs = [_OUTPUTS[position] for position in layer.returned]
        inputs += [*outputs, "intermediates", *(f"{output}_backprop" for output in outputs)]
    attributes = ["activation", "recurrent_activation", "num_channels", "is_training"]
    if kind == "dynamic_lstm" and not backward:
        attributes.append("preserve_final_state")
    attributes.append("partials_dtype")
    if "lstm" not in kind:
        attributes.append("reset_after")
    attributes += ["options", "name"] if backward else ["options", "options_bwd", "name"]
    defaults = {name: value for name, value in _DEFAULTS.items() if not (backward and name == "partials_dtype")}
    return op_specs.op_signature([*inputs, *attributes], defaults)


def _call(layer: LayerKind, title: str, form: Any, arguments: Mapping[str, Any], backward: bool) -> Any:
    options = {name: arguments[name] for name in ("options", "options_bwd") if name in arguments}
    check_channels(title, arguments["num_channels"], arguments["biases"])
    _record_no_effect(arguments["is_training"], options)
    with tf.name_scope(arguments["name"] or title):
        planned = matmul_options(
            arguments["partials_dtype"], arguments["options"], arguments.get("options_bwd", arguments["options"])
        )
        operands = {name: tf.convert_to_tensor(arguments[name]) for name in layer.operands}
        compute = _gradients if backward else _outputs
        results = form(*compute(layer, {**arguments, **operands}, planned))
        return planner_options.check_options(results, *options.values())


def _outputs(layer: LayerKind, arguments: Mapping[str, Any], planned: Any) -> list[Any]:
    """Returns the op's outputs, and nothing for `intermediates`."""
    results = layer.run(arguments, planned)
    outputs = [results[position] for position in layer.returned]
    if not arguments.get("preserve_final_state", True):
        outputs[1] = _zero_where_ended(outputs[1], outputs[0], arguments["seq_len"])
    return [*outputs, tf.zeros([0], outputs[0].dtype)]


def _zero_where_ended(state: tf.Tensor, output: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Returns the last state without `preserve_final_state`: zero for sequences that end before the last step."""
    steps = tf.shape(output)[0]
    is_full_length = tf.cast(lengths, steps.dtype) >= steps
    return tf.where(tf.reshape(is_full_length, [-1, 1]), state, tf.zeros_like(state))


def _gradients(layer: LayerKind, arguments: Mapping[str, Any], planned: Any) -> Any:
    upstream = {
        position: tf.convert_to_tensor(arguments[f"{_OUTPUTS[position]}_backprop"]) for position in layer.returned
    }
    return layer.gradients(arguments, planned, upstream)


def _record_no_effect(is_training: bool, options: Mapping[str, str]) -> None:
    """Records an argument without effect for the memory report and the log."""
    note_arguments("gen_popnn_ops", is_training=is_training)
    for name, value in options.items():
        planner_options.record_ignored_options("gen_popnn_ops", planner_options.parse_options(value), name)


popnn_lstm_layer = _op("PopnnLstmLayer", "lstm", PopnnLstmLayer)
popnn_lstm_layer_backprop = _op("PopnnLstmLayerBackprop", "lstm", PopnnLstmLayerBackprop, True)
popnn_dynamic_lstm_layer = _op("PopnnDynamicLstmLayer", "dynamic_lstm", PopnnLstmLayer)
popnn_dynamic_lstm_layer_backprop = _op("PopnnDynamicLstmLayerBackprop", "dynamic_lstm", PopnnLstmLayerBackprop, True)
popnn_gru_layer = _op("PopnnGRULayer", "gru", PopnnGRULayer)
popnn_gru_layer_backprop = _op("PopnnGRULayerBackprop", "gru", PopnnGRULayerBackprop, True)
popnn_dynamic_gru_layer = _op("PopnnDynamicGRULayer", "dynamic_gru", PopnnGRULayer)
popnn_dynamic_gru_layer_backprop = _op("PopnnDynamicGRULayerBackprop", "dynamic_gru", PopnnGRULayerBackprop, True)
popnn_augru_layer = _op("PopnnAUGRULayer", "augru", PopnnGRULayer)
popnn_augru_layer_backprop = _op("PopnnAUGRULayerBackprop", "augru", PopnnAUGRULayerBackprop, True)
