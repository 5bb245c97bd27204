"""Checks the arguments of the `IpuOptions` functions against their type annotations.

Protobuf refuses wrong ones too, without a word of the function and the argument.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tf_ipu_shim.messages import config_pb2

_PLAIN: dict[str, type] = {
    "None": type(None),
    "bool": numbers.Integral,  # as a field of protobuf takes them
    "int": numbers.Integral,
    "float": numbers.Real,
    "str": str,
}


def check(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuses arguments of another type than the function declares. It checks arguments of several possible kinds
    itself.

    Example:
        >>> check(lambda count: count, [3], {})
    """
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return  # Python says so at the call
    for name, value in bound.items():
        if name == "opts":
            if not isinstance(value, config_pb2.IpuOptions):
                raise TypeError(
                    f"ipu.utils.{function.__name__}: `opts` must be what ipu.utils.create_ipu_config returns, not "
                    f"{value!r}. Pass that object."
                )
            continue
        words = str(signature.parameters[name].annotation).split(" | ")
        if set(words) <= set(_PLAIN) and not isinstance(value, tuple(_PLAIN[word] for word in words)):
            raise TypeError(
                f"ipu.utils.{function.__name__}: `{name}` must be of type {' or '.join(words)}, not {value!r}. Pass a "
                "value of this type."
            )
