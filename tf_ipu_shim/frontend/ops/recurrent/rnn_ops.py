"""`tensorflow.python.ipu.rnn_ops`: TensorFlow 1 recurrent layers, time-major, with one kernel and one bias variable.

They were moved to `ipu_tensorflow_addons.layers` and `ipu_tensorflow_addons.v1.layers`, which export these classes.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2, sdk
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops import planner_options
from tf_ipu_shim.frontend.ops.activations import ACCEPTED_ACTIVATIONS, ACCEPTED_RECURRENT_ACTIVATIONS, check_activation
from tf_ipu_shim.frontend.ops.recurrent import recurrences

v1 = tf.compat.v1
LSTMStateTuple = keras2.module("layers.rnn.legacy_cells").LSTMStateTuple

POPNN_LSTM = "lstm"
POPNN_GRU = "gru"
POPNN_DYNAMIC_GRU = "dynamic_gru"
POPNN_AUGRU = "augru"
POPNN_LSTM_NUM_GATES = 4
POPNN_GRU_NUM_GATES = POPNN_DYNAMIC_GRU_NUM_GATES = POPNN_AUGRU_NUM_GATES = 3

__all__ = ["PopnnAUGRU", "PopnnDynamicGRU", "PopnnDynamicLSTM", "PopnnGRU", "PopnnLSTM"]


class _PopnnRNN(keras2.module("legacy_tf_layers.base").Layer):  # type: ignore[misc]
    """Base class of the recurrent layers.

    Args:
        num_units: the size of the state.
        dtype: the dtype of variables, inputs and outputs.
        partials_dtype: the dtype of partial results in the cycle model; the arithmetic here uses `dtype`.
        seed: the seed of the default initializer of the kernel.
        weights_initializer: the initializer of the kernel; Glorot uniform by default.
        bias_initializer: the initializer of the biases; zeros by default.
        activation: one of `tanh`, `relu`, `softmax`, `sigmoid`, `hard_sigmoid`.
        recurrent_activation: one of `tanh`, `softmax`, `sigmoid`, `hard_sigmoid`.
        return_state: whether a call returns the last state too.
        name: the scope of the variables `kernel` and `biases`.
        available_memory_proportion_fwd: used by the cycle model's planner.
        available_memory_proportion_bwd: the same, for gradients.
        options: the options for the cycle model's planner, as far as it reads them.
        options_bwd: the same, for gradients.
    """

    _num_gates = 0

    @argument_order(6, "name", until=(2, 0))
    @argument_order(
        8, "name available_memory_proportion_fwd available_memory_proportion_bwd", since=(2, 1), until=(2, 5)
    )
    @argument_order(10, "options options_bwd", since=(3, 4))
    def __init__(
        self,
        num_units: int,
        dtype: Any = tf.float32,
        partials_dtype: Any = tf.float32,
        seed: int | None = None,
        weights_initializer: Any = None,
        bias_initializer: Any = None,
        activation: str = "tanh",
        recurrent_activation: str = "sigmoid",
        return_state: bool = True,
        name: str | None = None,
        available_memory_proportion_fwd: float | None = None,
        available_memory_proportion_bwd: float | None = None,
        options: dict[str, Any] | None = None,
        options_bwd: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(dtype=dtype, name=name)
        dtype = tf.as_dtype(dtype)
        if dtype not in (tf.float16, tf.float32):
            raise ValueError(f"Only support float16, float32, provided {dtype}. Pass one of these two types.")
        self._activation = check_activation(activation, ACCEPTED_ACTIVATIONS, "activation")
        self._recurrent_activation = check_activation(
            recurrent_activation, ACCEPTED_RECURRENT_ACTIVATIONS, "recurrent_activation"
        )
        planner_options.record_ignored_options("PopnnLSTM", options)
        planner_options.record_ignored_options("PopnnLSTM", options_bwd, "options_bwd")
        self._plain_dtype = dtype
        self._num_units = num_units
        self._seed = seed
        self._weights_initializer = weights_initializer
        self._bias_initializer = bias_initializer
        self._return_state = return_state
        self._options = {
            "fwd": {"availableMemoryProportion": available_memory_proportion_fwd, **(options or {})},
            "bwd": {"availableMemoryProportion": available_memory_proportion_bwd, **(options_bwd or {})},
        }
        self._planned = planner_options.RecurrentOptions(
            planner_options.recurrent_options(partials_dtype, options, available_memory_proportion_fwd),
            planner_options.recurrent_options(partials_dtype, options_bwd, available_memory_proportion_bwd),
        )
        self._input_size: int | None = None

    @property
    def num_layers(self) -> int:
        """The number of layers: always 1."""
        return 1

    @property
    def num_units(self) -> int:
        """The size of the state."""
        return self._num_units

    @property
    def input_size(self) -> int:
        """The size of the inputs, known once the layer is built."""
        if not self._input_size:
            raise ValueError("'input_size' is unknown since layer has not been built. Call build() first.")
        return self._input_size

    @property
    def saveable(self) -> bool:
        """Returns whether checkpoints need a converter: they hold `kernel` and `biases` unchanged."""
        return False

    @property
    def canonical_weight_shape(self) -> list[int]:
        """The kernel's shape: `[input_size + num_units, gates * num_units]`."""
        if not self._input_size:
            raise RuntimeError("canonical_weight_shape invoked before input shape is known. It must be: call build().")
        return [self._input_size + self._num_units, self._num_units * self._num_gates]

    def _initial_biases(self) -> Any:
        """Default initial biases."""
        return v1.zeros_initializer()

    @property
    def canonical_bias_shapes(self) -> list[int]:
        """The biases' shape: `[gates, num_units]`."""
        return [self._num_gates, self._num_units]

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Args:
            input_shape: `[time, batch, input_size]`, the last of them known.

        Raises:
            ValueError: it has another rank, or no known last dimension.
        """
        if tf.TensorShape(input_shape).rank != 3:
            raise ValueError(
                f"Expecting input_shape with 3 dims, got {input_shape}; expected [time, batch, features]. "
                "Reshape the inputs."
            )
        shape = tf.TensorShape(input_shape).as_list()
        if shape[-1] is None:
            raise ValueError("The last dimension of the inputs to the layer must be known, got None. Set input_shape.")
        self._input_size = shape[-1]
        self.kernel = self._variable(
            "kernel",
            self.canonical_weight_shape,
            self._weights_initializer or v1.glorot_uniform_initializer(self._seed),
        )
        self._add_biases()
        self.built = True

    def _add_biases(self) -> None:
        self.biases = self._variable(
            "biases", self.canonical_bias_shapes, self._bias_initializer or self._initial_biases()
        )

    def _variable(self, name: str, shape: list[int], initializer: Any) -> Any:
        return self.add_weight(
            name=name, shape=shape, dtype=self._plain_dtype, initializer=initializer, use_resource=True
        )

    def _zeros(self, inputs: Any) -> Any:
        batch = inputs.shape.as_list()[1]
        return tf.zeros([tf.shape(inputs)[1] if batch is None else batch, self._num_units], inputs.dtype)

    def _checked(self, inputs: Any) -> Any:
        inputs = tf.convert_to_tensor(inputs)
        if inputs.dtype != self._plain_dtype:
            raise TypeError(f"inputs must be of the layer's dtype {self._plain_dtype.name}, got {inputs.dtype.name}.")
        return inputs

    def _checked_results(self, outputs: Any, state: Any) -> Any:
        planner_options.check_options(outputs, *self._options.values())
        return (outputs, state) if self._return_state else outputs


class PopnnLSTM(_PopnnRNN):
    """An LSTM over time-major inputs.

    Args: see `_PopnnRNN`.

    Source: `tensorflow.python.ipu.rnn_ops.PopnnLSTM`.

    Example:
        >>> outputs, state = PopnnLSTM(128)(tf.ones([5, 2, 16]))
        >>> outputs.shape, state.c.shape
        (TensorShape([5, 2, 128]), TensorShape([2, 128]))
    """

    _num_gates = POPNN_LSTM_NUM_GATES

    def state_shape(self, batch_size: int) -> tuple[list[int], list[int]]:
        """Shapes of the cell state and the hidden state.

        Args:
            batch_size: samples in a batch.
        """
        return ([batch_size, self.num_units], [batch_size, self.num_units])

    def call(self, inputs: Any, initial_state: Any = None, training: bool = True) -> Any:
        """Runs the LSTM.

        Args:
            inputs: `[time, batch, input_size]`.
            initial_state: an `LSTMStateTuple` of `[batch, num_units]` tensors; zeros by default.
            training: no effect: the values are the same in training and inference.

        Returns:
            Outputs `[time, batch, num_units]` and the last state as an `LSTMStateTuple`.

        Raises:
            ValueError: the state does not have this form.
        """
        note_arguments("PopnnLSTM", training=training)
        return self._run(inputs, initial_state, None)

    def _run(self, inputs: Any, initial_state: Any, seq_len: Any) -> Any:
        inputs = self._checked(inputs)
        if initial_state is None:
            initial_state = LSTMStateTuple(self._zeros(inputs), self._zeros(inputs))
        elif not (isinstance(initial_state, tuple) and hasattr(initial_state, "c") and hasattr(initial_state, "h")):
            raise ValueError(
                f"Invalid initial_state type: `{type(initial_state)}`, expecting `LSTMStateTuple`; no other "
                "is supported. Pass an LSTMStateTuple."
            )
        outputs, hidden, cell = recurrences.lstm(
            inputs,
            (tf.convert_to_tensor(initial_state.h), tf.convert_to_tensor(initial_state.c)),
            self.kernel,
            self.biases,
            self._activation,
            self._recurrent_activation,
            seq_len,
            planned=self._planned,
        )
        return self._checked_results(outputs, LSTMStateTuple(cell, hidden))


class PopnnDynamicLSTM(PopnnLSTM):
    """An LSTM over sequences of different lengths.

    Args: see `_PopnnRNN`.

    Source: `tensorflow.python.ipu.rnn_ops.PopnnDynamicLSTM`.

    Example:
        >>> outputs, state = PopnnDynamicLSTM(128)(tf.ones([5, 2, 16]), [5, 3])
        >>> bool(outputs.numpy()[3:, 1].any())  # behind the length of the second sequence
        False
    """

    def call(  # type: ignore[override]
        self, inputs: Any, seq_len: Any, initial_state: Any = None, training: bool = True
    ) -> Any:
        """Runs the LSTM.

        Args:
            inputs: `[time, batch, input_size]`.
            seq_len: `[batch]` integers, the length of each sequence: later outputs are zeros, and the state is that of
                its last step.
            initial_state: an `LSTMStateTuple`; zeros by default.
            training: no effect: the values are the same in training and inference.

        Returns:
            As `PopnnLSTM`.

        Raises:
            ValueError: the state does not have this form.
        """
        note_arguments("PopnnLSTM", training=training)
        return self._run(inputs, initial_state, seq_len)


class PopnnGRU(_PopnnRNN):
    """A GRU over time-major inputs.

    Has the arguments of `_PopnnRNN` and `reset_after`: the reset gate is applied after the state's matmul, and each
    gate has two biases.

    Source: `tensorflow.python.ipu.rnn_ops.PopnnGRU`.

    Example:
        >>> outputs, state = PopnnGRU(128)(tf.ones([5, 2, 16]))
        >>> outputs.shape, state.shape
        (TensorShape([5, 2, 128]), TensorShape([2, 128]))
    """

    _num_gates = POPNN_GRU_NUM_GATES

    @argument_order(6, "name reset_after", until=(2, 0))
    @argument_order(
        8,
        "name reset_after available_memory_proportion_fwd available_memory_proportion_bwd",
        since=(2, 1),
        until=(2, 5),
    )
    @argument_order(11, "options options_bwd", since=(3, 4))
    def __init__(
        self,
        num_units: int,
        dtype: Any = tf.float32,
        partials_dtype: Any = tf.float32,
        seed: int | None = None,
        weights_initializer: Any = None,
        bias_initializer: Any = None,
        activation: str = "tanh",
        recurrent_activation: str = "sigmoid",
        return_state: bool = True,
        name: str | None = None,
        reset_after: bool = False,
        available_memory_proportion_fwd: float | None = None,
        available_memory_proportion_bwd: float | None = None,
        options: dict[str, Any] | None = None,
        options_bwd: dict[str, Any] | None = None,
    ) -> None:
        arguments = dict(locals())
        for local_name in ("self", "__class__", "reset_after"):
            del arguments[local_name]
        super().__init__(**arguments)
        self._reset_after = reset_after

    @property
    def canonical_bias_shapes(self) -> list[int]:
        """The biases' shape: `[gates, num_units]`, or `[gates, 2, num_units]` with `reset_after`."""
        return [self._num_gates, *([2] if self._reset_after else []), self._num_units]

    def _all_biases(self) -> Any:
        """The biases of all gates, by `canonical_bias_shapes`."""
        return self.biases

    def state_shape(self, batch_size: int) -> list[int]:
        """Returns the state's shape.

        Args:
            batch_size: samples in a batch.
        """
        return [batch_size, self.num_units]

    def call(self, inputs: Any, initial_state: Any = None, training: bool = True) -> Any:
        """Runs the GRU.

        Args:
            inputs: `[time, batch, input_size]`.
            initial_state: `[batch, num_units]`; zeros by default.
            training: no effect: the values are the same in training and inference.

        Returns:
            Outputs `[time, batch, num_units]` and the last state `[batch, num_units]`.
        """
        note_arguments("PopnnLSTM", training=training)
        return self._run(inputs, initial_state)

    def _run(
        self,
        inputs: Any,
        initial_state: Any,
        seq_len: Any = None,
        attention_score: Any = None,
        time_major: bool = True,
    ) -> Any:
        inputs = self._checked(inputs)
        if not time_major:
            inputs = tf.transpose(inputs, [1, 0, 2])
        outputs, state = recurrences.gru(
            inputs,
            self._zeros(inputs) if initial_state is None else tf.convert_to_tensor(initial_state),
            self.kernel,
            self._all_biases(),
            self._activation,
            self._recurrent_activation,
            self._reset_after,
            seq_len,
            attention_score,
            planned=self._planned,
        )
        return self._checked_results(outputs, state)  # with time first for either order of the inputs, as Graphcore's


def _initial_gate_biases(num_units: int) -> Any:
    return v1.constant_initializer([[1.0] * num_units, [1.0] * num_units, [0.0] * num_units])


class PopnnDynamicGRU(PopnnGRU):
    """A GRU over sequences of different lengths.

    Args: see `PopnnGRU`. Until SDK 2.1 the biases of its update and reset gates began with ones.

    Source: `tensorflow.python.ipu.rnn_ops.PopnnDynamicGRU`.

    Example:
        >>> outputs, state = PopnnDynamicGRU(128)(tf.ones([5, 2, 16]), [5, 3])
        >>> bool(outputs.numpy()[3:, 1].any())  # behind the length of the second sequence
        False
    """

    def _initial_biases(self) -> Any:
        return _initial_gate_biases(self.num_units) if sdk.current() <= (2, 1) else super()._initial_biases()

    def call(  # type: ignore[override]
        self, inputs: Any, seq_len: Any, initial_state: Any = None, training: bool = True, time_major: bool = True
    ) -> Any:
        """Runs the GRU.

        Args:
            inputs: `[time, batch, input_size]`, or `[batch, time, input_size]`.
            seq_len: `[batch]` integers, the length of each sequence: later outputs are zeros, and the state is that of
                its last step.
            initial_state: `[batch, num_units]`; zeros by default.
            training: no effect: the values are the same in training and inference.
            time_major: whether the inputs have time first; the outputs always do.

        Returns:
            Outputs `[time, batch, num_units]`, and the last state `[batch, num_units]`.
        """
        note_arguments("PopnnLSTM", training=training)
        return self._run(inputs, initial_state, seq_len, time_major=time_major)


class PopnnAUGRU(PopnnGRU):
    """A GRU whose update gate is scaled by attention scores (https://arxiv.org/abs/1809.03672).

    Its biases are two variables, as in checkpoints of the time: `bias_r_u` of update and reset gate, which begin
    with ones, and `bias_c`.

    Args: see `PopnnGRU`. With `reset_after` the biases are one variable.

    Source: `tensorflow.python.ipu.rnn_ops.PopnnAUGRU`.

    Example:
        >>> inputs, seq_len, attention_score = tf.ones([5, 2, 16]), [5, 3], tf.zeros([5, 2])
        >>> outputs, state = PopnnAUGRU(128)(inputs, seq_len, attention_score)
        >>> outputs.shape
        TensorShape([5, 2, 128])
    """

    def _initial_biases(self) -> Any:
        return _initial_gate_biases(self.num_units)

    def _add_biases(self) -> None:
        if self._reset_after:
            super()._add_biases()
            return
        self.bias_r_u = self._variable("bias_r_u", [2, self.num_units], self._bias_initializer or v1.ones_initializer())
        self.bias_c = self._variable("bias_c", [1, self.num_units], self._bias_initializer or v1.zeros_initializer())

    def _all_biases(self) -> Any:
        return super()._all_biases() if self._reset_after else tf.concat([self.bias_r_u, self.bias_c], 0)

    def call(  # type: ignore[override]
        self,
        inputs: Any,
        seq_len: Any,
        attention_score: Any,
        initial_state: Any = None,
        training: bool = True,
        time_major: bool = True,
    ) -> Any:
        """Runs the GRU.

        Args:
            inputs: `[time, batch, input_size]`, or `[batch, time, input_size]`.
            seq_len: `[batch]` integers, the length of each sequence: later outputs are zeros, and the state is that of
                its last step.
            attention_score: `[time, batch]`, or `[batch, time]`.
            initial_state: `[batch, num_units]`; zeros by default.
            training: no effect: the values are the same in training and inference.
            time_major: whether inputs and scores have time first; the outputs always do.

        Returns:
            Outputs `[time, batch, num_units]`, and the last state `[batch, num_units]`.
        """
        note_arguments("PopnnLSTM", training=training)
        scores = tf.convert_to_tensor(attention_score)
        scores = scores if time_major else tf.transpose(scores)
        return self._run(inputs, initial_state, seq_len, scores, time_major)
