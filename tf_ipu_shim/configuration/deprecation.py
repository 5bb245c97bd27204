"""Marks options as deprecated, by class decorators: assigning to one warns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)


def deprecate_config_attribute(name: str, msg: str) -> Callable[[_Class], _Class]:
    """Marks one attribute of a configuration class: assigning to it warns.

    A category may be marked too; then all options in it warn.

    Args:
        name: the attribute, as the class's constructor creates it.
        msg: the replacement.

    Returns:
        A class decorator.

    Source: `tensorflow.python.ipu.config`.

    Example:
        >>> from tf_ipu_shim.configuration.base import _ConfigBase
        >>> @deprecate_config_attribute("old", "use new")
        ... class Options(_ConfigBase):
        ...     def __init__(self):
        ...         self.old = 1
        >>> Options().get_attribute_metadata("old").deprecated_msg
        'use new'
    """
    return deprecate_config_attributes({name: msg})


def deprecate_config_attributes(to_deprecate: Mapping[str, str]) -> Callable[[_Class], _Class]:
    """Marks several attributes of a configuration class as deprecated, by a dictionary from name to replacement.

    Source: `tensorflow.python.ipu.config`.
    """

    def decorate(cls: _Class) -> _Class:
        cls._deprecations = {**cls._deprecations, **to_deprecate}  # type: ignore[attr-defined]
        return cls

    return decorate
