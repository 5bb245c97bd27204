"""Time-major LSTM and GRU loops that XLA compiles and TensorFlow differentiates.

Gates are in the order Keras has them: input, forget, candidate, output for an LSTM; update, reset, candidate for a GRU.
The kernel is `[input_size + num_units, gates * num_units]`: the input's rows are first.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops import planner_options
from tf_ipu_shim.frontend.ops.activations import ACTIVATIONS
from tf_ipu_shim.frontend.ops.library_scopes import apply_output_gate
from tf_ipu_shim.frontend.ops.planner_options import RecurrentOptions


def lstm(
    inputs: Any,
    state: tuple[Any, Any],
    kernel: Any,
    biases: Any,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
    seq_len: Any = None,
    *,
    stops: bool = True,
    planned: RecurrentOptions | None = None,
) -> tuple[Any, Any, Any]:
    """Runs an LSTM over time.

    Source: `popnn_lstm_layer` and `popnn_dynamic_lstm_layer` of `gen_popnn_ops`.

    Example:
        >>> inputs, hidden, cell = tf.ones([5, 2, 16]), tf.zeros([2, 8]), tf.zeros([2, 8])
        >>> kernel, biases = tf.zeros([16 + 8, 4 * 8]), tf.zeros([4, 8])
        >>> outputs, hidden, cell = lstm(inputs, (hidden, cell), kernel, biases)
        >>> outputs.shape, cell.shape
        (TensorShape([5, 2, 8]), TensorShape([2, 8]))
    """
    act, gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]
    projected, recurrent_kernel = _project_inputs(inputs, kernel, tf.reshape(biases, [-1]), planned)
    layer = f"LSTM {inputs.shape} {kernel.shape} {activation} {recurrent_activation} {seq_len is None} {planned}"

    def step(carried: Any, items: Any) -> Any:
        hidden, cell = carried
        i, f, candidate, o = tf.split(items[0] + _matmul(hidden, recurrent_kernel, planned), 4, axis=1)
        new_cell = gate(f) * cell + gate(i) * act(candidate)
        new_hidden = apply_output_gate(gate(o), act(new_cell), layer)
        return _select_within_length(items[1:], (new_hidden, new_cell), carried)

    alive = _within_length(inputs, seq_len)
    hiddens, cells = tf.scan(step, (projected, *(alive if stops else ())), initializer=tuple(state))
    return _mask_outputs(hiddens, alive), hiddens[-1], cells[-1]


def gru(
    inputs: Any,
    state: Any,
    kernel: Any,
    biases: Any,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
    reset_after: bool = False,
    seq_len: Any = None,
    attention_score: Any = None,
    *,
    planned: RecurrentOptions | None = None,
) -> tuple[Any, Any]:
    """Runs a GRU over time.

    Source: `popnn_gru_layer`, `popnn_dynamic_gru_layer` and `popnn_augru_layer` of `gen_popnn_ops`.

    Example:
        >>> inputs, state = tf.ones([5, 2, 16]), tf.zeros([2, 8])
        >>> outputs, state = gru(inputs, state, kernel=tf.zeros([16 + 8, 3 * 8]), biases=tf.zeros([3, 8]))
        >>> outputs.shape, state.shape
        (TensorShape([5, 2, 8]), TensorShape([2, 8]))
    """
    act, gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]
    units = state.shape.as_list()[-1]
    input_biases = biases[:, 0] if reset_after else biases
    projected, recurrent_kernel = _project_inputs(inputs, kernel, tf.reshape(input_biases, [-1]), planned)
    recurrent_biases = tf.reshape(biases[:, 1], [-1]) if reset_after else None
    gates_kernel, candidate_kernel = recurrent_kernel[:, : 2 * units], recurrent_kernel[:, 2 * units :]
    scores = () if attention_score is None else (attention_score[..., tf.newaxis],)

    def gates(sums: Any) -> list[Any]:
        # Each by itself: softmax is over one gate's units.
        return [gate(part) for part in tf.split(sums, 2, axis=1)]

    def step(previous: Any, items: Any) -> Any:
        x = items[0]
        if recurrent_biases is not None:
            product = _matmul(previous, recurrent_kernel, planned) + recurrent_biases
            z, r = gates(x[:, : 2 * units] + product[:, : 2 * units])
            candidate = act(x[:, 2 * units :] + r * product[:, 2 * units :])
        else:
            z, r = gates(x[:, : 2 * units] + _matmul(previous, gates_kernel, planned))
            candidate = act(x[:, 2 * units :] + _matmul(r * previous, candidate_kernel, planned))
        if scores:
            z = (1 - items[1]) * z
        new = z * previous + (1 - z) * candidate
        return _select_within_length(items[1 + len(scores) :], (new,), (previous,))[0]

    alive = _within_length(inputs, seq_len)
    states = tf.scan(step, (projected, *scores, *alive), initializer=state)
    return _mask_outputs(states, alive), states[-1]


def _project_inputs(inputs: Any, kernel: Any, biases: Any, planned: RecurrentOptions | None) -> tuple[Any, Any]:
    """Computes the inputs' matmul for all steps at once; only the state's part of the kernel remains in the loop."""
    size = inputs.shape.as_list()[-1]
    with planner_options.recurrent_planner_scope(planned):
        return tf.tensordot(inputs, kernel[:size], 1) + biases, kernel[size:]


def _matmul(x: Any, kernel: Any, planned: RecurrentOptions | None) -> Any:
    with planner_options.recurrent_planner_scope(planned):  # here and not around the loop: its body is a separate graph
        return tf.matmul(x, kernel)


def _within_length(inputs: Any, seq_len: Any) -> tuple[Any, ...]:
    if seq_len is None:
        return ()
    lengths = tf.reshape(tf.cast(seq_len, tf.int32), [1, -1, 1])
    return (tf.range(tf.shape(inputs)[0])[:, tf.newaxis, tf.newaxis] < lengths,)


def _select_within_length(alive: tuple[Any, ...], new: tuple[Any, ...], old: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tf.where(alive[0], new_state, old_state) for new_state, old_state in zip(new, old)) if alive else new


def _mask_outputs(values: Any, alive: tuple[Any, ...]) -> Any:
    return tf.where(alive[0], values, tf.zeros_like(values)) if alive else values
