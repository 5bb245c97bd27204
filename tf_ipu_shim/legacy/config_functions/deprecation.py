"""Decorates `IpuOptions` functions: checks argument types, and warns once from SDK 2.1 to use `IPUConfig` instead."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration.warnings import warn
from tf_ipu_shim.legacy.config_functions import argument_types

_Function = TypeVar("_Function", bound=Callable[..., Any])
_warned: set[str] = set()


def replaced_by_ipu_config(function: _Function) -> _Function:
    """Decorates a function on `IpuOptions` that SDK 2.1 deprecated."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if sdk.current() >= (2, 1) and function.__name__ not in _warned:
            _warned.add(function.__name__)
            warn(f"ipu.utils.{function.__name__} is deprecated: use ipu.config.IPUConfig instead.")
        argument_types.check(function, args, kwargs)
        return function(*args, **kwargs)

    return cast(_Function, wrapper)
