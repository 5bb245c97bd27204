"""Table of the recurrent layers of `gen_popnn_ops`: operands, states and the function that computes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.ops import planner_options
from tf_ipu_shim.frontend.ops.planner_options import RecurrentOptions
from tf_ipu_shim.frontend.ops.recurrent import recurrences


class LayerKind(NamedTuple):
    """A recurrent layer.

    Args:
        states: results of `run` after the outputs of all steps.
        returned: positions of the results of `run` that are results of the op since SDK 2.6.
    """

    operands: tuple[str, ...]
    states: tuple[str, ...]
    returned: tuple[int, ...]
    run: Callable[[Mapping[str, Any], RecurrentOptions], Sequence[Any]]

    @property
    def trained(self) -> list[str]:
        """The operands that have gradients."""
        return [operand for operand in self.operands if operand != "seq_len"]

    def gradients(
        self, arguments: Mapping[str, Any], planned: RecurrentOptions, upstream: Mapping[int, Any]
    ) -> Sequence[Any]:
        """Returns the gradients of the trained operands, from the results' gradients by position."""
        trained = [arguments[operand] for operand in self.trained]
        with tf.GradientTape() as tape:
            tape.watch(trained)
            results = self.run(arguments, planned)
        return tape.gradient(
            [results[position] for position in upstream], trained, output_gradients=list(upstream.values())
        )


def _lstm(arguments: Mapping[str, Any], planned: RecurrentOptions) -> Sequence[Any]:
    """The outputs `[time, batch, num_channels]` and last states; gates are input, forget, candidate and output."""
    return recurrences.lstm(
        arguments["inputs"],
        (arguments["input_h_state"], arguments["input_c_state"]),
        arguments["kernel"],
        arguments["biases"],
        arguments["activation"],
        arguments["recurrent_activation"],
        arguments.get("seq_len"),
        stops=arguments.get("preserve_final_state", True),
        planned=planned,
    )


def _gru(arguments: Mapping[str, Any], planned: RecurrentOptions) -> Sequence[Any]:
    """Returns the outputs `[time, batch, num_channels]` and the last state; gates are update, reset and candidate."""
    return recurrences.gru(
        arguments["inputs"],
        arguments["initial_state"],
        arguments["kernel"],
        arguments["biases"],
        arguments["activation"],
        arguments["recurrent_activation"],
        arguments["reset_after"],
        arguments.get("seq_len"),
        arguments.get("att_score"),
        planned=planned,
    )


_LSTM = ("inputs", "input_h_state", "input_c_state", "kernel", "biases")
_GRU = ("inputs", "initial_state", "kernel", "biases")
LAYERS = {
    "lstm": LayerKind(_LSTM, ("h_state", "c_state"), (0, 2), _lstm),
    "dynamic_lstm": LayerKind((*_LSTM, "seq_len"), ("h_state", "c_state"), (0, 2), _lstm),
    "gru": LayerKind(_GRU, ("state",), (0,), _gru),
    "dynamic_gru": LayerKind((*_GRU, "seq_len"), ("state",), (0,), _gru),
    "augru": LayerKind((*_GRU, "seq_len", "att_score"), ("state",), (0,), _gru),
}


def matmul_options(partials_dtype: Any, options: str, options_bwd: str) -> RecurrentOptions:
    """Returns the matmul planner options; unreadable options are refused elsewhere."""
    return RecurrentOptions(
        planner_options.recurrent_options(partials_dtype, options),
        planner_options.recurrent_options(partials_dtype, options_bwd),
    )


def check_channels(name: str, channels: int, biases: Any) -> None:
    """Refuses biases whose last axis is not `num_channels` long."""
    shape = tf.convert_to_tensor(biases).shape
    if shape.rank is not None and not shape[-1:].is_compatible_with([channels]):
        raise ValueError(
            f"{name}: num_channels is {channels}, and the biases have the shape {shape}; expected "
            "[gates, num_channels]. Pass such biases."
        )
