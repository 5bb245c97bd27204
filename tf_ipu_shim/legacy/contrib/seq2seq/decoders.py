"""Decoders, and the loop that steps them until all sequences have ended."""

from __future__ import annotations

import collections
from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.tf_private.control_flow import control_flow_util

BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", "rnn_output sample_id")
"""The result of a step: the cell's output, and the sample id."""


class Decoder:
    """The interface that `dynamic_decode` requires."""

    @property
    def batch_size(self) -> Any:
        """Sequences at a time."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """The sizes of a sequence's outputs: numbers or shapes, in the structure of the outputs."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """The dtypes of the outputs, in the same structure."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Returns whether the decoder itself decides if an ended sequence continues."""
        return False

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Returns which sequences have ended before they begin, `[batch]`, the first inputs and the first state."""
        raise NotImplementedError

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """Returns the outputs of a step, the next state, the next inputs, and which sequences have ended."""
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Returns the final form of all outputs, `[time, batch, ...]`, and of the last state."""
        raise NotImplementedError


class BasicDecoder(Decoder):
    """Runs a cell on the inputs of a helper.

    Args:
        cell: an `RNNCell`.
        helper: chooses the next input.
        initial_state: the initial state of the cell.
        output_layer: a layer for the cell's outputs, before they are sampled.

    Raises:
        TypeError: the helper is not a `Helper`, or the layer not a `Layer`.

    Source: `tensorflow.contrib.seq2seq.BasicDecoder`.
    """

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        if not all(hasattr(helper, name) for name in ("initialize", "sample", "next_inputs")):
            raise TypeError(f"helper must be a Helper, received: {type(helper).__name__}")
        if output_layer is not None and not hasattr(output_layer, "compute_output_shape"):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer).__name__}. Pass a Layer.")
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    @property
    def batch_size(self) -> Any:
        """The helper's."""
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        """Sizes of the outputs and of the samples."""
        return BasicDecoderOutput(self._rnn_output_size(), self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """The cell state's, and the helper's samples'."""
        dtype = v1.nest.flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(
            v1.nest.map_structure(lambda _: dtype, self._rnn_output_size()), self._helper.sample_ids_dtype
        )

    def _rnn_output_size(self) -> Any:
        size = self._cell.output_size
        if self._output_layer is None:
            return size
        shapes = v1.nest.map_structure(lambda shape: v1.TensorShape([None]).concatenate(shape), size)
        return v1.nest.map_structure(lambda shape: shape[1:], self._output_layer.compute_output_shape(shapes))

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Returns the helper's first inputs, and the cell's first state."""
        return (*self._helper.initialize(), self._initial_state)

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """Runs the cell and the layer; returns the helper's sample and next inputs."""
        with v1.name_scope(name, "BasicDecoderStep", [time, inputs, state]):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            sample = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=sample
            )
            return BasicDecoderOutput(outputs, sample), state, inputs, finished


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    **kwargs: Any,
) -> tuple[Any, Any, Any]:
    """Runs a decoder's steps until all sequences have ended.

    Args:
        decoder: the decoder to query.
        output_time_major: whether outputs are `[time, batch, ...]` instead of `[batch, time, ...]`.
        impute_finished: whether a sequence that has ended keeps its state, and has zeros for outputs.
        maximum_iterations: steps at most. Programs of IPUs need it, as a number: their outputs have so many steps,
            zeros behind the last executed one.
        parallel_iterations: the parallel iterations of TensorFlow's loop.
        swap_memory: the `swap_memory` of TensorFlow's loop.
        scope: the scope of variables.
        kwargs: keyword arguments for the decoder's `initialize`.

    Returns:
        The outputs, the last state, and how long each sequence has become, `[batch]`.

    Raises:
        TypeError: it is not a decoder.
        ValueError: `maximum_iterations` is not a scalar, or is missing in a program.

    Source: `tensorflow.contrib.seq2seq.dynamic_decode`.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder).__name__}. Pass a Decoder.")
    limit = None if maximum_iterations is None else v1.convert_to_tensor(maximum_iterations, v1.int32)
    if limit is not None and limit.shape.ndims != 0:
        raise ValueError(f"maximum_iterations must be a scalar; its shape is {limit.shape}. Pass a scalar.")
    is_compiled = control_flow_util.GraphOrParentsInXlaContext(v1.get_default_graph())
    if limit is None and is_compiled:
        raise ValueError("maximum_iterations is required for XLA compilation: say how long outputs may become.")
    with v1.variable_scope(scope, "decoder"):
        finished, inputs, state = decoder.initialize(**kwargs)
        zeros = _zeros(decoder)
        if limit is not None:
            finished = v1.logical_or(finished, 0 >= limit)

        def body(time: Any, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any) -> Any:
            outputs, after, inputs, ended = decoder.step(time, inputs, state)
            v1.nest.assert_same_structure(state, after)
            v1.nest.assert_same_structure(zeros, outputs)
            if not decoder.tracks_own_finished:
                ended = v1.logical_or(ended, finished)
            lengths = v1.where(finished, lengths, v1.fill(v1.shape(lengths), time + 1))
            if impute_finished:
                outputs = v1.nest.map_structure(lambda old, new: _unless(finished, old, new), zeros, outputs)
                after = v1.nest.map_structure(lambda old, new: _unless(finished, old, new), state, after)
            arrays = v1.nest.map_structure(lambda array, value: array.write(time, value), arrays, outputs)
            return time + 1, arrays, after, inputs, ended, lengths

        _, arrays, state, _, _, lengths = v1.while_loop(
            lambda time, arrays, state, inputs, finished, lengths: v1.logical_not(v1.reduce_all(finished)),
            body,
            (
                v1.constant(0, v1.int32),
                _arrays(decoder, limit if is_compiled else None),
                state,
                inputs,
                finished,
                v1.zeros_like(finished, v1.int32),
            ),
            parallel_iterations=parallel_iterations,
            maximum_iterations=limit,
            swap_memory=swap_memory,
        )
        outputs = v1.nest.map_structure(lambda array: array.stack(), arrays)
        try:
            outputs, state = decoder.finalize(outputs, state, lengths)
        except NotImplementedError:
            pass  # most decoders have nothing to add
    if not output_time_major:
        outputs = v1.nest.map_structure(lambda part: v1.transpose(part, [1, 0, *range(2, part.shape.ndims)]), outputs)
    return outputs, state, lengths


def _zeros(decoder: Decoder) -> Any:
    """Returns the outputs of a sequence that has ended."""

    def of(size: Any, dtype: Any) -> Any:
        return v1.zeros([decoder.batch_size, *v1.TensorShape(size).as_list()], dtype)

    return v1.nest.map_structure(of, decoder.output_size, decoder.output_dtype)


def _arrays(decoder: Decoder, size: Any) -> Any:
    """Returns where outputs are kept: of so many steps, or of as many as there will be."""
    rows = v1.get_static_value(v1.convert_to_tensor(decoder.batch_size))

    def of(element_shape: Any, dtype: Any) -> Any:
        shape = v1.TensorShape([None if rows is None else int(rows)]).concatenate(v1.TensorShape(element_shape))
        return v1.TensorArray(dtype, 0 if size is None else size, size is None, element_shape=shape)

    return v1.nest.map_structure(of, decoder.output_size, decoder.output_dtype)


def _unless(finished: Any, old: Any, new: Any) -> Any:
    """Returns the new values of sequences that continue, and the old values of others; a value without rows is new."""
    if isinstance(old, v1.TensorArray) or old.shape.ndims == 0:
        return new
    chosen = v1.where(finished, old, new)
    chosen.set_shape(new.shape)
    return chosen
