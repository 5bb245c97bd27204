"""Describes an option or category for scripts: its name, type, default, documentation and deprecation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration import types, warnings


class AttributeMetadata:
    """Name, type, default, documentation and deprecation of an option or category.

    Scripts read it to build command lines and help strings from the configuration itself.

    Args:
        name: full dotted path, such as `floating_point_behaviour.inv`.
        doc: the option's description; becomes `__doc__`.
        depth: its level: 1 at the top, one more for each category that contains it.
        default: the default value, the same object as the option's first value; None for a category.
        deprecated_msg: the replacement, or None if the option is not deprecated.
        attr_type: type of the option; None for a category.
        attr_type_str: the type as text; by default derived from `attr_type`.
        check_type_fn: returns whether a value is of the type.

    Source: `tensorflow.python.ipu.config`.

    Example:
        >>> AttributeMetadata("a.b", default=0, attr_type=int).type
        'int'
    """

    def __init__(
        self,
        name: str,
        doc: str = "",
        depth: int = 0,
        default: Any = None,
        deprecated_msg: str | None = None,
        attr_type: Any = None,
        attr_type_str: str | None = None,
        check_type_fn: Callable[[Any], bool] = lambda value: True,
    ) -> None:
        self._name = name
        self.__doc__ = doc
        self._depth = depth
        self._default = default
        self._deprecated_msg = deprecated_msg
        self._attr_type = attr_type
        self._attr_type_str = attr_type_str
        self._check_type_fn = check_type_fn

    def __deepcopy__(self, memo: dict[int, Any]) -> AttributeMetadata:
        default = copy.deepcopy(self._default, memo)
        return self._replaced(self._name, self._depth, default, self._deprecated_msg)

    def _replaced(self, name: str, depth: int, default: Any, deprecated_msg: str | None) -> AttributeMetadata:
        doc = self.__doc__ or ""
        return AttributeMetadata(
            name, doc, depth, default, deprecated_msg, self._attr_type, self._attr_type_str, self._check_type_fn
        )

    @property
    def name(self) -> str:
        """Full dotted path."""
        return self._name

    @property
    def type(self) -> str | None:
        """The type as text, such as `bool` or `typing.Union[int, typing.List[int]]`; None for a category."""
        if self._attr_type_str is None and self._attr_type is not None:
            return types.type_name(self._attr_type)
        return self._attr_type_str

    @property
    def actual_type(self) -> Any:
        """The type itself: a class or a `typing` object; None for a category."""
        return self._attr_type

    @property
    def default(self) -> Any:
        """The default value; None for a category."""
        return self._default

    @property
    def deprecated(self) -> bool:
        """Returns whether assigning to it, or to anything in the category, warns."""
        return self._deprecated_msg is not None

    @property
    def deprecated_msg(self) -> str | None:
        """The alternative to a deprecated option; None if not deprecated."""
        return self._deprecated_msg

    def check_type(self, value: Any) -> None:
        """Accepts a value of exactly the option's type.

        Raises:
            TypeError: for any other value; names the option, the value and both types.
        """
        if not self._check_type_fn(value):
            kind = types.enum_of(self._attr_type)
            wanted = "a value of this type" if kind is None else f"one of {types.members(kind)}"
            raise TypeError(
                f"Trying to set {self._name} to {value}, but it must be of type {self.type}. "
                f"Received a {type(value).__name__}. Pass {wanted}."
            )

    def warn_if_deprecated(self) -> None:
        """Logs a warning if the option, or a category that contains it, is deprecated."""
        if self._deprecated_msg is not None:
            warnings.warn(f"{self._name} has been deprecated: {self._deprecated_msg}")


def describe(metadata: AttributeMetadata) -> str:
    """One entry of a configuration's generated documentation, as reStructuredText."""
    indent = "   " * (metadata._depth + 1)
    inner = indent + "   "
    *categories, _ = metadata.name.split(".")
    # Sphinx's name of an attribute that is in the block of its category.
    attribute = ".".join([*categories[:-1], metadata.name])
    lines = [f"{indent}.. _{metadata.name}:", f"{indent}.. py:attribute:: {attribute}"]
    if metadata.type is not None:
        lines += [f"{inner}:type: {metadata.type}", f"{inner}:value: {types.shown(metadata.default)}"]
    lines.append(indent)
    if metadata.deprecated:
        apart = "\n" if sdk.current() >= (2, 6) else ""
        lines += [f"{inner}.. note::{apart}", f"{inner}   DEPRECATED: {metadata.deprecated_msg}{apart}"]
    lines += [inner + line if line else "" for line in (metadata.__doc__ or "").strip().splitlines()]
    return "\n".join(lines)
