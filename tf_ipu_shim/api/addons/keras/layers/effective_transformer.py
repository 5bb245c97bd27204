"""Multi-head attention over padded sequences, packed to skip the padding."""

from __future__ import annotations

import math
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.api.addons.keras.layers.dropout import Dropout
from tf_ipu_shim.api.addons.keras.layers.normalization import LayerNormalization

_keras: Any = keras2.public_module()


class EffectiveTransformer(_keras.layers.Layer):  # type: ignore[misc]
    """Attends from sequences of numbers to others (https://arxiv.org/abs/1706.03762), and maps each to one output row.

    Queries, keys and values of padding are 0. A softmax over scores (matmuls of queries and keys) weighs the values;
    padding is included with a score of 0. One dense layer combines the outputs of all heads for a sequence. Values and
    variables match Graphcore's published layer. That layer leaves the last sequences of a batch at 0; here they are
    computed.

    Args:
        output_layer_size: size of an output row.
        max_batch_size: most rows that are worked on at a time; `sequences_per_iter` rows never need more.
        use_scale: multiplies the scores by a variable.
        num_attention_heads: heads.
        attention_head_size: size of a head's queries, keys and values.
        sequences_per_iter: sequences that are worked on at a time; fewer need less memory, and more steps.
        qkv_activation: the activation of queries, keys and values.
        attention_dropout_prob: the share of the softmax's results that is dropped while training. None: nothing.
        output_activation: the activation of the dense layer's output.
        output_dropout_prob: the share of the output that is dropped while training. None: nothing.
        layer_norm_output: normalises the output rows.
        embedding_initializer: the initializer of the kernels of queries, keys and values, `[1, heads * head size]`
            each.
        embedding_bias_initializer: the initializer of their biases.
        output_initializer: the initializer of the dense layer's kernel, `[length * heads * head size,
            output_layer_size]`.
        output_bias_initializer: the initializer of its bias.
        **kwargs: keyword arguments of a Keras layer.

    Raises:
        ValueError: `sequences_per_iter` is above `max_batch_size`; when called, if the inputs do not fit together.

    Source: `ipu_tensorflow_addons.keras.layers.EffectiveTransformer`.

    Example:
        >>> sequences, lengths = tf.constant([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]]), tf.constant([2, 1])
        >>> layer = EffectiveTransformer(4, max_batch_size=2, num_attention_heads=2, attention_head_size=8)
        >>> output, context = layer([sequences, lengths, sequences, lengths])
        >>> output.shape, context.shape
        (TensorShape([2, 4]), TensorShape([2, 3, 2, 8]))
    """

    def __init__(
        self,
        output_layer_size: int,
        max_batch_size: int,
        use_scale: bool = False,
        num_attention_heads: int = 1,
        attention_head_size: int = 1,
        sequences_per_iter: int = 1,
        qkv_activation: Any = None,
        attention_dropout_prob: float | None = None,
        output_activation: Any = None,
        output_dropout_prob: float | None = None,
        layer_norm_output: bool = True,
        embedding_initializer: Any = "glorot_uniform",
        embedding_bias_initializer: Any = "zeros",
        output_initializer: Any = "glorot_uniform",
        output_bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if sequences_per_iter > max_batch_size:
            raise ValueError(
                f"max_batch_size must be greater than sequences_per_iter, or equal: {max_batch_size} is below "
                f"{sequences_per_iter}. Pass a smaller sequences_per_iter."
            )
        self.output_layer_size = output_layer_size
        self.max_batch_size = max_batch_size
        self.use_scale = use_scale
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = attention_head_size
        self.sequences_per_iter = sequences_per_iter
        self.qkv_activation = _keras.activations.get(qkv_activation)
        self.attention_dropout_prob = attention_dropout_prob
        self.output_activation = _keras.activations.get(output_activation)
        self.output_dropout_prob = output_dropout_prob
        self.layer_norm_output = layer_norm_output
        self.embedding_initializer = _keras.initializers.get(embedding_initializer)
        self.embedding_bias_initializer = _keras.initializers.get(embedding_bias_initializer)
        self.output_initializer = _keras.initializers.get(output_initializer)
        self.output_bias_initializer = _keras.initializers.get(output_bias_initializer)

    def build(self, input_shapes: Any) -> None:
        """Makes the variables.

        Args:
            input_shapes: the shapes of the inputs of `call`.

        Raises:
            ValueError: there are not four or five.
        """
        _check_number("be built with", input_shapes)
        self.scale = self.add_weight("scale", shape=[1], initializer="ones") if self.use_scale else None
        self.query_layer, self.key_layer, self.value_layer = (
            self._dense(name, self.num_attention_heads * self.attention_head_size, self.qkv_activation, "embedding", 1)
            for name in ("query_layer", "key_layer", "value_layer")
        )
        flat = tf.TensorShape(input_shapes[0])[1] * self.num_attention_heads * self.attention_head_size
        size = self.output_layer_size
        self.output_layer = self._dense("output_layer", size, self.output_activation, "output", flat)
        self.normalization = LayerNormalization(dtype=self.dtype) if self.layer_norm_output else None
        if self.normalization is not None:
            self.normalization.build([None, size])
        self.attention_dropout = self._dropout(self.attention_dropout_prob)
        self.output_dropout = self._dropout(self.output_dropout_prob)
        super().build(input_shapes)

    def _dense(self, name: str, units: int, activation: Any, kind: str, inputs: int) -> Any:
        layer = _keras.layers.Dense(
            units,
            activation,
            kernel_initializer=_copied(getattr(self, f"{kind}_initializer")),
            bias_initializer=_copied(getattr(self, f"{kind}_bias_initializer")),
            name=name,
            dtype=self.dtype_policy,
        )
        with tf.name_scope(name):
            layer.build([None, inputs])
        return layer

    def _dropout(self, rate: float | None) -> Any:
        return None if rate is None else Dropout(rate, dtype=self.dtype_policy)

    def call(self, inputs: Any, training: Any = True) -> tuple[tf.Tensor, tf.Tensor]:
        """Attends.

        Args:
            inputs: sequences to attend from `[sequences, from length]` and their lengths `[sequences]` or
                `[sequences, 1]`. Then the same for the sequences to attend to. Optionally the heads that count,
                `[sequences, heads]` of bool.
            training: whether the dropouts drop.

        Returns:
            The output rows, `[sequences, output_layer_size]`, and the result of each head for each place, `[sequences,
            from length, heads, head size]`.

        Raises:
            ValueError: the inputs are not four or five, or do not fit together.
        """
        _check_number("take", inputs)
        inputs = [tf.convert_to_tensor(tensor) for tensor in inputs]
        self._check(*inputs)
        from_sequences, from_lengths, to_sequences, to_lengths, *masks = inputs
        pieces = [
            tf.cast(from_sequences, self.compute_dtype),
            tf.reshape(from_lengths, [-1]),
            tf.cast(to_sequences, self.compute_dtype),
            tf.reshape(to_lengths, [-1]),
            *(tf.cast(mask, self.compute_dtype) for mask in masks),
        ]
        context = self._in_chunks(pieces, training)
        output = self.output_layer(tf.reshape(context, [-1, math.prod(context.shape[1:])]))
        if self.output_dropout is not None:
            output = self.output_dropout(output, training=training)
        if self.normalization is not None:
            output = self.normalization(output)
        return output, context

    def _in_chunks(self, pieces: list[tf.Tensor], training: Any) -> tf.Tensor:
        """Attends for `sequences_per_iter` sequences at a time; sequences of length 0 fill the last step."""
        count, at_a_time = pieces[0].shape[0], self.sequences_per_iter
        if count is not None and count <= at_a_time:
            return self._attend(pieces, training)
        count = tf.shape(pieces[0])[0] if count is None else count
        missing = -count % at_a_time
        chunks = []
        for piece in pieces:
            rest = piece.shape[1:]
            padded = tf.pad(piece, [[0, missing], *([[0, 0]] * len(rest))])
            chunks.append(tf.reshape(padded, [-1, at_a_time, *rest]))
        signature = tf.TensorSpec(
            [at_a_time, pieces[0].shape[1], self.num_attention_heads, self.attention_head_size], self.compute_dtype
        )
        contexts = tf.map_fn(lambda chunk: self._attend(chunk, training), chunks, fn_output_signature=signature)
        return tf.reshape(contexts, [-1, *signature.shape[1:]])[:count]

    def _attend(self, pieces: Any, training: Any) -> tf.Tensor:
        """The output of each head for each position of some sequences, `[sequences, from length, heads, head size]`."""
        from_sequences, from_lengths, to_sequences, to_lengths, *masks = pieces
        queries = self._heads(self.query_layer, from_sequences, from_lengths)
        keys = self._heads(self.key_layer, to_sequences, to_lengths)
        values = self._heads(self.value_layer, to_sequences, to_lengths)
        scores = tf.matmul(queries, keys, transpose_b=True)
        weights = tf.nn.softmax(scores if self.scale is None else scores * self.scale)
        if self.attention_dropout is not None:
            weights = self.attention_dropout(weights, training=training)
        context = tf.matmul(weights, values)
        for mask in masks:
            context *= mask[:, :, tf.newaxis, tf.newaxis]
        return tf.transpose(context, [0, 2, 1, 3])

    def _heads(self, layer: Any, sequences: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        """Queries, keys or values, `[sequences, heads, length, head size]`; padding is 0."""
        length = sequences.shape[1]
        mask = tf.sequence_mask(lengths, length, sequences.dtype)[:, :, tf.newaxis]
        embedded = layer(sequences[:, :, tf.newaxis]) * mask
        heads = tf.reshape(embedded, [-1, length, self.num_attention_heads, self.attention_head_size])
        return tf.transpose(heads, [0, 2, 1, 3])

    def _check(
        self, from_sequences: Any, from_lengths: Any, to_sequences: Any, to_lengths: Any, mask: Any = None
    ) -> None:
        """Checks that the inputs match, as far as their shapes are known."""
        shapes = f"{from_sequences.shape} and {to_sequences.shape}"
        if len(from_sequences.shape) != len(to_sequences.shape):
            raise ValueError(
                f"from_sequences and to_sequences must be equal rank, and have the shapes {shapes}. Reshape one "
                "of them."
            )
        count = from_sequences.shape[:1]
        if not count.is_compatible_with(to_sequences.shape[:1]):
            raise ValueError(
                f"from_sequences and to_sequences must contain an equal number of sequences, and are {shapes}. Pass "
                "equally many sequences to both."
            )
        if not (from_lengths.shape[:1].is_compatible_with(count) and from_lengths.shape == to_lengths.shape):
            raise ValueError(
                "from_sequence_lengths and to_sequence_lengths must have lengths equal to the number of sequences "
                f"provided: they have the shapes {from_lengths.shape} and {to_lengths.shape}, the sequences {shapes}."
                " Pass one length for each sequence."
            )
        if from_sequences.dtype != to_sequences.dtype:
            raise ValueError(
                "from_sequences and to_sequences must be equal types, and are "
                f"{from_sequences.dtype.name} and {to_sequences.dtype.name}. Cast one of them with tf.cast."
            )
        if mask is not None and not mask.shape.is_compatible_with([*count, self.num_attention_heads]):
            raise ValueError(
                f"q_mask must have shape [num_sequences, num_attention_heads], "
                f"{[*count, self.num_attention_heads]} here, and has {mask.shape}. Pass a q_mask of that shape."
            )
        if len(from_sequences.shape) != 2 or from_lengths.shape[1:].num_elements() != 1:
            raise ValueError(
                "Sequences must be rows of numbers, [num_sequences, length], and their lengths "
                f"[num_sequences] or [num_sequences, 1]: they have the shapes {shapes}, the lengths "
                f"{from_lengths.shape}. Use keras.layers.MultiHeadAttention for sequences of vectors."
            )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "output_layer_size",
            "max_batch_size",
            "use_scale",
            "num_attention_heads",
            "attention_head_size",
            "sequences_per_iter",
            "attention_dropout_prob",
            "output_dropout_prob",
            "layer_norm_output",
        ):
            config[name] = getattr(self, name)
        for name in ("qkv_activation", "output_activation"):
            config[name] = _keras.activations.serialize(getattr(self, name))
        for kind in ("embedding", "embedding_bias", "output", "output_bias"):
            config[f"{kind}_initializer"] = _keras.initializers.serialize(getattr(self, f"{kind}_initializer"))
        return config


def _copied(initializer: Any) -> Any:
    """Returns a separate copy of an initializer: an initializer that is used twice returns the same values twice."""
    return _keras.initializers.get(_keras.initializers.serialize(initializer))


def _check_number(verb: str, inputs: Any) -> None:
    if len(inputs) not in (4, 5):
        raise ValueError(
            f"EffectiveTransformer must {verb} either four or five inputs, sequences and lengths to attend from and to "
            f"and perhaps a q_mask, and got {len(inputs)}. Pass four or five inputs."
        )
