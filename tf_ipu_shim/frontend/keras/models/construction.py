"""Creates models in the scope of an `IPUStrategy` with a class that has IPU extensions.

Every Keras 2 model passes `Model.__new__`. There its class is replaced by one made from it, with an extension class
between the user's classes and Keras' own. Checked on `keras` 2.15, `tf_keras` 2.21 and `tensorflow.python.keras`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import distribute as distribute_lib

from tf_ipu_shim import keras2, patches
from tf_ipu_shim.frontend.keras.models import option_transfer
from tf_ipu_shim.frontend.strategies import delegation
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.tensors import tensor
from tf_ipu_shim.tf_private.variables import variables

_RUNNING = ("fit", "evaluate")
# The classes that models are made of, below the `engine` of a Keras package.
MODULES = ("functional.Functional", "sequential.Sequential", "training.Model")


def install() -> None:
    """Patches the loaded Keras 2 packages to check the strategy when a model is created.

    Call it again whenever one of `MODULES` has been loaded. Keras imports them in a circle, and the script's imports
    decide which is complete first.
    """
    for root in keras2.ROOTS:
        for name in MODULES:
            module, _, kind_name = name.partition(".")
            kind = getattr(sys.modules.get(f"{root}.engine.{module}"), kind_name, None)
            if kind is None:
                continue
            if "from_config" in vars(kind):
                patches.replace(
                    kind,
                    "from_config",
                    option_transfer.patch_from_config,
                    why="a saved model keeps its options for the IPU",
                )
            if kind_name == "Model":
                patches.replace(
                    kind,
                    "__new__",
                    functools.partial(_patch_new, kind),
                    why="a model made in a strategy's scope gets a class with IPU extensions",
                )
                for method in _RUNNING:
                    patches.replace(
                        kind,
                        method,
                        functools.partial(_patch_run_method, method),
                        why="a model that was made outside the scope of the strategy it is run in is refused",
                    )
                # No method of the extension: loading a model asks whether Keras' own is overridden.
                patches.replace(
                    kind,
                    "compile",
                    _patch_compile,
                    why="`steps_per_execution` may be a tensor, and models made outside the scope are refused",
                )


def _patch_new(model: type, stock: Callable[..., Any]) -> Any:
    @functools.wraps(stock)
    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if _extension_requested():
            _make_functional(model, cls, args, kwargs)
        instance = stock(cls, *args, **kwargs)
        return extend_model(instance) if isinstance(instance, model) and _extension_requested() else instance

    return staticmethod(new)


def _make_functional(model: type, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Makes a user's class without a constructor functional, if it is called with inputs and outputs.

    Keras does so in its own constructor, after the extension has been chosen.
    """
    if cls is model or cls.__init__ is not model.__init__:  # type: ignore[misc]
        return
    training = keras2.module("engine.training", keras2.root_of_class(cls))
    if training.is_functional_model_init_params(args, kwargs):
        training.inject_functional_model_class(cls)


def _patch_run_method(name: str, stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        _check_made_in_scope(self, name)
        return stock(self, *args, **kwargs)

    return run


def _check_made_in_scope(model: Any, name: str) -> None:
    if _extension_requested() and not getattr(type(model), "_ipu_generated", False):
        raise ValueError(
            f"Model {model.name!r} was made outside the scope of the IPUStrategy that {name} is called in, so that "
            "its variables are not on the IPU. Make it, and call compile, in the scope too: "
            "`with strategy.scope(): model = ...`."
        )


def _patch_compile(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def compile(self: Any, *args: Any, **kwargs: Any) -> Any:
        _check_made_in_scope(self, "compile")
        if hasattr(self, "_ipu"):
            args, kwargs = _convert_steps(args), {**kwargs, **_steps_keyword(kwargs)}
        return stock(self, *args, **kwargs)

    return compile


def _convert_steps(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Positional arguments of `compile` with the seventh, `steps_per_execution`, a number."""
    return tuple(_to_python_number(value) if index == 6 else value for index, value in enumerate(arguments))


def _steps_keyword(keywords: dict[str, Any]) -> dict[str, Any]:
    return {name: _to_python_number(value) for name, value in keywords.items() if name == "steps_per_execution"}


def _to_python_number(steps: Any) -> Any:
    """Returns the number in a tensor such as `dataset.cardinality()`: Keras 2.15 compares it with a string."""
    return int(steps) if isinstance(steps, (tensor.Tensor, variables.Variable)) and hasattr(steps, "numpy") else steps


def extend_model(model: Any) -> Any:
    """Adds the extension to a model."""
    kind = type(model)
    if not vars(kind).get("_ipu_generated"):
        extended_kind: type = _make_extended_class(kind, delegation.registered_extension(kind))  # type: ignore[arg-type]
        object.__setattr__(model, "__class__", extended_kind)
    return model


@functools.cache
def _make_extended_class(kind: type, registered: type | None) -> type:
    from tf_ipu_shim.frontend.keras.models import functional_extensions, model_extensions, sequential_extensions

    root = keras2.root_of_class(kind)
    for name, extension in (
        ("sequential.Sequential", sequential_extensions.SequentialExtension),
        ("functional.Functional", functional_extensions.FunctionalExtension),
        ("training.Model", model_extensions.ModelExtension),
    ):
        module, _, stock_name = name.partition(".")
        stock = getattr(keras2.module(f"engine.{module}", root), stock_name)
        if issubclass(kind, stock):
            extension_class = extension
            break
    else:
        raise TypeError(
            f"{kind.__name__} is not a Keras 2 model; expected a class of tf.keras. Derive it from tf.keras.Model."
        )
    # One for each user class: Keras puts other bases into it when a subclass turns out to be a functional model.
    inherited = {"_ipu_generated": True, "__module__": stock.__module__}
    if registered is None:
        between = type(stock)(stock.__name__, (extension_class, stock), inherited)
    else:
        between = _make_registered_class(stock, registered, extension_class)
    bases = (between,) if kind is stock else (kind, between)
    attributes = {
        "_ipu_generated": True,
        "_ipu_original": kind,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
    }
    if "build" in vars(kind) and kind is not keras2.module("engine.training", root).Model:
        attributes["build"] = vars(kind)[
            "build"
        ]  # Keras refuses weights before it has run, and only looks at the class
    return type(kind)(kind.__name__, bases, attributes)


def _make_registered_class(stock: type, registered: type, keras_class: type) -> type:
    """Returns a class of Keras' own with the script's extension, whose `get_config` may answer for the model's."""
    if not issubclass(registered, keras_class):
        raise TypeError(
            f"The extension {registered.__name__} that is registered for {stock.__name__} must be a subclass of "
            f"{keras_class.__name__}, which runs such a model on the IPU. Register a subclass of it."
        )

    @delegation.extension_delegate
    def get_config(self: Any) -> dict[str, Any]:
        return self._own_config()  # type: ignore[no-any-return]

    # Keras clones and writes models by whether it is a user's.
    of_class = getattr(registered, "get_config", stock.get_config)  # type: ignore[attr-defined]
    keras_members.mark_default(get_config, keras_members.is_default(of_class))
    attributes = {
        "_ipu_generated": True,
        "__module__": stock.__module__,
        "__init__": delegation.make_constructor(stock, registered),
        "get_config": get_config,
    }
    registered_class: Any = type(stock)(stock.__name__, (registered, stock), attributes)
    registered_class._own_config = lambda self: super(registered_class, self).get_config()
    return registered_class  # type: ignore[no-any-return]


def _extension_requested() -> bool:
    strategy = distribute_lib.get_strategy()
    return bool(getattr(strategy, "_enable_keras_extensions", False))
