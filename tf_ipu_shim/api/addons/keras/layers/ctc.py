"""Connectionist temporal classification as Keras layers. Scores are time-major: `[max_time, batch, classes]`."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.frontend.ops import nn_ops

_Layer: Any = keras2.public_module().layers.Layer


class CTCLoss(_Layer):  # type: ignore[misc]
    """The CTC loss, as a layer because it needs the lengths too.

    Args:
        blank_index: the class of the blank.
        from_logits: whether the data are unnormalised scores; else logarithms of probabilities.
        **kwargs: keyword arguments of a Keras layer.

    Source: `ipu_tensorflow_addons.keras.layers.CTCLoss`.

    Example:
        >>> labels, logits = tf.constant([[1]]), tf.zeros([2, 1, 3])  # one sample of two time steps, three classes
        >>> loss = CTCLoss(from_logits=True)(labels, logits, [1], [2])
        >>> round(float(tf.exp(-loss)[0]), 4)  # three of nine paths give the label: 11, 10 and 01
        0.3333
    """

    @argument_order(2, "name", until=(2, 3))
    def __init__(self, blank_index: int = 0, from_logits: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.blank_index = blank_index
        self.from_logits = from_logits

    def call(self, labels: Any, data: Any, label_length: Any, data_length: Any, **kwargs: Any) -> Any:
        """Returns the loss of each sample.

        Args:
            labels: `[batch, max_label_length]` integers.
            data: `[max_time, batch, classes]`.
            label_length: `[batch]`.
            data_length: `[batch]`.
            **kwargs: accepted, because Keras may pass `training` or `mask`; the result does not depend on them.

        Returns:
            `[batch]`.
        """
        function = nn_ops.ctc_loss_v2 if self.from_logits else nn_ops.ctc_loss_with_log_probs
        return function(labels, data, label_length, data_length, self.blank_index)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "blank_index": self.blank_index, "from_logits": self.from_logits}


class CTCInferenceLayer(_Layer):  # type: ignore[misc]
    """Finds likely labels with a beam search.

    Args:
        blank_index: the class of the blank.
        beam_width: how many prefixes are kept from step to step.
        top_paths: how many label sequences are returned.
        from_logits: whether the data are unnormalised scores; else logarithms of probabilities.
        **kwargs: keyword arguments of a Keras layer.

    Source: `ipu_tensorflow_addons.keras.layers.CTCInferenceLayer`.

    Example:
        >>> logits = tf.constant([[[0.0, 5.0, 0.0]], [[0.0, 0.0, 5.0]]])  # one sample: class 1, then 2
        >>> probabilities, lengths, labels = CTCInferenceLayer(from_logits=True)(logits, [2])
        >>> labels.numpy().tolist()
        [[[1, 2]]]
    """

    @argument_order(4, "name", until=(2, 3))
    def __init__(
        self,
        blank_index: int = 0,
        beam_width: int = 100,
        top_paths: int = 1,
        from_logits: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.blank_index = blank_index
        self.beam_width = beam_width
        self.top_paths = top_paths
        self.from_logits = from_logits

    def call(self, data: Any, data_length: Any, **kwargs: Any) -> Any:
        """Decodes.

        Args:
            data: `[max_time, batch, classes]`.
            data_length: `[batch]`.
            **kwargs: accepted, because Keras may pass `training` or `mask`; the result does not depend on them.

        Returns:
            Logarithms of probabilities and lengths, `[batch, top_paths]`, and labels
            `[batch, top_paths, max_time]`.
        """
        return self._decode(data, data_length)

    def _decode(self, data: Any, data_length: Any) -> tuple[Any, Any, Any]:
        function = nn_ops.ctc_beam_search_decoder if self.from_logits else nn_ops.ctc_beam_search_decoder_with_log_probs
        return function(data, data_length, self.beam_width, self.top_paths, self.blank_index)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "blank_index": self.blank_index,
            "beam_width": self.beam_width,
            "top_paths": self.top_paths,
            "from_logits": self.from_logits,
        }


class CTCPredictionsLayer(CTCInferenceLayer):
    """Returns only the most likely labels, padded with blanks.

    Args: see `CTCInferenceLayer`.

    Source: `ipu_tensorflow_addons.keras.layers.CTCPredictionsLayer`.

    Example:
        >>> logits = tf.constant([[[0.0, 5.0, 0.0]], [[5.0, 0.0, 0.0]]])  # one sample: class 1, then blank
        >>> CTCPredictionsLayer(from_logits=True)(logits, [2]).numpy().tolist()
        [[1, 0]]
    """

    def call(self, data: Any, data_length: Any, **kwargs: Any) -> Any:
        """Decodes.

        Args:
            data: `[max_time, batch, classes]`.
            data_length: `[batch]`.
            **kwargs: accepted, because Keras may pass `training` or `mask`; the result does not depend on them.

        Returns:
            `[batch, max_time]` integers.
        """
        probabilities, _, labels = self._decode(data, data_length)
        return self._select_most_likely_path(probabilities, labels)

    @staticmethod
    def _select_most_likely_path(probabilities: Any, labels: Any, *_: Any) -> Any:
        """Returns the labels of each sample's best path; Graphcore's further arguments follow from the shapes."""
        best = tf.argmax(probabilities, axis=1, output_type=tf.int32)
        return tf.gather(labels, best, axis=1, batch_dims=1)
