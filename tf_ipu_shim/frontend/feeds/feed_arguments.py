"""Checks the constructor arguments of infeeds, outfeeds and iterators."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Iterable
from typing import Any

from tensorflow.compat.v2 import distribute as distribute_lib
from tensorflow.compat.v2 import dtypes, nest
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim import sdk
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.protos import types_pb2
from tf_ipu_shim.tf_private.tensors import none_tensor, tensor_spec

_DEEPEST_PREFETCH = 255
_DEEPER_PREFETCH = (2, 6)  # the SDK from which elements are 3 ahead
_NARROWER = {dtypes.int64: dtypes.int32, dtypes.uint64: dtypes.uint32, dtypes.float64: dtypes.float32}
_STRATEGY_DECIDES = (2, 2)  # the SDK from which a queue takes its device from the strategy around it


def accept_old_order(before: int, *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Accepts the positional arguments of SDK 2.3 and older in a queue's constructor, which begin with a feed name.

    Example:
        >>> class Queue:
        ...     @accept_old_order(0, "feed_name", "outfeed_mode")
        ...     def __init__(self, outfeed_mode=None, **kwargs):
        ...         print(outfeed_mode, kwargs)
        >>> _ = Queue("losses", outfeed_mode=2)
        2 {'feed_name': 'losses'}
    """

    def decorate(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def in_either_order(self: Any, *args: Any, **kwargs: Any) -> None:
            if len(args) > before and isinstance(args[before], str):
                positional = args[before:]
                twice = sorted(set(names[: len(positional)]) & set(kwargs))
                if twice or len(positional) > len(names):
                    problem = f"argument {twice[0]!r} was given twice" if twice else "too many arguments were given"
                    raise TypeError(
                        f"{type(self).__name__}: {problem}. With SDK 2.3 and older they are {', '.join(names)}. "
                        "Pass each only once."
                    )
                args, kwargs = args[:before], {**dict(zip(names, positional)), **kwargs}
            init(self, *args, **kwargs)

        return in_either_order

    return decorate


def resolve_device_ordinal(value: Any) -> int:
    """Returns the TensorFlow device of a queue; by default the current IPU strategy's, else 0.

    Example:
        >>> with ipu.ipu_strategy.IPUStrategy("/device:IPU:1").scope():
        ...     resolve_device_ordinal(None)
        1
    """
    if value is None:
        if not distribute_lib.has_strategy() or sdk.current() < _STRATEGY_DECIDES:
            return 0
        return int(getattr(distribute_lib.get_strategy(), "_device_ordinal", 0))
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ValueError(f"Device ordinal must be an integer, not {value!r}. Pass an integer.")
    if value < 0:
        raise ValueError(f"Device ordinal must be >= 0, not {value}. Pass 0 or more.")
    return int(value)


def resolve_prefetch_depth(value: int | None) -> int:
    """Returns the number of prefetched elements; the SDK's default if none is given.

    From SDK 2.6 on 0 means the default too, as scripts for these releases expect.

    Example:
        >>> resolve_prefetch_depth(None)
        3
    """
    if value is None:
        return 3 if sdk.current() >= _DEEPER_PREFETCH else 1
    value = check_integer("prefetch_depth", value)
    if value == 0 and sdk.current() >= _DEEPER_PREFETCH:
        return 3
    if value <= 0:
        raise ValueError(f"prefetch_depth must be greater than zero, but {value} was given. Pass a value above 0.")
    if value > _DEEPEST_PREFETCH:
        raise ValueError(f"prefetch_depth must be less than 256, but {value} was given. Pass at most 255.")
    return value


def get_element_structure(dataset: Any) -> Any:
    """Returns the `TensorSpec`s of a dataset's elements, in its structure.

    Example:
        >>> get_element_structure(tf.data.Dataset.range(3))
        TensorSpec(shape=(), dtype=tf.int64, name=None)
    """
    if not isinstance(dataset, dataset_ops.DatasetV2):
        raise TypeError(f"An infeed takes a tf.data.Dataset, not a {type(dataset).__name__}. Pass a tf.data.Dataset.")
    structure = dataset_ops.get_structure(dataset)
    for spec in nest.flatten(structure):
        if not isinstance(spec, (tensor_spec.TensorSpec, none_tensor.NoneTensorSpec)):
            raise ValueError(
                "Elements of an infeed must be tensors of fixed shapes, but this dataset's have a "
                f"{spec.value_type.__name__}. Make it dense in the dataset, for example with "
                ".to_tensor(shape=...) of a ragged tensor or with tf.sparse.to_dense."
            )
    return structure


def check_shapes(shapes: Iterable[Any]) -> None:
    """Refuses elements of unknown size: a program is compiled for one size.

    Example:
        >>> check_shapes([tf.TensorShape([2, 3])])
    """
    for shape in shapes:
        if not shape.is_fully_defined():
            raise ValueError(
                f"Output shape {shape} is not fully defined. If using tf.Dataset.batch, set `drop_remainder=True`."
            )


def check_types(types: Iterable[Any], feed: str) -> None:
    """Refuses elements of 64-bit numbers: no stream of an IPU carries them.

    Example:
        >>> check_types([tf.int32, tf.float16, tf.bool], "labels")
    """
    for index, kind in enumerate(types):
        narrow = _NARROWER.get(kind)
        if narrow is not None:
            name = types_pb2.DataType.Name(kind.as_datatype_enum).removeprefix("DT_").lower()
            raise errors_impl.FailedPreconditionError(
                None,
                None,
                f"Unsupported datatype {name} on index {index} of feed operation {feed}. IPUs support "
                f"no 64-bit values. Cast it in the dataset, for example with .map(lambda ...: tf.cast(..., "
                f"tf.{narrow.name})), "
                f"or create the dataset from arrays of {narrow.name}.",
            )


def check_not_empty(shapes: Iterable[Any], label: str) -> None:
    """Refuses elements without a number in them, which no stream of an IPU carries.

    Example:
        >>> check_not_empty([tf.TensorShape([2, 3])], "infeed")
    """
    for shape in shapes:
        if 0 in shape.as_list():
            raise errors_impl.InvalidArgumentError(
                None,
                None,
                f"Detected an input tensor to an {label} queue with a dimension of size 0: its shape is "
                f"{shape}; expected at least one element. Do not feed it.",
            )
