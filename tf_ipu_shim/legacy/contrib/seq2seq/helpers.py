"""Decoder helpers: choose the next input, from a given sequence or the decoder's own output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as v1


class Helper:
    """The interface that `BasicDecoder` requires: first inputs, samples of outputs, next inputs."""

    @property
    def batch_size(self) -> Any:
        """Sequences at a time, a scalar tensor."""
        raise NotImplementedError

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of one sample."""
        raise NotImplementedError

    @property
    def sample_ids_dtype(self) -> Any:
        """The dtype of the samples."""
        raise NotImplementedError

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Returns which sequences have ended before they begin, `[batch]`, and the first inputs."""
        raise NotImplementedError

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Returns the samples for the outputs of a step."""
        raise NotImplementedError

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Returns which sequences have ended, the next inputs and the next state."""
        raise NotImplementedError


class _Sampling(Helper):
    """Declares the type of the samples: a word's number by default."""

    _batch_size: Any = None
    _shape: Any = v1.TensorShape([])
    _dtype: Any = v1.int32

    @property
    def batch_size(self) -> Any:
        """Sequences at a time."""
        return self._batch_size

    @property
    def sample_ids_shape(self) -> Any:
        """The shape of one sample."""
        return self._shape

    @property
    def sample_ids_dtype(self) -> Any:
        """The dtype of the samples."""
        return self._dtype


class CustomHelper(_Sampling):
    """A helper of three functions.

    Args:
        initialize_fn: returns the same as `Helper.initialize`.
        sample_fn: accepts `time`, `outputs` and `state`, and returns the same as `Helper.sample`.
        next_inputs_fn: accepts `time`, `outputs`, `state` and `sample_ids`, and returns the same as
            `Helper.next_inputs`.
        sample_ids_shape: the shape of a sample; a scalar by default.
        sample_ids_dtype: the dtype of a sample; int32 by default.

    Source: `tensorflow.contrib.seq2seq.CustomHelper`.
    """

    def __init__(
        self,
        initialize_fn: Callable[[], tuple[Any, Any]],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., tuple[Any, Any, Any]],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._initialize, self._sample, self._next_inputs = initialize_fn, sample_fn, next_inputs_fn
        self._shape, self._dtype = v1.TensorShape(sample_ids_shape or []), sample_ids_dtype or v1.int32

    @property
    def batch_size(self) -> Any:
        """Sequences at a time, once it was initialised."""
        if self._batch_size is None:
            raise ValueError(
                "batch_size accessed before initialize was called; the helper needs it. Call initialize() first."
            )
        return self._batch_size

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Returns the result of the first function."""
        with v1.name_scope(name, "CustomHelperInitialize"):
            finished, inputs = self._initialize()
            if self._batch_size is None:
                self._batch_size = v1.size(finished)
            return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Returns the result of the second function."""
        with v1.name_scope(name, "CustomHelperSample"):
            return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Returns the result of the third function."""
        with v1.name_scope(name, "CustomHelperNextInputs"):
            return self._next_inputs(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class TrainingHelper(_Sampling):
    """Returns the entries of known sequences, independent of the outputs.

    Args:
        inputs: `[batch, time, ...]`, or several such.
        sequence_length: the length of each sequence, `[batch]`.
        time_major: whether inputs are `[time, batch, ...]`.
        name: the name of the ops.

    Raises:
        ValueError: `sequence_length` is not a vector.

    Source: `tensorflow.contrib.seq2seq.TrainingHelper`.
    """

    def __init__(self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None) -> None:
        with v1.name_scope(name, "TrainingHelper"):
            inputs = v1.nest.map_structure(v1.convert_to_tensor, inputs)
            self._inputs = inputs
            ordered = inputs if time_major else v1.nest.map_structure(_turned, inputs)
            self._input_tas = v1.nest.map_structure(_unstacked, ordered)
            self._sequence_length = v1.convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.shape.ndims != 1:
                raise ValueError(
                    f"Expected sequence_length to be a vector, but received shape: {self._sequence_length.shape}"
                    ". Pass a vector with a length for each sequence."
                )
            self._zero_inputs = v1.nest.map_structure(lambda part: v1.zeros_like(part[0]), ordered)
            self._batch_size = v1.size(self._sequence_length)

    @property
    def inputs(self) -> Any:
        """As they were given."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        """The length of each sequence."""
        return self._sequence_length

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Returns that sequences without entries have ended, and the first entries."""
        with v1.name_scope(name, "TrainingHelperInitialize"):
            finished = v1.equal(0, self._sequence_length)
            return finished, self._read_unless(v1.reduce_all(finished), 0)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **_: Any) -> Any:
        """Returns the likeliest word."""
        with v1.name_scope(name, "TrainingHelperSample"):
            return v1.argmax(outputs, -1, output_type=v1.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **_: Any
    ) -> tuple[Any, Any, Any]:
        """Returns the next entries; zeros when all sequences have ended."""
        with v1.name_scope(name, "TrainingHelperNextInputs"):
            finished = time + 1 >= self._sequence_length
            return finished, self._read_unless(v1.reduce_all(finished), time + 1), state

    def _read_unless(self, all_finished: Any, time: Any) -> Any:
        return v1.cond(
            all_finished,
            lambda: self._zero_inputs,
            lambda: v1.nest.map_structure(lambda array: array.read(time), self._input_tas),
        )


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Yields entries of known sequences, or at random samples of the outputs (Bengio et al., 2015).

    Args:
        inputs: `[batch, time, ...]`.
        sequence_length: the length of each sequence, `[batch]`.
        embedding: an embedding of words: a function from numbers, or the table of `tf.nn.embedding_lookup`.
        sampling_probability: how often a sequence receives its own sample, a scalar.
        time_major: whether inputs are `[time, batch, ...]`.
        seed: the seed of the samples.
        scheduling_seed: the seed of the choice.
        name: the name of the ops.

    Source: `tensorflow.contrib.seq2seq.ScheduledEmbeddingTrainingHelper`.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs, sequence_length, time_major, name)
        self._embedding_fn = _embedding_of(embedding)
        self._probability, self._seed, self._scheduling_seed = sampling_probability, seed, scheduling_seed

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **_: Any) -> Any:
        """Returns a drawn word for each sequence that receives one; -1 for others."""
        with v1.name_scope(name, "ScheduledEmbeddingTrainingHelperSample"):
            is_drawn = v1.random_uniform([self.batch_size], seed=self._scheduling_seed) < self._probability
            return v1.where(is_drawn, _drawn(outputs, self._seed), v1.fill([self.batch_size], -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None, **_: Any
    ) -> tuple[Any, Any, Any]:
        """Returns the words that were drawn, and the next entries for other sequences."""
        with v1.name_scope(name, "ScheduledEmbeddingTrainingHelperNextInputs"):
            finished, target_inputs, state = super().next_inputs(time, outputs, state)
            embedded = self._embedding_fn(v1.maximum(sample_ids, 0))
            return finished, v1.where(sample_ids > -1, embedded, target_inputs), state


class GreedyEmbeddingHelper(_Sampling):
    """Feeds the likeliest word of the previous step.

    Args:
        embedding: an embedding of words: a function from numbers, or the table of `tf.nn.embedding_lookup`.
        start_tokens: the words that sequences begin with, `[batch]`.
        end_token: the word that ends them.

    Raises:
        ValueError: the start tokens are not a vector, or the end token is not a scalar.

    Source: `tensorflow.contrib.seq2seq.GreedyEmbeddingHelper`.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any) -> None:
        self._embedding_fn = _embedding_of(embedding)
        self._start_tokens = v1.convert_to_tensor(start_tokens, v1.int32, name="start_tokens")
        self._end_token = v1.convert_to_tensor(end_token, v1.int32, name="end_token")
        if self._start_tokens.shape.ndims != 1:
            raise ValueError(f"start_tokens must be a vector; its shape is {self._start_tokens.shape}. Pass a vector.")
        if self._end_token.shape.ndims != 0:
            raise ValueError(f"end_token must be a scalar; its shape is {self._end_token.shape}. Pass a scalar.")
        self._batch_size = v1.size(self._start_tokens)
        self._start_inputs = self._embedding_fn(self._start_tokens)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """No sequence has ended; the words that they begin with."""
        return v1.zeros_like(self._start_tokens, v1.bool), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """Returns the likeliest word."""
        return v1.argmax(_one(outputs), -1, output_type=v1.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Returns the words; the first words of sequences once all have ended."""
        finished = v1.equal(sample_ids, self._end_token)
        inputs = v1.cond(v1.reduce_all(finished), lambda: self._start_inputs, lambda: self._embedding_fn(sample_ids))
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Feeds a word drawn from the outputs of the previous step.

    Args:
        embedding: an embedding of words: a function from numbers, or the table of `tf.nn.embedding_lookup`.
        start_tokens: the words that sequences begin with, `[batch]`.
        end_token: the word that ends them.
        softmax_temperature: the divisor of outputs.
        seed: the seed of the samples.

    Source: `tensorflow.contrib.seq2seq.SampleEmbeddingHelper`.
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """Returns a drawn word."""
        outputs = _one(outputs)
        return _drawn(outputs if self._temperature is None else outputs / self._temperature, self._seed)


class InferenceHelper(_Sampling):
    """Yields inputs that a function computes from the samples.

    Args:
        sample_fn: a function from outputs to samples.
        sample_shape: the shape of a sample.
        sample_dtype: the dtype of a sample.
        start_inputs: the first inputs of sequences.
        end_fn: a function from samples to whether sequences have ended, `[batch]`.
        next_inputs_fn: a function from samples to the next inputs; the samples themselves by default.

    Source: `tensorflow.contrib.seq2seq.InferenceHelper`.
    """

    def __init__(
        self,
        sample_fn: Callable[[Any], Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[[Any], Any],
        next_inputs_fn: Callable[[Any], Any] | None = None,
    ) -> None:
        self._sample, self._end, self._next = sample_fn, end_fn, next_inputs_fn or v1.identity
        self._shape, self._dtype = v1.TensorShape(sample_shape), sample_dtype
        self._start_inputs = v1.convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = v1.shape(self._start_inputs)[0]

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """Returns that no sequence has ended, and the first inputs."""
        return v1.zeros([self._batch_size], v1.bool), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """Returns the function's result for some outputs."""
        return self._sample(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """Returns which sequences have ended by their samples, and the next inputs."""
        return self._end(sample_ids), self._next(sample_ids), state


def _embedding_of(embedding: Any) -> Callable[[Any], Any]:
    return embedding if callable(embedding) else lambda ids: v1.nn.embedding_lookup(embedding, ids)


def _one(outputs: Any) -> Any:
    if isinstance(outputs, v1.Tensor):
        return outputs
    raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs).__name__}. Return one tensor.")


def _drawn(logits: Any, seed: int | None) -> Any:
    return v1.squeeze(v1.random.categorical(logits, 1, seed=seed, dtype=v1.int32), [1])


def _turned(part: Any) -> Any:
    """From `[batch, time, ...]` to `[time, batch, ...]`."""
    return v1.transpose(part, [1, 0, *range(2, part.shape.ndims)])


def _unstacked(part: Any) -> Any:
    array = v1.TensorArray(part.dtype, size=v1.shape(part)[0], element_shape=part.shape[1:])
    return array.unstack(part)
