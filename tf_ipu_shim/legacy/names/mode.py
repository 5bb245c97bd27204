"""Decides whether names of TensorFlow 1.15 to 2.6 keep their old meaning in this process.

They do in a process that uses `ipu`, and under the runner. `TF_IPU_SHIM_ERA=stock` leaves TensorFlow and Keras as they
are installed: then only names that they lack are served.
"""

from __future__ import annotations

import dataclasses
import os
import sys

from tf_ipu_shim import errors

# What casts are called that batch normalisation with a scale of half precision adds.
HALF_NORM_CAST = "ipu_norm_cast"
# Each is imported first by whatever makes a process one of ours.
_MARKS = ("tf_ipu_shim.api.ipu", "tf_ipu_shim.cli.runner")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Switch:
    """An environment variable with two values: what names meant, or what they mean in the installed packages.

    Args:
        variable: the environment variable.
        default: its value for what the names meant; the other one is "stock".
        meaning: what that is, for the error.
        stock: what "stock" is, for the error.

    Example:
        >>> NAMES.is_on()
        True
    """

    variable: str
    default: str
    meaning: str
    stock: str

    def is_on(self) -> bool:
        """Whether the user has left the names with their old meaning.

        Raises:
            UnsupportedError: the variable has a value that is not known.
        """
        value = os.environ.get(self.variable, "")
        if value not in ("", self.default, "stock"):
            raise errors.UnsupportedError(
                f"{self.variable} is {value!r}. It is {self.default!r}, the default: {self.meaning}; or 'stock': "
                f"{self.stock}."
            )
        return not self.is_stock()

    def is_stock(self) -> bool:
        """Whether the user has asked for what is installed, as it is; of a value that is not known, `is_on` speaks."""
        return os.environ.get(self.variable) == "stock"


NAMES = Switch(
    variable="TF_IPU_SHIM_ERA",
    default="graphcore",
    meaning="names of TensorFlow 1.15 to 2.6 mean what they meant",
    stock="TensorFlow and Keras as they are installed",
)
OPTIMIZERS = Switch(
    variable="TF_IPU_SHIM_KERAS_OPTIMIZERS",
    default="legacy",
    meaning="`tf.keras.optimizers` has the classes of Graphcore's TensorFlow",
    stock="those of the installed Keras",
)


def wanted() -> bool:
    """Whether the user has left on that names mean what they meant.

    Raises:
        UnsupportedError: the variable has a value that is not known.

    Example:
        >>> wanted()
        True
    """
    return NAMES.is_on()


def is_stock() -> bool:
    """Whether the user has asked for TensorFlow and Keras as they are; of a value that is not known, `wanted` speaks.

    Example:
        >>> is_stock()
        False
    """
    return NAMES.is_stock()


def active() -> bool:
    """Whether names that stock scripts may look for in vain are served: this process uses `ipu`, or is the runner's.

    Example:
        >>> active() == any(name in sys.modules for name in _MARKS)
        True
    """
    return any(name in sys.modules for name in _MARKS) and wanted()
