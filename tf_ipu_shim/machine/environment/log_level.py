"""Decides which log lines are shown: TensorFlow's level, or the package's own if set."""

from __future__ import annotations

import os

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_LOG_LEVEL"
TENSORFLOW = "TF_CPP_MIN_LOG_LEVEL"


def enabled(silent_from: int = 1) -> bool:
    """Returns whether a line of the driver's is shown, as the environment is now.

    Example:
        >>> enabled(4)
        True
    """
    level = (os.environ.get(ENVIRONMENT_VARIABLE) or os.environ.get(TENSORFLOW, "")).strip()
    return not (level.isdigit() and int(level) >= silent_from)
