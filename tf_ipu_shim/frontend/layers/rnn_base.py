"""The base class of the IPU's recurrent Keras layers: arguments, weights, states and outputs."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import errors, keras2, sdk
from tf_ipu_shim.frontend.layers.ipu_layer import IPULayer
from tf_ipu_shim.frontend.ops import planner_options, rand_ops
from tf_ipu_shim.frontend.ops.activations import ACCEPTED_ACTIVATIONS, ACCEPTED_RECURRENT_ACTIVATIONS, check_activation
from tf_ipu_shim.frontend.tracing.internal_variables import internal

_keras = keras2.public_module()
_ACTIVATIONS_SINCE = (2, 0)  # those that can be chosen
_STATE_SECOND_UNTIL = (1, 3)  # the last SDK whose layers take the initial state as the second argument


class PopnnRNN(IPULayer):
    """Base class of LSTM and GRU.

    Args:
        units: the size of the state.
        activation: one of `tanh`, `relu`, `softmax`, `sigmoid`, `hard_sigmoid`.
        recurrent_activation: one of `tanh`, `softmax`, `sigmoid`, `hard_sigmoid`.
        use_bias: must be True.
        kernel_initializer: the initializer of the inputs' kernel.
        recurrent_initializer: the initializer of the state's kernel.
        bias_initializer: the initializer of the bias.
        dropout: the share of each input feature that is dropped while training, the same at all time steps.
        dropout_seed: `[2]` integers: the same mask in every step. None: another one in each.
        implementation: 1 or 2, which are the same here.
        return_sequences: returns the outputs of all time steps instead of only the last one.
        return_state: returns the last state too.
        stateful: each batch begins with the state the one before it ended with.
        seed: the seed of initializers that are given by name.
        partials_dtype: the dtype of partial results in the cycle model; the arithmetic here uses `dtype`.
        time_major: inputs and outputs are `[time, batch, size]`, not `[batch, time, size]`.
        available_memory_proportion_fwd: used by the cycle model's planner.
        available_memory_proportion_bwd: the same, for gradients.
        options: the options for the cycle model's planner, as far as it reads them.
        options_bwd: the same, for gradients.
        **kwargs: keyword arguments of a Keras layer. Arguments that only Keras' own recurrent layers support must have
            their defaults.

    Raises:
        ValueError: an argument that IPUs' layers do not support.
    """

    _kind = ""
    _num_gates = 0
    _num_states = 1
    _REFUSED = (
        "kernel_regularizer",
        "recurrent_regularizer",
        "bias_regularizer",
        "activity_regularizer",
        "kernel_constraint",
        "recurrent_constraint",
        "bias_constraint",
        "recurrent_dropout",
        "go_backwards",
        "unroll",
    )

    def __init__(self, units: int, arguments: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not arguments["use_bias"]:
            raise ValueError(f"IPU custom {self._kind} layer does not support use_bias = False. Leave it True.")
        for name in self._REFUSED:
            if arguments[name]:
                raise ValueError(
                    f"IPU custom {self._kind} layer does not support {name} = {arguments[name]!r}. Leave it out, or "
                    f"use tf.keras.layers.{self._kind}."
                )
        if arguments["implementation"] not in (1, 2):
            raise ValueError(
                f"IPU custom {self._kind} layer does not support implementation = {arguments['implementation']!r}. "
                "Use 1 or 2."
            )
        planner_options.record_ignored_options("keras PopnnLSTM", arguments["options"])
        planner_options.record_ignored_options("keras PopnnLSTM", arguments["options_bwd"], "options_bwd")
        if sdk.current() < _ACTIVATIONS_SINCE:
            for name, only in (("activation", "tanh"), ("recurrent_activation", "sigmoid")):
                if arguments[name] != only:
                    raise ValueError(
                        f"IPU custom {self._kind} layer does not support {name} = {arguments[name]!r} in SDK "
                        f"{sdk.current()}: it only supports {only!r}. Leave it out, or emulate SDK 2.1 or newer."
                    )
        self._arguments = arguments
        self.units = units
        self.activation = check_activation(arguments["activation"], ACCEPTED_ACTIVATIONS, "activation")
        self.recurrent_activation = check_activation(
            arguments["recurrent_activation"], ACCEPTED_RECURRENT_ACTIVATIONS, "recurrent_activation"
        )
        self.kernel_initializer = self._initializer("kernel_initializer")
        self.recurrent_initializer = self._initializer("recurrent_initializer")
        self.bias_initializer = self._initializer("bias_initializer")
        self.dropout = arguments["dropout"]
        self.dropout_seed = arguments["dropout_seed"]
        self.return_sequences = arguments["return_sequences"]
        self.return_state = arguments["return_state"]
        self.stateful = arguments["stateful"]
        self.time_major = arguments["time_major"]
        self.seed = arguments["seed"]
        self.states: list[Any] = []

    def _initializer(self, name: str) -> Any:
        setting, seed = self._arguments[name], self._arguments["seed"]
        initializer = _keras.initializers.get(setting)
        if seed is not None and isinstance(setting, str) and "seed" in initializer.get_config():
            return type(initializer).from_config({**initializer.get_config(), "seed": seed})
        return initializer

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Args:
            input_shape: the shape of the inputs; the last dimension must be known.

        Raises:
            ValueError: it has another rank than 3, or no known last dimension.
        """
        if tf.TensorShape(input_shape).rank != 3:
            raise ValueError(f"inputs tensor must be 3D, got {input_shape}.")
        shape = tf.TensorShape(input_shape).as_list()
        if shape[-1] is None:
            raise ValueError(
                f"The last dimension of the inputs must be known, got {shape}. Set the last dimension of the input "
                "shape."
            )
        size = self.units * self._num_gates
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], size), initializer=self.kernel_initializer)
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(self.units, size), initializer=self.recurrent_initializer
        )
        self.biases = self.add_weight(name="biases", shape=self._bias_shape(), initializer=self._new_bias)
        if self.stateful:
            batch = shape[1 if self.time_major else 0]
            if batch is None:
                raise ValueError(
                    "A stateful recurrent layer needs the batch size, which is None. Give the inputs a "
                    "batch_input_shape."
                )
            self._make_states(batch)
        super().build(input_shape)

    @tf.__internal__.tracking.no_automatic_dependency_tracking
    def _make_states(self, batch: int) -> None:
        """Makes the states, which do not count as weights, as in Keras' layers."""
        zeros = keras2.module("backend").zeros
        self.states = [internal(zeros((batch, self.units), self.variable_dtype)) for _ in range(self._num_states)]

    def _bias_shape(self) -> tuple[int, ...]:
        return (self.units * self._num_gates,)

    def _new_bias(self, shape: Any, dtype: Any = None, **kwargs: Any) -> Any:
        return self.bias_initializer(shape, dtype=dtype, **kwargs)

    def get_bias(self) -> Any:
        """Returns the bias in the IPU's layout: a row for each gate."""
        return tf.reshape(self.biases, [self._num_gates, self.units])

    def reset_states(self, states: Any = None) -> None:
        """Sets the state that the next batch begins with.

        Args:
            states: arrays `[batch, units]`; zeros when left out.

        Raises:
            AttributeError: the layer is not stateful.
        """
        if not self.stateful:
            raise AttributeError(
                "Layer must be stateful: reset_states was called on a recurrent layer with stateful=False. "
                "Create it with stateful=True."
            )
        values = [None] * len(self.states) if states is None else tf.nest.flatten(states)
        for variable, value in zip(self.states, values):
            variable.assign(tf.zeros_like(variable) if value is None else tf.cast(value, variable.dtype))

    def call(self, inputs: Any, mask: Any = None, training: Any = None, initial_state: Any = None) -> Any:
        """Runs the layer.

        Args:
            inputs: `[batch, time, size]`, or `[time, batch, size]` with `time_major`.
            mask: must be None: IPUs' layers run all time steps.
            training: whether to drop inputs; None means the phase Keras is in.
            initial_state: `[batch, units]`, for an LSTM a list of hidden and cell state; zeros by default.

        Returns:
            The last output `[batch, units]`, or all outputs with `return_sequences`; with `return_state` a list of the
            output and the last states.

        Raises:
            ValueError: the inputs have another rank than 3.
        """
        if len(inputs.shape) != 3:
            raise ValueError(f"inputs tensor must be 3D, got shape {inputs.shape}.")
        if sdk.current() <= _STATE_SECOND_UNTIL and _is_state(mask):
            mask, initial_state = None, mask
        if mask is not None:
            raise errors.UnsupportedError(
                f"{type(self).__name__} does not support masks: it runs all time steps. Remove the masking layer, or "
                f"use tf.keras.layers.{self._kind}. Pass initial_state and training by keyword."
            )
        inputs = inputs if self.time_major else tf.transpose(inputs, [1, 0, 2])
        inputs = self._dropped(inputs, training)
        kernel = tf.concat([self.kernel, self.recurrent_kernel], axis=0)
        outputs, *last = self._run(inputs, self._first_states(inputs, initial_state), kernel)
        planner_options.check_options([outputs, *last], *self._planner_options())
        if self.stateful:
            # Layers of TensorFlow 1's graphs have them among `updates`, which a session runs.
            self.add_update(
                [
                    variable.assign(tf.cast(value, variable.dtype), read_value=False)
                    for variable, value in zip(self.states, last)
                ]
            )
        if self.return_sequences:
            result = outputs if self.time_major else tf.transpose(outputs, [1, 0, 2])
        else:
            result = outputs[-1]
        return [result, *last] if self.return_state else result

    def _first_states(self, inputs: Any, initial_state: Any) -> list[Any]:
        """Returns the given states, a stateful layer's, or zeros, in the dtype of the inputs."""
        if initial_state is not None:
            states = tf.nest.flatten(initial_state)
        elif self.stateful:
            states = [tf.convert_to_tensor(state) for state in self.states]
        else:
            static_batch = inputs.shape.as_list()[1]
            batch = tf.shape(inputs)[1] if static_batch is None else static_batch
            states = [tf.zeros([batch, self.units], inputs.dtype)] * self._num_states
        if len(states) != self._num_states:
            raise ValueError(
                f"initial_state of {type(self).__name__} must hold {self._num_states} tensors, got {len(states)}. Pass "
                "one tensor for each state."
            )
        return [tf.cast(state, inputs.dtype) for state in states]

    @property
    def _planned(self) -> planner_options.RecurrentOptions:
        """The matmul planner options."""
        arguments = self._arguments
        return planner_options.RecurrentOptions(
            *(
                planner_options.recurrent_options(
                    arguments["partials_dtype"],
                    arguments[options],
                    arguments[f"available_memory_proportion_{direction}"],
                )
                for direction, options in (("fwd", "options"), ("bwd", "options_bwd"))
            )
        )

    def _planner_options(self) -> list[dict[str, Any]]:
        arguments = self._arguments
        return [
            {
                "availableMemoryProportion": arguments[f"available_memory_proportion_{direction}"],
                **(arguments[options] or {}),
            }
            for direction, options in (("fwd", "options"), ("bwd", "options_bwd"))
        ]

    def _dropped(self, inputs: Any, training: Any) -> Any:
        if not self.dropout:
            return inputs
        if training is None:
            training = keras2.module("backend").learning_phase()

        def drop() -> Any:
            shape = inputs.shape.as_list()
            return rand_ops.dropout(inputs, rate=self.dropout, noise_shape=[1, *shape[1:]], seed=self.dropout_seed)

        if tf.is_tensor(training):
            return tf.cond(tf.cast(training, tf.bool), drop, lambda: tf.identity(inputs))
        return drop() if training else inputs

    def _run(self, inputs: Any, states: list[Any], kernel: Any) -> Any:
        raise NotImplementedError

    def state_shape(self, batch_size: int) -> Any:
        """Returns the states' shapes.

        Args:
            batch_size: samples in a batch.
        """
        return [batch_size, self.units]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        initializers = {
            name: _keras.initializers.serialize(getattr(self, name))
            for name in ("kernel_initializer", "recurrent_initializer", "bias_initializer")
        }
        arguments = {name: value for name, value in self._arguments.items() if name not in self._REFUSED[:7]}
        arguments["partials_dtype"] = tf.as_dtype(arguments["partials_dtype"]).name
        arguments["activation"] = self.activation
        arguments["recurrent_activation"] = self.recurrent_activation
        return {**super().get_config(), "units": self.units, **arguments, **initializers}


def constructor_arguments(arguments: dict[str, Any]) -> list[str]:
    """Returns which of a constructor's local variables are arguments of recurrent layers."""
    return [name for name in arguments if name not in ("self", "units", "kwargs", "__class__")]


def _is_state(mask: Any) -> bool:
    """Returns whether the second argument of a layer is its initial state, not a mask."""
    return isinstance(mask, (list, tuple)) or (tf.is_tensor(mask) and mask.dtype.is_floating)
