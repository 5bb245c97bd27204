"""This project's own exceptions. Errors that Graphcore's users know have Graphcore's exception types instead.

ShimError
├── UnsupportedError         (NotImplementedError)   a feature that is refused by name
├── MissingModuleError       (ModuleNotFoundError)   a module Graphcore has and this package has not yet
├── MissingAttributeError    (AttributeError)        a name Graphcore has and this package has not yet
├── PluginError              (RuntimeError)          the C++ plugin cannot be built or loaded, or is not understood
└── UnknownFlagError         (ValueError)            TF_POPLAR_FLAGS has an unknown flag

AccountingFaultWarning       (RuntimeWarning)        the memory accounting has a bug; report the message
"""

from __future__ import annotations


class ShimError(Exception):
    """Base of all exceptions that only this project raises."""


class UnsupportedError(ShimError, NotImplementedError):
    """A feature is not supported: the message names it, the reason and the fix."""


class MissingModuleError(ShimError, ModuleNotFoundError):
    """A module of Graphcore's TensorFlow that this package does not have yet."""


class MissingAttributeError(ShimError, AttributeError):
    """A name of Graphcore's TensorFlow that this package does not have yet."""


class PluginError(ShimError, RuntimeError):
    """The C++ plugin cannot be built or loaded, or sent an unreadable message; the message names the fix."""


class UnknownFlagError(ShimError, ValueError):
    """``TF_POPLAR_FLAGS`` holds a flag that no SDK has, or an invalid value of a flag."""


class AccountingFaultWarning(RuntimeWarning):
    """A bug of ours in the memory accounting. The program runs all the same; report the message."""
