"""Dataset iterators for IPU programs, as `iter(dataset)` returns in the scope of a strategy.

Subclasses `iterator_ops.OwnedIterator` and replaces `dataset_ops.DatasetV2.__iter__`; checked on TensorFlow 2.15.1 and
2.21.0.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.compat.v2 import TensorSpec, dtypes
from tensorflow.compat.v2 import distribute as distribute_lib

from tf_ipu_shim import patches, sdk
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.feeds import feed_arguments, null_data
from tf_ipu_shim.tf_private import datasets as tf_datasets
from tf_ipu_shim.tf_private.datasets import (
    dataset_ops,
    gen_dataset_ops,
    iterator_ops,
    multi_device_iterator_ops,
    structure,
)
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.tensors import type_spec

_HOST = "/device:CPU:0"
_thread = threading.local()
_SINCE = (2, 2)  # the SDK that gave these iterators to scopes


@dataclasses.dataclass(frozen=True)
class InfeedSpec:
    """The infeed behind an iterator.

    Args:
        handle: the iterator's resource.
    """

    handle: Any


class IPUIterator(iterator_ops.OwnedIterator):
    """An iterator over a dataset, for functions that a strategy runs on the IPU.

    It can be an argument of a `tf.function` or a variable around it. A new iterator over a dataset of the same kind
    does not compile the function again.

    Args:
        dataset: a `tf.data.Dataset` whose elements have fully defined shapes.
        infeed_spec: the structure of another iterator, with `element_spec`, instead of a dataset.
        element_spec: the structure of the elements.
        **kwargs: `device_ordinal` and `prefetch_depth`, as `IPUInfeedQueue` has them.

    Raises:
        ValueError: both or neither of a dataset and specs are given, or a shape is not fully defined.
        FailedPreconditionError: the elements have 64-bit numbers.

    Source: `tensorflow.python.ipu.ipu_infeed_queue.IPUIterator`.

    Example:
        >>> iterator = IPUIterator(tf.data.Dataset.from_tensors(1.5).repeat())
        >>> float(strategy.run(tf.function(lambda: 2.0 * next(iterator))))
        3.0
    """

    def __init__(self, dataset: Any = None, infeed_spec: Any = None, element_spec: Any = None, **kwargs: Any) -> None:
        if dataset is None:
            if infeed_spec is None or element_spec is None:
                raise ValueError(
                    "When `dataset` is not provided, both `infeed_spec` and `element_spec` must be specified. Pass "
                    "both, or a dataset."
                )
            super().__init__(components=(infeed_spec.handle,), element_spec=element_spec)
            return
        if infeed_spec is not None or element_spec is not None:
            raise ValueError(
                "When `dataset` is provided, `infeed_spec` and `element_spec` must not be specified. Leave these two "
                "out."
            )
        feed_arguments.resolve_device_ordinal(kwargs.pop("device_ordinal", None))
        depth = feed_arguments.resolve_prefetch_depth(kwargs.pop("prefetch_depth", None))
        note_arguments("IPUIterator", optimise_latency=kwargs.pop("optimise_latency", None))
        if kwargs:
            raise TypeError(
                f"IPUIterator takes no argument {sorted(kwargs)[0]!r}; expected those of Graphcore's class. "
                "Remove it, or correct its name."
            )
        elements = feed_arguments.get_element_structure(dataset)
        feed_arguments.check_shapes(structure.get_flat_tensor_shapes(elements))
        feed_arguments.check_types(structure.get_flat_tensor_types(elements), "of an iterator")
        with ops.device(_HOST):
            source = null_data.apply_null_data_flag(dataset, elements)
            super().__init__(source.prefetch(depth))
            self._infeed_queue = IteratorQueue(self._iterator_resource, source)

    @property
    def infeed_spec(self) -> InfeedSpec:
        """The infeed of the elements."""
        return InfeedSpec(self._iterator_resource)

    def get_next_as_optional(self) -> Any:
        """Not supported, as on the real device.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "IPU Dataset iterator does not support get_next_as_optional(). Use next(iterator), in a `for` loop over "
            "tf.range."
        )

    @property
    def _type_spec(self) -> IPUIteratorSpec:
        return IPUIteratorSpec(self.element_spec)

    def _next_internal(self) -> Any:
        if context.executing_eagerly():
            raise RuntimeError(
                "Accessing dataset elements can not be accessed eagerly: next() was called outside a function. An "
                "iterator created in an IPUStrategy's scope can only feed functions that run on the IPU. Call "
                "next() inside a tf.function, or create the strategy with "
                "enable_dataset_iterators=False. For a script of SDK 2.1 or older, whose iterators returned "
                "elements to Python, run it with --sdk 2.1."
            )
        return super()._next_internal()


class IteratorQueue:
    """The infeed queue of an `IPUIterator`.

    Args:
        handle: the handle of TensorFlow's iterator.
    """

    def __init__(self, handle: Any, dataset: Any) -> None:
        self._handle = handle
        self._dataset = dataset

    @property
    def deleter(self) -> Any:
        """Frees the dataset's resources at the iterator's end."""
        with ops.device(_HOST):
            return gen_dataset_ops.make_iterator(tf_datasets.variant_tensor(self._dataset.take(0)), self._handle)


class IPUOwnedIterator(IPUIterator):
    """An `IPUIterator` that is freed with its Python object, as all of them are here.

    Args:
        dataset: as for `IPUIterator`.
        infeed_spec: as for `IPUIterator`.
        element_spec: as for `IPUIterator`.
        **kwargs: as for `IPUIterator`.

    Source: `tensorflow.python.ipu.ipu_infeed_queue.IPUOwnedIterator`.

    Example:
        >>> with strategy.scope():
        ...     iterator = iter(tf.data.Dataset.from_tensors(1.5))
        ...     float(strategy.run(tf.function(lambda: 2.0 * next(iterator))))
        3.0
    """


class IPUIteratorSpec(type_spec.TypeSpec):
    """The type spec of an iterator for `tf.function`: its element spec."""

    __slots__ = ["_element_spec"]

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @property
    def value_type(self) -> type:
        """The type of the values."""
        return IPUIterator

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)

    @property
    def _component_specs(self) -> tuple[Any, ...]:
        return (TensorSpec([], dtypes.resource),)

    def _to_components(self, value: Any) -> tuple[Any, ...]:
        return (tf_datasets.iterator_resource(value),)

    def _from_components(self, components: Any) -> IPUIterator:
        return IPUIterator(infeed_spec=InfeedSpec(components[0]), element_spec=self._element_spec)


def install() -> None:
    """Patches `iter(dataset)` to return an `IPUOwnedIterator` in the scope of an IPU strategy; once per process."""
    patches.replace(
        dataset_ops.DatasetV2,
        "__iter__",
        _patch_iter,
        why="a dataset's iterator in a strategy's scope feeds programs on the IPU",
    )


@contextlib.contextmanager
def stock_iterators() -> Iterator[None]:
    """Within it, `iter(dataset)` returns TensorFlow's iterator in this thread, as for work of the host."""
    before = getattr(_thread, "on_host", False)
    _thread.on_host = True
    try:
        yield
    finally:
        _thread.on_host = before


def _patch_iter(stock: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def __iter__(self: Any) -> Any:
        if context.executing_eagerly() and distribute_lib.has_strategy():
            strategy = distribute_lib.get_strategy()
            enabled = getattr(strategy, "_enable_dataset_iterators", False) and sdk.current() >= _SINCE
            if enabled and not getattr(_thread, "on_host", False) and not _is_distributed_component(self):
                return IPUOwnedIterator(self)
        return stock(self)

    return __iter__


def _is_distributed_component(dataset: Any) -> bool:
    """Returns whether `experimental_distribute_dataset` made it: elements are then read eagerly."""
    inputs = [dataset]
    while inputs:
        if type(inputs[0]).__module__ == multi_device_iterator_ops.__name__:
            return True
        inputs = tf_datasets.inputs_of(inputs[0])
    return False
