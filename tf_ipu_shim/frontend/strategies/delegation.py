"""Applies `keras.ipu` extensions that a script registers for its Keras classes.

For a method `call`, an extension decides whether it applies (`_call_supported`) and replaces the call
(`_call_delegate`). An object created in the scope of a strategy that has an extension for its class becomes an object
of a class with that extension. Class methods ask the strategy of the scope in which they are called. Checked on `keras`
2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import distribute as distribute_lib

from tf_ipu_shim import keras2, patches
from tf_ipu_shim.tf_private.autograph import ag_ctx
from tf_ipu_shim.tf_private.autograph import api as autograph

_SWITCH = "__extension_delegate"  # an argument of every such method: False asks for the method itself
_REGISTERED = "_registered_keras_extensions"  # of a strategy


class KerasExtension:
    """The base class of extensions.

    Source: `keras.engine.base_layer.KerasExtension`.

    Example:
        >>> class Doubling(KerasExtension):
        ...     def _call_supported(self, x):
        ...         return True
        ...     def _call_delegate(self, x):
        ...         return 2.0 * self.call(x, __extension_delegate=False)
    """


def extension_delegate(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a method that an extension may override.

    Source: `keras.engine.base_layer.extension_delegate`.

    Example:
        >>> class Plus(tf.keras.layers.Layer):
        ...     @extension_delegate
        ...     def call(self, x):
        ...         return x + 1.0
    """
    name = method.__name__

    @functools.wraps(method)
    def delegating(owner: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.pop(_SWITCH, True):
            supported, delegate = (
                _find_delegate(owner, f"_{name}_supported"),
                _find_delegate(owner, f"_{name}_delegate"),
            )
            if supported is not None and delegate is not None and supported(*args, **kwargs):
                return delegate(*args, **kwargs)
        status = ag_ctx.control_status_ctx()
        return autograph.tf_convert(method.__get__(owner, type(owner)), status)(*args, **kwargs)

    _preserve_signature(delegating, method)
    return autograph.autograph_artifact(delegating)  # type: ignore[no-any-return]


def _find_delegate(owner: Any, name: str) -> Any:
    """Returns the extension's method of an object, or the one registered for its class; None without one."""
    if not isinstance(owner, type):
        return getattr(owner, name, None) if isinstance(owner, KerasExtension) else None
    extension = registered_extension(owner)
    attribute = None if extension is None else inspect.getattr_static(extension, name, None)
    return None if attribute is None else functools.partial(getattr(attribute, "__func__", attribute), owner)


def register_extension(strategy: Any, kind: type, base: type, extension: type) -> None:
    """Registers an extension for objects of a class created in a strategy's scope."""
    if not (isinstance(base, type) and issubclass(base, KerasExtension)):
        raise ValueError(
            f"Extensions must be registered under KerasExtension of keras.engine.base_layer, not {base!r}. Use "
            "KerasExtension of that module as the base class."
        )
    if not (isinstance(extension, type) and issubclass(extension, base)):
        raise ValueError(
            f"The extension for {kind.__name__} must be a subclass of {base.__name__}, and {extension!r} is none."
            " Register a subclass."
        )
    vars(strategy).setdefault(_REGISTERED, {})[kind] = extension


def delete_extension(strategy: Any, kind: type, base: type) -> None:
    """Undoes `register_extension`; existing models keep their extension."""
    extensions = vars(strategy).get(_REGISTERED, {})
    if not issubclass(extensions.get(kind, object), base):
        raise ValueError(
            f"No extension is registered for {kind.__name__}; there are for: "
            f"{', '.join(sorted(extension.__name__ for extension in extensions)) or 'none'}. Register an "
            "extension first."
        )
    del extensions[kind]


def registered_extension(kind: type) -> type | None:
    """Returns the extension that the current strategy has for a class, or for the nearest of its bases."""
    extensions = vars(distribute_lib.get_strategy()).get(_REGISTERED)
    return next((extensions[base] for base in kind.__mro__ if base in extensions), None) if extensions else None


def install(layer: type, root: str) -> None:
    """Adds extensions to the layers of a Keras package at construction (see `construction` for models)."""
    why = "a layer made in a strategy's scope gets the extension that is registered for its class"
    patches.replace(layer, "__new__", functools.partial(_patch_new, root), why=why)


def _patch_new(root: str, base_init: Callable[..., Any]) -> Any:
    @functools.wraps(base_init)
    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        instance = base_init(cls, *args, **kwargs)
        extension = registered_extension(cls)
        if extension is not None and not issubclass(cls, (extension, keras2.module("engine.training", root).Model)):
            object.__setattr__(instance, "__class__", _extended_class(cls, extension))  # type: ignore[arg-type]
        return instance

    return staticmethod(new)


@functools.cache
def _extended_class(kind: type, extension: type) -> type:
    attributes = {
        "__init__": make_constructor(kind, extension),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    return type(kind)(kind.__name__, (kind, extension), attributes)


def make_constructor(kind: type, extension: type) -> Callable[..., None]:
    """Returns a constructor of a class with an extension: the class' constructor, then the extension's without
    arguments.
    """
    base_init: Callable[..., None] = kind.__init__  # type: ignore[misc]

    @functools.wraps(base_init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        base_init(self, *args, **kwargs)
        extension.__init__(self)  # type: ignore[misc]

    _preserve_signature(__init__, base_init)
    return __init__


def _preserve_signature(function: Any, base_init: Callable[..., Any]) -> None:
    """Keeps the signature that Keras reads, while autograph converts only the wrapped function."""
    del function.__wrapped__
    function.__signature__ = inspect.signature(base_init)
