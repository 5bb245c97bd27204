"""Attention mechanisms: score each memory entry against a query."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow.compat.v1 as v1


class AttentionMechanism:
    """An object with `alignments_size` and `state_size` that is called with a query and its state."""

    @property
    def alignments_size(self) -> Any:
        """Entries of the memory."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the state."""
        raise NotImplementedError


class MemoryAttention(AttentionMechanism):
    """Attention over a memory that is known when the graph is built.

    Args:
        memory: `[batch, time, depth]`.
        lengths: the length of each row's entries, `[batch]`: later entries are 0 and get no attention; None for all.
        query_layer: the layer for queries; None for none.
        memory_layer: the layer that makes keys of the memory; None for none.
        probability_fn: a function from scores to alignments; softmax by default.
        score_mask_value: the score of entries behind a row's end; minus infinity by default.
        custom_key_value_fn: a function from keys and values to the used ones; None for the same.

    Attributes:
        keys: `[batch, time, units]`.
        values: `[batch, time, depth]`.
    """

    def __init__(
        self,
        memory: Any,
        lengths: Any,
        query_layer: Any,
        memory_layer: Any,
        probability_fn: Callable[[Any], Any] | None,
        score_mask_value: Any,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None,
    ) -> None:
        self.query_layer, self.memory_layer = query_layer, memory_layer
        self._lengths, self._probability = lengths, probability_fn or v1.nn.softmax
        self.values = _within(memory, lengths)
        self.keys = self.values if memory_layer is None else memory_layer(self.values)
        if custom_key_value_fn is not None:
            self.keys, self.values = custom_key_value_fn(self.keys, self.values)
        self._masked = self.keys.dtype.as_numpy_dtype(-math.inf if score_mask_value is None else score_mask_value)

    @property
    def batch_size(self) -> Any:
        """Rows of the memory: a number if it is known, else a tensor."""
        return _size(self.keys, 0)

    @property
    def alignments_size(self) -> Any:
        """Entries of the memory."""
        return _size(self.keys, 1)

    @property
    def state_size(self) -> Any:
        """The state is the alignments of the step before."""
        return self.alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros for all entries, `[batch, time]`."""
        return v1.zeros([batch_size, self.alignments_size], dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """Returns the initial state."""
        return self.initial_alignments(batch_size, dtype)

    def _aligned(self, scores: Any) -> tuple[Any, Any]:
        """Alignments and the next state, of scores `[batch, time]`."""
        if self._lengths is not None:
            is_inside = v1.sequence_mask(self._lengths, v1.shape(scores)[1])
            scores = v1.where(is_inside, scores, v1.fill(v1.shape(scores), v1.constant(self._masked)))
        alignments = self._probability(scores)
        return alignments, alignments


class LuongAttention(MemoryAttention):
    """Scores are dot products of the query and the keys (Luong et al., 2015), optionally times a learnt number.

    Args:
        num_units: the size of a key, and of a query.
        memory: `[batch, time, depth]`.
        memory_sequence_length: the length of each row, `[batch]`; None for all of it.
        scale: whether scores are multiplied by a variable.
        probability_fn: a function from scores to alignments; softmax by default.
        score_mask_value: the score of entries behind a row's end.
        dtype: the dtype of the layer that makes keys.
        custom_key_value_fn: a function from keys and values to the used ones.
        name: no effect, as in TensorFlow 1.15.

    Source: `tensorflow.contrib.seq2seq.LuongAttention`.

    Example:
        >>> LuongAttention(4, v1.ones([2, 5, 3])).alignments_size
        5
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str = "LuongAttention",
    ) -> None:
        layer = _layer(num_units, "memory_layer", dtype)
        super().__init__(
            memory, memory_sequence_length, None, layer, probability_fn, score_mask_value, custom_key_value_fn
        )
        self._scale = scale

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Alignments of a query `[batch, units]`, `[batch, time]`, and the next state."""
        units, depth = self.keys.shape[-1], query.shape[-1]
        if units != depth:
            raise ValueError(
                f"Incompatible or unknown inner dimensions between query and keys: the query has {depth} units and the "
                f"keys have {units}. Both must be equal: set num_units to the keys' dimension ({units})."
            )
        with v1.variable_scope(None, "luong_attention", [query]):
            scores = v1.squeeze(v1.matmul(v1.expand_dims(query, 1), self.keys, transpose_b=True), [1])
            if self._scale:
                scores *= v1.get_variable("attention_g", [], query.dtype, v1.ones_initializer())
            return self._aligned(scores)


class BahdanauAttention(MemoryAttention):
    """Scores are learnt sums of the hyperbolic tangent of query and key (Bahdanau et al., 2015), on request normalised.

    Args:
        num_units: the size of a key, and of the projected query.
        memory: `[batch, time, depth]`.
        memory_sequence_length: the length of each row, `[batch]`; None for all of it.
        normalize: whether the weights of the sum have their own norm, and the sum an offset (Salimans and
            Kingma, 2016).
        probability_fn: a function from scores to alignments; softmax by default.
        score_mask_value: the score of entries behind a row's end.
        dtype: the dtype of the layers of queries and keys.
        custom_key_value_fn: a function from keys and values to the used ones.
        name: no effect, as in TensorFlow 1.15.

    Source: `tensorflow.contrib.seq2seq.BahdanauAttention`.

    Example:
        >>> BahdanauAttention(4, v1.ones([2, 5, 3])).batch_size
        2
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[[Any, Any], tuple[Any, Any]] | None = None,
        name: str = "BahdanauAttention",
    ) -> None:
        query, key = (_layer(num_units, name, dtype) for name in ("query_layer", "memory_layer"))
        super().__init__(
            memory, memory_sequence_length, query, key, probability_fn, score_mask_value, custom_key_value_fn
        )
        self._num_units, self._normalize = num_units, normalize

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Alignments of a query `[batch, depth]`, `[batch, time]`, and the next state."""
        with v1.variable_scope(None, "bahdanau_attention", [query]):
            summed = self.keys + v1.expand_dims(self.query_layer(query), 1)
            weights = v1.get_variable("attention_v", [self._num_units], query.dtype)
            if self._normalize:
                start = v1.constant_initializer(math.sqrt(1 / self._num_units))
                norm = v1.get_variable("attention_g", [], query.dtype, start)
                weights = weights * norm * v1.rsqrt(v1.reduce_sum(v1.square(weights)))
                summed += v1.get_variable("attention_b", [self._num_units], query.dtype, v1.zeros_initializer())
            return self._aligned(v1.reduce_sum(weights * v1.tanh(summed), [2]))


def hardmax(logits: Any, name: str | None = None) -> Any:
    """One for the largest of each row, zero for the others.

    Args:
        logits: `[..., n]`.
        name: the name of the op.

    Source: `tensorflow.contrib.seq2seq.hardmax`.

    Example:
        >>> hardmax(v1.constant([[1.0, 3.0, 2.0]])).numpy()
        array([[0., 1., 0.]], dtype=float32)
    """
    with v1.name_scope(name, "Hardmax", [logits]):
        logits = v1.convert_to_tensor(logits)
        depth = logits.shape[-1] if logits.shape[-1] is not None else v1.shape(logits)[-1]
        return v1.one_hot(v1.argmax(logits, -1), depth, dtype=logits.dtype)


def _layer(units: int, name: str, dtype: Any) -> Any:
    return v1.layers.Dense(units, name=name, use_bias=False, dtype=dtype)


def _within(memory: Any, lengths: Any) -> Any:
    """Returns a memory with zeros behind each row's end."""
    memory = v1.convert_to_tensor(memory)
    if lengths is None:
        return memory
    mask = v1.sequence_mask(lengths, v1.shape(memory)[1], memory.dtype)
    return memory * v1.reshape(mask, v1.concat([v1.shape(mask), [1] * (memory.shape.ndims - 2)], 0))


def _size(tensor: Any, axis: int) -> Any:
    static = tensor.shape[axis]
    size = getattr(static, "value", static)
    return v1.shape(tensor)[axis] if size is None else int(size)
