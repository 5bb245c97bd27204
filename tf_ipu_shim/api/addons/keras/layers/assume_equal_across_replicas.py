"""Keras layer that marks a tensor as equal on all replicas."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import keras2
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops


class AssumeEqualAcrossReplicas(keras2.public_module().layers.Layer):  # type: ignore[misc]
    """Returns its inputs, marked as equal on all replicas.

    Poplar's compiler needs the promise to place control flow that depends on the tensor; nothing here does.

    Args:
        inplace: whether the IPU may reuse the tensor's memory; no effect.
        **kwargs: keyword arguments of a Keras layer.

    Source: `ipu_tensorflow_addons.keras.layers.AssumeEqualAcrossReplicas`.

    Example:
        >>> AssumeEqualAcrossReplicas()(tf.constant([1.0, 2.0])).numpy().tolist()
        [1.0, 2.0]
    """

    def __init__(self, inplace: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        note_arguments("AssumeEqualAcrossReplicas", inplace=inplace)
        self.inplace = inplace

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Returns the inputs.

        Args:
            inputs: a tensor, or tensors in any structure.
            **kwargs: accepted, because Keras may pass `training` or `mask`; the result does not depend on them.

        Returns:
            The same structure.
        """
        return cross_replica_ops.assume_equal_across_replicas(inputs, self.inplace)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "inplace": self.inplace}
