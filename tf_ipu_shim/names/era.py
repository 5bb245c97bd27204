"""Whether names of TensorFlow 1.15 to 2.6 are to mean in this process what they meant.

They do in a process that uses `ipu`, and under the runner. `TF_IPU_SHIM_ERA=stock` leaves TensorFlow and Keras as they
are installed: then only names that they lack are served.
"""

from __future__ import annotations

import os
import sys

from tf_ipu_shim import errors

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_ERA"
# Each is imported first by whatever makes a process one of ours.
_MARKS = ("tf_ipu_shim.api.ipu", "tf_ipu_shim.cli.runner")


def wanted() -> bool:
    """Whether the user has left it on.

    Raises:
        UnsupportedError: the variable has a value that is not known.

    Example:
        >>> wanted()
        True
    """
    value = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if value not in ("", "graphcore", "stock"):
        raise errors.UnsupportedError(
            f"{ENVIRONMENT_VARIABLE} is {value!r}. It is 'graphcore', the default: names of TensorFlow 1.15 to 2.6 "
            "mean what they meant; or 'stock': TensorFlow and Keras as they are installed."
        )
    return value != "stock"


def active() -> bool:
    """Whether names that stock scripts may look for in vain are served: this process uses `ipu`, or is the runner's.

    Example:
        >>> active() == any(name in sys.modules for name in _MARKS)
        True
    """
    return any(name in sys.modules for name in _MARKS) and wanted()
