"""Training loops of TensorFlow 1: optimizers, hooks, savers."""

from __future__ import annotations

from tensorflow.python.training import (
    basic_session_run_hooks,  # hooks and their timers
    optimizer,  # Optimizer of version 1, the base of ours
    saver,  # Saver of version 1
    session_run_hook,  # SessionRunHook, the base of ours
    training_util,  # the global step
)
