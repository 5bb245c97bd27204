"""`tensorflow.python.ipu.keras_extensions`: the part of a strategy that registers extensions of Keras classes."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.strategies import delegation


class KerasExtensions:
    """The part of a strategy that handles datasets and Keras models made in its scope.

    Args:
        enable_dataset_iterators: whether `iter(dataset)` in the scope returns an `IPUIterator`.
        enable_keras_extensions: whether Keras models made in the scope gain the IPU's methods.

    Source: `tensorflow.python.ipu.keras_extensions.KerasExtensions`.

    Example:
        >>> KerasExtensions(enable_dataset_iterators=False)._enable_dataset_iterators
        False
    """

    def __init__(self, enable_dataset_iterators: bool = True, enable_keras_extensions: bool = True) -> None:
        self._enable_dataset_iterators = enable_dataset_iterators
        self._enable_keras_extensions = enable_keras_extensions

    def _register_keras_extension(self, class_type: Any, keras_extension_base: Any, extension: Any = None) -> None:
        """Adds an extension to objects of a Keras class made in the scope; up to SDK 2.5 the base is not given."""
        if extension is None:
            keras_extension_base, extension = delegation.KerasExtension, keras_extension_base
        delegation.register_extension(self, class_type, keras_extension_base, extension)

    def _delete_keras_extension(self, class_type: Any, keras_extension_base: Any = delegation.KerasExtension) -> None:
        """Undoes `_register_keras_extension`: models get the IPU's extension again."""
        delegation.delete_extension(self, class_type, keras_extension_base)
