"""Checks of what infeeds, outfeeds and iterators are made with."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from tensorflow.python.distribute import distribute_lib
from tensorflow.python.framework import errors_impl

from tf_ipu_shim import sdk

_DEEPEST_PREFETCH = 255
_STRATEGY_DECIDES = (2, 2)  # the SDK from which a queue takes its device from the strategy around it


def older_order(before: int, *names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Lets a queue's constructor take the positional arguments of SDK 2.3 and older, which begin with a feed's name.

    Args:
        before: how many arguments come before the name.
        *names: of the arguments from the name on, in their order then.

    Returns:
        A decorator.

    Example:
        >>> class Queue:
        ...     @older_order(0, "feed_name", "outfeed_mode")
        ...     def __init__(self, outfeed_mode=None, **kwargs):
        ...         print(outfeed_mode, kwargs)
        >>> _ = Queue("losses", outfeed_mode=2)
        2 {'feed_name': 'losses'}
    """

    def decorate(init: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(init)
        def in_either_order(self: Any, *args: Any, **kwargs: Any) -> None:
            if len(args) > before and isinstance(args[before], str):
                given = args[before:]
                twice = sorted(set(names[: len(given)]) & set(kwargs))
                if twice or len(given) > len(names):
                    what = f"argument {twice[0]!r} was given twice" if twice else "too many arguments were given"
                    raise TypeError(
                        f"{type(self).__name__}: {what}. With SDK 2.3 and older they are {', '.join(names)}."
                    )
                args, kwargs = args[:before], {**dict(zip(names, given)), **kwargs}
            init(self, *args, **kwargs)

        return in_either_order

    return decorate


def device_ordinal(value: Any) -> int:
    """The TensorFlow device of a queue; where none is given that of the current IPU strategy, else 0.

    Raises:
        ValueError: it is no integer, or a negative one.

    Example:
        >>> with ipu.ipu_strategy.IPUStrategy("/device:IPU:1").scope():
        ...     device_ordinal(None)
        1
    """
    if value is None:
        if not distribute_lib.has_strategy() or sdk.current() < _STRATEGY_DECIDES:
            return 0
        return int(getattr(distribute_lib.get_strategy(), "_device_ordinal", 0))
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"Device ordinal must be an integer, not {value!r}.")
    if value < 0:
        raise ValueError(f"Device ordinal must be >= 0, not {value}.")
    return value


def prefetch_depth(value: int | None) -> int:
    """How many elements are ready ahead of time; the SDK's default where none is given.

    From SDK 2.6 on 0 gives the default too, as scripts of the time were used to.

    Raises:
        ValueError: it is not from 1 to 255.

    Example:
        >>> prefetch_depth(None)
        3
    """
    if not value and value is not False and sdk.current() >= (2, 6):
        return 3
    if value is None:
        return 1
    if value <= 0:
        raise ValueError(f"prefetch_depth must be greater than zero, but {value} was given.")
    if value > _DEEPEST_PREFETCH:
        raise ValueError(f"prefetch_depth must be less than 256, but {value} was given.")
    return value


def check_shapes(shapes: Iterable[Any]) -> None:
    """Refuses elements of unknown size: a program is compiled for one size.

    Raises:
        ValueError: a shape is not fully defined.

    Example:
        >>> check_shapes([tf.TensorShape([2, 3])])
    """
    for shape in shapes:
        if not shape.is_fully_defined():
            raise ValueError(
                f"Output shape {shape} is not fully defined. If using tf.Dataset.batch, set `drop_remainder=True`."
            )


def check_not_empty(shapes: Iterable[Any], what: str) -> None:
    """Refuses elements without a number in them, which no stream of an IPU carries.

    Args:
        shapes: of the tensors of an element.
        what: `"infeed"` or `"outfeed"`.

    Raises:
        InvalidArgumentError: a dimension is 0.

    Example:
        >>> check_not_empty([tf.TensorShape([2, 3])], "infeed")
    """
    for shape in shapes:
        if 0 in shape.as_list():
            raise errors_impl.InvalidArgumentError(
                None,
                None,
                f"Detected an input tensor to an {what} queue with a dimension of size 0: its shape is {shape}. Leave "
                "it out of what is fed.",
            )
