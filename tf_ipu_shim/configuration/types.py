"""Checks values against the types of options, and formats both for messages and documentation.

An option of type `int` accepts only an `int`: a bool, a NumPy scalar or a subclass is an error. Lists and tuples may be
subclasses (not in SDK 2.1), their items may not.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, Union

from tf_ipu_shim import sdk

_NAMES = {list: "List", tuple: "Tuple"}


def type_name(annotation: Any) -> str:
    """Returns how a type is written in messages and metadata.

    Example:
        >>> type_name(Union[int, list[int], tuple[int, ...]])
        'typing.Union[int, typing.List[int], typing.Tuple[int, ...]]'
    """
    if annotation is Ellipsis:
        return "..."
    origin = typing.get_origin(annotation)
    if origin is None:
        if isinstance(annotation, type):
            return annotation.__qualname__ if annotation.__module__ == "builtins" else annotation.__name__
        raise Exception(
            f"Unhandled {annotation!r} when converting type hint to text. "
            "Use a class, typing.List, typing.Tuple or typing.Union."
        )
    _check_origin(annotation, origin)
    arguments = ", ".join(type_name(argument) for argument in typing.get_args(annotation))
    return f"typing.{_NAMES.get(origin, 'Union')}[{arguments}]"


def checker(annotation: Any) -> Callable[[Any], bool]:
    """Returns the function that tests values of an option of this type."""
    origin = typing.get_origin(annotation)
    if origin is None:
        type_name(annotation)
        return lambda value: type(value) is annotation
    _check_origin(annotation, origin)
    arguments = typing.get_args(annotation)
    return _union_checker(arguments) if origin is Union else _container_checker(origin, arguments)


def _union_checker(arguments: tuple[Any, ...]) -> Callable[[Any], bool]:
    enums = [argument for argument in arguments if isinstance(argument, type) and issubclass(argument, Enum)]
    if int in arguments and enums:
        raise ValueError(f"cannot have a Union of int and {type_name(enums[0])}: integers stand for its members.")
    checks = [checker(argument) for argument in arguments]
    return lambda value: any(check(value) for check in checks)


def _container_checker(origin: Any, arguments: tuple[Any, ...]) -> Callable[[Any], bool]:
    fixed = origin is tuple and arguments[-1] is not Ellipsis
    items = [checker(argument) for argument in arguments if argument is not Ellipsis]

    def check(value: Any) -> bool:
        is_container = type(value) is origin if sdk.current() < (2, 2) else isinstance(value, origin)
        if not is_container or (fixed and len(value) != len(items)):
            return False
        return all(items[index if fixed else 0](item) for index, item in enumerate(value))

    return check


def enum_of(annotation: Any) -> type[Enum] | None:
    """Returns the `Enum` whose members an option holds, directly or as part of a `Union`; None if it holds none."""
    for candidate in (annotation, *typing.get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Enum):
            return candidate
    return None


def members(kind: type[Enum]) -> str:
    """Returns the members of an enumeration as a script writes them, for messages.

    Example:
        >>> from tf_ipu_shim.api.ipu.config import SelectionOrder
        >>> members(SelectionOrder).split(", ")[0]
        'SelectionOrder.AUTO'
    """
    return ", ".join(f"{kind.__name__}.{name}" for name in kind.__members__)


def shown(value: Any) -> str:
    """Returns a value of an option, as documentation and `repr` show it.

    Example:
        >>> from tf_ipu_shim.api.ipu.config import SelectionOrder
        >>> shown(SelectionOrder.AUTO), shown("ipu2")
        ('SelectionOrder.AUTO', "'ipu2'")
    """
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


def _check_origin(annotation: Any, origin: Any) -> None:
    if origin is not Union and origin not in _NAMES:
        raise Exception(
            f"Unsupported 'typing' attribute in {annotation!r}. Use typing.List, typing.Tuple or typing.Union."
        )
