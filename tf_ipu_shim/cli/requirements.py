"""Checks that TensorFlow is installed, and names the command that installs it."""

from __future__ import annotations

import importlib.util
import platform
import sys

PACKAGE = "tensorflow-cpu" if platform.machine() == "x86_64" else "tensorflow"
"""The package that brings TensorFlow for CPUs; there is no `tensorflow-cpu` for ARM."""


def install_command() -> str:
    """Returns the command that installs a TensorFlow for this Python.

    Example:
        >>> install_command().startswith("pip install tensorflow")
        True
    """
    return f"pip install {PACKAGE}=={'2.15.1' if sys.version_info < (3, 12) else '2.21.0'}"


def missing_tensorflow() -> str | None:
    """Returns what to do if this Python has no TensorFlow; None if it has one."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is not None and spec.origin is not None:  # the stubs of a wheel are a namespace package
        return None
    return f"TensorFlow is not installed in this Python, {sys.executable}. Install it: {install_command()}"
