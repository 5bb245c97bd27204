"""Lookup tables of `tensorflow.contrib.lookup` whose arguments differ in `tf.lookup`.

Checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim.tf_private.operations import lookup_ops


class HashTable(lookup_ops.StaticHashTableV1):  # type: ignore[misc]
    """A table that an initializer fills once.

    Args:
        initializer: such as a `KeyValueTensorInitializer`.
        default_value: the value of missing keys.
        shared_name: sessions that share a server share tables of one name.
        name: the name of the operation.

    Source: `tensorflow.contrib.lookup.lookup_ops.HashTable`.

    Example:
        >>> with tf.Graph().as_default():
        ...     table = HashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
        ...     table.lookup(tf.constant(["a", "b"])).dtype
        tf.int32
    """

    _shared_name: Any

    def __init__(self, initializer: Any, default_value: Any, shared_name: Any = None, name: Any = None) -> None:
        self._wanted_name = shared_name
        super().__init__(initializer, default_value, name)

    def _create_resource(self) -> Any:
        self._shared_name = self._wanted_name or self._shared_name
        return super()._create_resource()

    @property
    def init(self) -> Any:
        """The name of `initializer` before TensorFlow 1.14."""
        return self.initializer


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = lookup_ops.FastHashSpec,
    dtype: Any = v1.string,
    name: str | None = None,
) -> Any:
    """Returns a table from strings to their places in a list.

    Args:
        mapping: the strings.
        num_oov_buckets: how many ids other strings share, by their hash.
        default_value: the id of other strings, if `num_oov_buckets` is 0.
        hasher_spec: the hash.
        dtype: the dtype of the keys.
        name: the name of the operation.

    Source: `tensorflow.contrib.lookup.lookup_ops.index_table_from_tensor`.

    Example:
        >>> with tf.Graph().as_default():
        ...     index_table_from_tensor(mapping=["a", "b"]).key_dtype
        tf.string
    """
    return lookup_ops.index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, dtype, name)


def index_to_string_table_from_tensor(mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """Returns a table from places in a list to its strings.

    Args:
        mapping: the strings.
        default_value: the string of other ids.
        name: the name of the operation.

    Source: `tensorflow.contrib.lookup.lookup_ops.index_to_string_table_from_tensor`.

    Example:
        >>> with tf.Graph().as_default():
        ...     index_to_string_table_from_tensor(mapping=["a", "b"]).key_dtype
        tf.int64
    """
    return lookup_ops.index_to_string_table_from_tensor(mapping, default_value, name)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """Places of strings in a list. `tf.compat.v1.tables_initializer` fills its table.

    Args:
        tensor: strings.
        mapping: the list.
        default_value: the value of keys that the table does not have.
        name: the name of the operation.

    Source: `tensorflow.contrib.lookup.lookup_ops.string_to_index`.

    Example:
        >>> with tf.Graph().as_default():
        ...     string_to_index(tf.constant(["b"]), ["a", "b"]).dtype
        tf.int64
    """
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """Strings at places in a list. `tf.compat.v1.tables_initializer` fills its table.

    Args:
        tensor: places, as `tf.int64`.
        mapping: the list.
        default_value: the value of missing elements.
        name: the name of the operation.

    Source: `tensorflow.contrib.lookup.lookup_ops.index_to_string`.

    Example:
        >>> with tf.Graph().as_default():
        ...     index_to_string(tf.constant([1], tf.int64), ["a", "b"]).dtype
        tf.string
    """
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: Any = None,
    default_value: int = -1,
    hasher_spec: Any = lookup_ops.FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_file` for strings, under an older name.

    Args: as there.

    Source: `tensorflow.contrib.lookup.lookup_ops.string_to_index_table_from_file`.

    Example:
        >>> table = string_to_index_table_from_file  # of a file with a string on each line
    """
    return lookup_ops.index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, v1.string, name
    )


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = lookup_ops.FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_tensor` for strings, under an older name.

    Args: as there.

    Source: `tensorflow.contrib.lookup.lookup_ops.string_to_index_table_from_tensor`.

    Example:
        >>> with tf.Graph().as_default():
        ...     string_to_index_table_from_tensor(["a", "b"]).key_dtype
        tf.string
    """
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, v1.string, name)


MutableDenseHashTable = lookup_ops.DenseHashTable
"""A table that grows, by its name of TensorFlow 1.15."""
