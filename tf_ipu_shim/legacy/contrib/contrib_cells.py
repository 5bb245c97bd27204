"""Implements `LayerNormBasicLSTMCell` of `tensorflow.contrib.rnn`, which TensorFlow has removed.

Checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.tf_private.utilities import tf_logging

_EPSILON = {v1.float16: 1e-3}
_SMALL = 1e-12


class LayerNormBasicLSTMCell(v1.nn.rnn_cell.RNNCell):  # type: ignore[misc]
    """An LSTM whose gates, candidate and state are normalised (Ba et al., "Layer Normalization", 2016).

    Dropout applies to the addition to the state (Semeniuta et al., "Recurrent Dropout without Memory Loss", 2016).

    Args:
        num_units: the size of the state and the output.
        forget_bias: added to the forget gate.
        input_size: no effect, as in TensorFlow 1.15.
        activation: the activation of the candidate and of the state.
        layer_norm: whether to use layer normalisation; otherwise there is a bias.
        norm_gain: the initial scales of the norms.
        norm_shift: their initial offsets.
        dropout_keep_prob: the part of the candidate that is kept, a number or a tensor; 1 for no dropout.
        dropout_prob_seed: the seed of the dropout.
        reuse: whether the variables exist already.

    Source: `tensorflow.contrib.rnn.python.ops.rnn_cell.LayerNormBasicLSTMCell`.

    Example:
        >>> LayerNormBasicLSTMCell(8).state_size
        LSTMStateTuple(c=8, h=8)
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = v1.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        if input_size is not None:
            tf_logging.warning("LayerNormBasicLSTMCell: input_size does nothing; it is that of the inputs.")
        self._num_units, self._forget_bias, self._activation = num_units, forget_bias, activation
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    @property
    def state_size(self) -> Any:
        """Sizes of the state and the output, in the state's structure."""
        return v1.nn.rnn_cell.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """One step.

        Args:
            inputs: `[batch, size]`.
            state: the `LSTMStateTuple` of the step before.

        Returns:
            The output and the new state.
        """
        c, h = state
        gates = self._norms(v1.split(self._linear(v1.concat([inputs, h], 1)), 4, 1))
        entered, candidate, forgotten, output_gate = gates
        added = self._dropped(self._activation(candidate))
        new_c = c * v1.sigmoid(forgotten + self._forget_bias) + v1.sigmoid(entered) * added
        new_c = self._norm(new_c, "state")
        new_h = self._activation(new_c) * v1.sigmoid(output_gate)
        return new_h, v1.nn.rnn_cell.LSTMStateTuple(new_c, new_h)

    def _linear(self, inputs: Any) -> Any:
        size = 4 * self._num_units
        result = v1.matmul(inputs, v1.get_variable("kernel", [inputs.shape[-1], size], dtype=inputs.dtype))
        if self._layer_norm:
            return result
        return v1.nn.bias_add(result, v1.get_variable("bias", [size], dtype=inputs.dtype))

    def _norms(self, parts: list[Any]) -> list[Any]:
        return [self._norm(part, name) for part, name in zip(parts, ("input", "transform", "forget", "output"))]

    def _norm(self, inputs: Any, name: str) -> Any:
        if not self._layer_norm:
            return inputs
        with v1.variable_scope(name):
            gamma, beta = (
                v1.get_variable(part, [self._num_units], inputs.dtype, v1.constant_initializer(value))
                for part, value in (("gamma", self._gain), ("beta", self._shift))
            )
        mean, variance = v1.nn.moments(inputs, [1], keep_dims=True)
        return v1.nn.batch_normalization(inputs, mean, variance, beta, gamma, _EPSILON.get(inputs.dtype, _SMALL))

    def _dropped(self, tensor: Any) -> Any:
        if isinstance(self._keep_prob, (int, float)) and self._keep_prob >= 1:
            return tensor
        return v1.nn.dropout(tensor, keep_prob=self._keep_prob, seed=self._seed)
