"""Suppresses TensorFlow log messages that do not concern users of simulated IPUs.

The lines of the simulated driver stay ("attached to 1 IPU ..."), and so do errors and the lines that
`TF_CPP_MIN_LOG_LEVEL` or an option requests. Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import argparse
import logging
import os
import warnings

from tf_ipu_shim.cli.output import import_log_filter
from tf_ipu_shim.machine.environment import log_level

_ALL, _ERRORS = "0", "2"
# What TensorFlow 2 says of TensorFlow 1: the scripts that are run here were written for it.
_DEPRECATED_LAYERS = r"`(tf|layer)\.[\w.]+` is deprecated"
_DEPRECATED_NAMES = "From %s: "
# What Keras says of `mixed_float16` where there is no GPU.
_GPU_ADVICE = "Mixed precision compatibility check (mixed_float16): WARNING"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quiet", action="store_true", help="show no log lines but errors")
    choice.add_argument(
        "--verbose",
        action="store_true",
        help="show all that TensorFlow logs, and in the memory report how programs run",
    )


def filter_log(options: argparse.Namespace) -> None:
    """Sets the log level of this process and its children; runs before TensorFlow's import."""
    if options.verbose:
        os.environ[log_level.TENSORFLOW] = os.environ[log_level.ENVIRONMENT_VARIABLE] = _ALL
        return
    if options.quiet:
        os.environ[log_level.TENSORFLOW] = os.environ[log_level.ENVIRONMENT_VARIABLE] = _ERRORS
    elif not os.environ.get(log_level.TENSORFLOW):
        os.environ[log_level.TENSORFLOW] = _ERRORS
        os.environ.setdefault(log_level.ENVIRONMENT_VARIABLE, _ALL)
    if os.environ[log_level.TENSORFLOW] != _ALL:
        import_log_filter.filter_import_log()
    warnings.filterwarnings("ignore", _DEPRECATED_LAYERS)
    logging.getLogger("tensorflow").addFilter(_is_relevant)


def _is_relevant(record: logging.LogRecord) -> bool:
    """Returns whether a record is neither TensorFlow's advice to leave a deprecated name nor Keras' about GPUs."""
    message = str(record.msg)
    if record.levelno != logging.WARNING:
        return True
    if message.startswith(_GPU_ADVICE):
        return False
    return not (message.startswith(_DEPRECATED_NAMES) and "is deprecated and will be removed" in message)
