"""Imports TensorFlow's module `saved_model_cli`, which `import tensorflow` does not load."""

from __future__ import annotations

from tensorflow.python.tools import (
    saved_model_cli,  # its parser of inputs, and its `run`
)
