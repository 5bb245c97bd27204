"""Logs warnings of the configuration through TensorFlow's log."""

from __future__ import annotations

import logging
import sys


def warn(message: str) -> None:
    """Logs a warning as `tf.get_logger()` would, without importing TensorFlow for it."""
    if sys.modules.get("tensorflow") is not None:
        from tf_ipu_shim.tf_private.utilities import tf_logging

        tf_logging.warn(message)
    else:
        logging.getLogger("tensorflow").warning(message)
