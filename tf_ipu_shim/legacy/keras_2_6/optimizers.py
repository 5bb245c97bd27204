"""Makes `tf.keras.optimizers` the OptimizerV2 classes that scripts of Keras 2.6 expect.

In TensorFlow 2.6 `tf.keras.optimizers.Optimizer`, `SGD`, `Adam` and so on are the later versions' `legacy` ones.
Scripts subclass and wrap them, look for their slots and ask for `_resource_apply_dense`; the classes that have taken
their names have none of that. So in a process that uses `ipu` the public names mean the `legacy` classes again, the
names of optimizers in `compile` too. The later classes stay in `tf.keras.optimizers.experimental`, and optimizers that
are newer than 2.6, such as `AdamW`, if it has any. `TF_IPU_SHIM_COMPAT=stock-optimizers` leaves all as installed.

Checked on `keras` 2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.legacy.keras_2_6 import optimizer_states
from tf_ipu_shim.legacy.names import mode

NAMES = ("Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "Optimizer", "RMSprop", "SGD")
PUBLIC = (
    "keras.optimizers",
    "keras.api._v2.keras.optimizers",
    "tf_keras.optimizers",
    "tf_keras.api._v2.keras.optimizers",
    "tensorflow.keras.optimizers",  # a second copy, which `from tensorflow.keras.optimizers import ...` makes
)
_OF_THE_TIME = "optimizers.legacy.optimizer_v2"
# By the id of a later class: the class and the one of the time.
_meant: dict[int, tuple[Any, Any]] = {}
_WHY = "`tf.keras.optimizers` has the classes of TensorFlow 2.6, which scripts subclass and wrap"


def loaded(module: Any) -> None:
    """Changes one of `PUBLIC` that has been loaded.

    Args:
        module: the module.
    """
    legacy: Any = getattr(module, "legacy", None)
    if not mode.has_graphcore_optimizers() or not getattr(
        getattr(legacy, "Optimizer", None), "__module__", ""
    ).endswith(_OF_THE_TIME):
        return  # Keras 3, or not loaded to its end
    for name in NAMES:
        patches.replace(module, name, functools.partial(_of_the_time, getattr(legacy, name)), why=_WHY)
    root = legacy.Optimizer.__module__.removesuffix(f".{_OF_THE_TIME}")
    optimizer_states.loaded(root, legacy.Optimizer)
    internal = sys.modules[f"{root}.optimizers"]
    patches.replace(internal, "get", _preferring_legacy, why="names of optimizers mean those classes")
    ours, stock = internal.get, internal.get.__wrapped__
    patches.change(  # a module that is loaded later takes ours for its own, and is to have the stock one afterwards
        f"{module.__name__}.get",
        functools.partial(setattr, module, "get", ours),
        functools.partial(setattr, module, "get", stock),
        why=_WHY,
        undone="the stock attribute is restored",
    )


def meant(value: Any) -> Any:
    """Returns the class that a script means by an imported later class; any other value unchanged.

    Args:
        value: a value of a script.
    """
    return _meant.get(id(value), (value, value))[1]


def _of_the_time(legacy: type, stock: Any) -> type:
    _meant[id(stock)] = stock, legacy
    return legacy


def _preferring_legacy(stock: Any) -> Any:
    @functools.wraps(stock)
    def get(identifier: Any, **kwargs: Any) -> Any:
        return stock(identifier, **{"use_legacy_optimizer": True, **kwargs})

    return get
