"""Decides whether names of TensorFlow 1.15 to 2.6 keep their old meaning in this process.

They do in a process that uses `ipu`, and under the runner. `TF_IPU_SHIM_COMPAT=stock` leaves installed names of
TensorFlow and Keras unchanged, and adds only names that they lack.
"""

from __future__ import annotations

import os
import sys

from tf_ipu_shim import errors

# Names of the casts that batch normalisation adds for a float16 scale.
HALF_NORM_CAST = "ipu_norm_cast"
# Each is imported first by whatever makes a process one of ours.
_MARKS = ("tf_ipu_shim.api.ipu", "tf_ipu_shim.cli.runner")


ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_COMPAT"
GRAPHCORE, STOCK_OPTIMIZERS, STOCK = "graphcore", "stock-optimizers", "stock"
MEANINGS = {
    GRAPHCORE: "names of TensorFlow 1.15 to 2.6 and classes of `tf.keras.optimizers` keep their old meaning",
    STOCK_OPTIMIZERS: "the same, but `tf.keras.optimizers` has the classes of the installed Keras",
    STOCK: "TensorFlow and Keras as they are installed",
}


def current() -> str:
    """Returns the compatibility mode that `TF_IPU_SHIM_COMPAT` asks for: a key of `MEANINGS`.

    Example:
        >>> current()
        'graphcore'
    """
    value = os.environ.get(ENVIRONMENT_VARIABLE, "") or GRAPHCORE
    if value not in MEANINGS:
        modes = "; ".join(f"{name!r}: {meaning}" for name, meaning in MEANINGS.items())
        raise errors.UnsupportedError(
            f"{ENVIRONMENT_VARIABLE} is {value!r}; expected one of {modes}. Use {GRAPHCORE!r}, the default."
        )
    return value


def is_requested() -> bool:
    """Returns whether old names keep their old meaning: the default.

    Example:
        >>> is_requested()
        True
    """
    return current() != STOCK


def has_graphcore_optimizers() -> bool:
    """Returns whether `tf.keras.optimizers` has the classes of Graphcore's TensorFlow.

    Example:
        >>> has_graphcore_optimizers()
        True
    """
    return current() == GRAPHCORE


def is_stock() -> bool:
    """Returns whether the user has asked for unchanged TensorFlow and Keras; `current` refuses unknown values.

    Example:
        >>> is_stock()
        False
    """
    return os.environ.get(ENVIRONMENT_VARIABLE) == STOCK


def active() -> bool:
    """Whether names that stock TensorFlow lacks are served: this process uses `ipu`, or is the runner's.

    Example:
        >>> active() == any(name in sys.modules for name in _MARKS)
        True
    """
    return any(name in sys.modules for name in _MARKS) and is_requested()
