"""Keras layer that marks a recomputation checkpoint inside a pipeline stage."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.pipelines.options import recomputation_checkpoint


class RecomputationCheckpoint(keras2.public_module().layers.Layer):  # type: ignore[misc]
    """Returns its inputs: a checkpoint of a pipeline stage whose activations are recomputed.

    Its inputs are kept for the backward pass, which recomputes the stage in parts. That needs less memory, and the
    values are the same.

    Source: `ipu_tensorflow_addons.keras.layers.RecomputationCheckpoint`.

    Example:
        >>> RecomputationCheckpoint()(tf.constant([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]
    """

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Returns the inputs.

        Args:
            inputs: tensors in any structure.
            **kwargs: accepted, because Keras may pass `training` or `mask`; the result does not depend on them.

        Returns:
            The same structure.
        """
        return recomputation_checkpoint(inputs)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return dict(super().get_config())
