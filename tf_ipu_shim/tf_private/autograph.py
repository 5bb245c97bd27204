"""Autograph: what it converts, and when."""

from __future__ import annotations

from tensorflow.python.autograph.core import (
    ag_ctx,  # whether code is being converted
    config,  # what is not converted
)
from tensorflow.python.autograph.impl import (
    api,  # tf_convert: converts with the options of the caller
)
