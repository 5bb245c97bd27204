"""Implements `AttentionWrapper`: a recurrent cell that feeds attention over memories to the cell that it wraps."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v1 as v1

_State = collections.namedtuple("_State", "cell_state attention time alignments alignment_history attention_state")


class AttentionWrapperState(_State):
    """The state of an `AttentionWrapper`.

    Args:
        cell_state: the cell state of the wrapped cell.
        attention: the attention of the previous step, `[batch, size]`.
        time: steps so far.
        alignments: the alignments of the step before, `[batch, time]`, or one for each mechanism.
        alignment_history: a `TensorArray` of the alignments of all steps, or one for each mechanism; `()` for none.
        attention_state: the attention state of the mechanisms.

    Source: `tensorflow.contrib.seq2seq.AttentionWrapperState`.
    """

    __slots__ = ()

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """Returns a copy with replaced parts, which need the shapes of the originals.

        Args:
            kwargs: parts by name.

        Raises:
            ValueError: a part has another shape.
        """

        def checked(old: Any, new: Any) -> Any:
            if not (isinstance(old, v1.Tensor) and isinstance(new, v1.Tensor)):
                return new
            if not old.shape.is_compatible_with(new.shape):
                raise ValueError(
                    f"A part of the state is of shape {old.shape}, and its replacement of {new.shape}; both "
                    "must be equal. Reshape the replacement."
                )
            return new

        changed_state = self._replace(**kwargs)
        return v1.nest.map_structure(checked, self, changed_state)


class AttentionWrapper(v1.nn.rnn_cell.RNNCell):  # type: ignore[misc]
    """A cell that receives the attention of the last step, and returns the attention of this one.

    Args:
        cell: the wrapped cell.
        attention_mechanism: one, or a list.
        attention_layer_size: the size of the attention vector, or one for each mechanism; None for the context itself.
        alignment_history: whether alignments of all steps are kept.
        cell_input_fn: a function from inputs and attention to the cell's inputs; both side by side by default.
        output_attention: whether the output is the attention; else it is the cell's output.
        initial_cell_state: the initial state of the cell.
        name: the name of the layer.
        attention_layer: layers instead of `attention_layer_size`, one or a list.
        attention_fn: a function of a mechanism, the cell's output, the mechanism's state and its layer. It returns the
            attention, the alignments and the mechanism's next state.
        dtype: the dtype of the layers.

    Raises:
        ValueError: sizes, layers and mechanisms are not equally many, or both sizes and layers are given.

    Source: `tensorflow.contrib.seq2seq.AttentionWrapper`.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., tuple[Any, Any, Any]] | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = tuple(attention_mechanism) if self._is_multi else (attention_mechanism,)
        self._attention_layers = self._layers(attention_layer_size, attention_layer, dtype)
        self._cell, self._cell_input_fn = cell, cell_input_fn or _side_by_side
        self._attention_fn = attention_fn or _attend
        self._output_attention, self._alignment_history = output_attention, alignment_history
        self._initial_cell_state = initial_cell_state

    def _layers(self, sizes: Any, layers: Any, dtype: Any) -> Sequence[Any] | None:
        if sizes is not None and layers is not None:
            raise ValueError(
                "Only one of attention_layer_size and attention_layer should be set: both are. Leave one out."
            )
        count = len(self._attention_mechanisms)
        if sizes is not None:
            sizes = tuple(sizes) if isinstance(sizes, (list, tuple)) else (sizes,)
            layers = [v1.layers.Dense(size, name="attention_layer", use_bias=False, dtype=dtype) for size in sizes]
        elif layers is None:
            return None
        elif not isinstance(layers, (list, tuple)):
            layers = [layers]
        if len(layers) != count:
            raise ValueError(
                f"There are {count} attention mechanisms and {len(layers)} layers or sizes; both numbers "
                "must be equal. Pass one for each mechanism."
            )
        return tuple(layers)

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        """The size of each part of the state."""
        mechanisms = self._attention_mechanisms
        sizes = self._one_or_all([mechanism.alignments_size for mechanism in mechanisms])
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=v1.TensorShape([]),
            attention=self._attention_size,
            alignments=sizes,
            attention_state=self._one_or_all([mechanism.state_size for mechanism in mechanisms]),
            alignment_history=self._one_or_all([size if self._alignment_history else () for size in self._all(sizes)]),
        )

    @property
    def _attention_size(self) -> int:
        if self._attention_layers is None:
            return sum(int(mechanism.values.shape[-1]) for mechanism in self._attention_mechanisms)
        values = zip(self._attention_layers, self._attention_mechanisms)
        return sum(_width(layer, self._cell.output_size, mechanism) for layer, mechanism in values)

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """Returns the initial state.

        Args:
            batch_size: rows; must equal the memories' rows.
            dtype: the dtype of the state.
        """
        with v1.name_scope(type(self).__name__ + "ZeroState"):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            message = (
                f"When calling zero_state of AttentionWrapper {self.name}: the batch size of the attention mechanisms "
                "is not the requested one."
            )
            with v1.control_dependencies(self._batch_size_checks(batch_size, message)):
                cell_state = v1.nest.map_structure(v1.identity, cell_state)
            mechanisms = self._attention_mechanisms
            alignments = [mechanism.initial_alignments(batch_size, dtype) for mechanism in mechanisms]
            return AttentionWrapperState(
                cell_state=cell_state,
                time=v1.zeros([], v1.int32),
                attention=v1.zeros([batch_size, self._attention_size], dtype),
                alignments=self._one_or_all(alignments),
                attention_state=self._one_or_all([one.initial_state(batch_size, dtype) for one in mechanisms]),
                alignment_history=self._one_or_all(
                    [
                        v1.TensorArray(dtype, size=0, dynamic_size=True, element_shape=alignment.shape)
                        if self._alignment_history
                        else ()
                        for alignment in alignments
                    ]
                ),
            )

    def call(self, inputs: Any, state: AttentionWrapperState) -> tuple[Any, AttentionWrapperState]:
        """One step: the cell on inputs and the last attention, then attention to its output.

        Args:
            inputs: `[batch, size]`.
            state: the state of the step before.

        Returns:
            The output and the next state.

        Raises:
            TypeError: the state is not an `AttentionWrapperState`.
        """
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                f"Expected state to be instance of AttentionWrapperState. Received type {type(state).__name__} "
                "instead: begin with zero_state(batch_size, dtype), or its clone(cell_state=...)."
            )
        output, cell_state = self._cell(self._cell_input_fn(inputs, state.attention), state.cell_state)
        rows = output.shape[0] if output.shape[0] is not None else v1.shape(output)[0]
        message = f"When applying AttentionWrapper {self.name}: the batch size of its memory is not that of the query."
        with v1.control_dependencies(self._batch_size_checks(rows, message)):
            output = v1.identity(output, name="checked_cell_output")
        attentions, alignments, states, histories = [], [], [], []
        layers = self._attention_layers or [None] * len(self._attention_mechanisms)
        mechanisms = zip(self._attention_mechanisms, self._all(state.attention_state), layers)
        for (mechanism, before, layer), history in zip(mechanisms, self._all(state.alignment_history)):
            attention, aligned, after = self._attention_fn(mechanism, output, before, layer)
            attentions.append(attention)
            alignments.append(aligned)
            states.append(after)
            histories.append(history.write(state.time, aligned) if self._alignment_history else history)
        attended = v1.concat(attentions, 1)
        after = AttentionWrapperState(
            cell_state=cell_state,
            attention=attended,
            time=state.time + 1,
            alignments=self._one_or_all(alignments),
            alignment_history=self._one_or_all(histories),
            attention_state=self._one_or_all(states),
        )
        return (attended if self._output_attention else output), after

    def _batch_size_checks(self, batch_size: Any, error_message: str) -> list[Any]:
        """Checks that memories have so many rows: none if that is known. Scripts replace it, under this name."""
        sizes = [mechanism.batch_size for mechanism in self._attention_mechanisms]
        return [
            v1.assert_equal(batch_size, size, message=error_message)
            for size in sizes
            if not (isinstance(size, int) and size == batch_size)
        ]

    def _one_or_all(self, parts: Sequence[Any]) -> Any:
        return tuple(parts) if self._is_multi else parts[0]

    def _all(self, parts: Any) -> Sequence[Any]:
        return parts if self._is_multi else (parts,)


def _side_by_side(inputs: Any, attention: Any) -> Any:
    return v1.concat([inputs, attention], -1)


def _attend(mechanism: Any, output: Any, state: Any, layer: Any) -> tuple[Any, Any, Any]:
    """Returns the context of an output: values weighted by alignments, through a layer with the output if it has
    one.
    """
    alignments, after = mechanism(output, state)
    context = v1.squeeze(v1.matmul(v1.expand_dims(alignments, 1), mechanism.values), [1])
    attention = context if layer is None else layer(v1.concat([output, context], 1))
    return attention, alignments, after


def _width(layer: Any, output_size: Any, mechanism: Any) -> int:
    inputs = v1.TensorShape([None, int(output_size) + int(mechanism.values.shape[-1])])
    return int(layer.compute_output_shape(inputs)[-1])
