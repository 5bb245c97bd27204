"""LSTM and GRU as Keras layers, with the weights of Keras' own layers; `bias` is called `biases`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.layers.rnn_base import PopnnRNN, constructor_arguments
from tf_ipu_shim.frontend.ops.activations import ACCEPTED_ACTIVATIONS, ACCEPTED_RECURRENT_ACTIVATIONS
from tf_ipu_shim.frontend.ops.recurrent import recurrences
from tf_ipu_shim.frontend.ops.recurrent.rnn_ops import POPNN_GRU, POPNN_GRU_NUM_GATES, POPNN_LSTM, POPNN_LSTM_NUM_GATES

ACCEPTED_ACTIVATIONS_STR = ", ".join(ACCEPTED_ACTIVATIONS)
ACCEPTED_RECURRENT_ACTIVATIONS_STR = ", ".join(ACCEPTED_RECURRENT_ACTIVATIONS)

__all__ = [
    "ACCEPTED_ACTIVATIONS",
    "ACCEPTED_ACTIVATIONS_STR",
    "ACCEPTED_RECURRENT_ACTIVATIONS",
    "ACCEPTED_RECURRENT_ACTIVATIONS_STR",
    "GRU",
    "LSTM",
    "POPNN_GRU",
    "POPNN_GRU_NUM_GATES",
    "POPNN_LSTM",
    "POPNN_LSTM_NUM_GATES",
    "PopnnGRU",
    "PopnnLSTM",
]


class PopnnLSTM(PopnnRNN):
    """An LSTM with the weights of `tf.keras.layers.LSTM`.

    Args: see `PopnnRNN`, and `unit_forget_bias`: the forget gate's bias begins with ones.

    Source: `ipu_tensorflow_addons.keras.layers.PopnnLSTM`.

    Example:
        >>> PopnnLSTM(128)(tf.ones([2, 5, 16])).shape  # the last of five steps
        TensorShape([2, 128])
    """

    _kind = "LSTM"
    _num_gates = POPNN_LSTM_NUM_GATES
    _num_states = 2

    @argument_order(27, "options options_bwd", since=(3, 4))
    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        dropout_seed: Any = None,
        recurrent_dropout: float = 0.0,
        implementation: int = 2,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        partials_dtype: Any = tf.float32,
        seed: int | None = None,
        time_major: bool = False,
        available_memory_proportion_fwd: float | None = None,
        available_memory_proportion_bwd: float | None = None,
        options: dict[str, Any] | None = None,
        options_bwd: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        arguments = dict(locals())
        super().__init__(units, {name: arguments[name] for name in constructor_arguments(arguments)}, **kwargs)
        self.unit_forget_bias = unit_forget_bias

    def _new_bias(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if not self.unit_forget_bias:
            return super()._new_bias(shape, dtype, **kwargs)
        forget = tf.ones([self.units], dtype or tf.float32)
        return tf.concat(
            [
                self.bias_initializer((self.units,), dtype=dtype, **kwargs),
                forget,
                self.bias_initializer((self.units * 2,), dtype=dtype, **kwargs),
            ],
            axis=0,
        )

    def state_shape(self, batch_size: int) -> tuple[list[int], list[int]]:
        """Shapes of the hidden and the cell state.

        Args:
            batch_size: samples in a batch.
        """
        return ([batch_size, self.units], [batch_size, self.units])

    def _run(self, inputs: Any, states: list[Any], kernel: Any) -> Any:
        return recurrences.lstm(
            inputs,
            (states[0], states[1]),
            kernel,
            self.get_bias(),
            self.activation,
            self.recurrent_activation,
            planned=self._planned,
        )


class PopnnGRU(PopnnRNN):
    """A GRU with the weights of `tf.keras.layers.GRU`.

    Args: see `PopnnRNN`, and `reset_after`: the reset gate is applied after the state's matmul, not to the state.

    Source: `ipu_tensorflow_addons.keras.layers.PopnnGRU`.

    Example:
        >>> PopnnGRU(128)(tf.ones([2, 5, 16])).shape  # the last of five steps
        TensorShape([2, 128])
    """

    _kind = "GRU"
    _num_gates = POPNN_GRU_NUM_GATES

    @argument_order(27, "options options_bwd", since=(3, 4))
    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        dropout_seed: Any = None,
        recurrent_dropout: float = 0.0,
        implementation: int = 2,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        reset_after: bool = True,
        seed: int | None = None,
        partials_dtype: Any = tf.float32,
        time_major: bool = False,
        available_memory_proportion_fwd: float | None = None,
        available_memory_proportion_bwd: float | None = None,
        options: dict[str, Any] | None = None,
        options_bwd: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        arguments = dict(locals())
        super().__init__(units, {name: arguments[name] for name in constructor_arguments(arguments)}, **kwargs)
        self.reset_after = reset_after

    def _bias_shape(self) -> tuple[int, ...]:
        size = self.units * self._num_gates
        return (2, size) if self._arguments["reset_after"] else (size,)

    def get_bias(self) -> Any:
        """Returns the bias in the IPU's layout: a row for each gate, or with `reset_after` two."""
        if not self.reset_after:
            return super().get_bias()
        return tf.transpose(tf.reshape(self.biases, [2, self._num_gates, self.units]), [1, 0, 2])

    def _run(self, inputs: Any, states: list[Any], kernel: Any) -> Any:
        return recurrences.gru(
            inputs,
            states[0],
            kernel,
            self.get_bias(),
            self.activation,
            self.recurrent_activation,
            self.reset_after,
            planned=self._planned,
        )


LSTM = PopnnLSTM
GRU = PopnnGRU
