"""Imports TensorFlow internals of TensorFlow 1 training: optimizers, session hooks and savers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorflow.python.training import (
    basic_session_run_hooks,  # hooks and their timers
    optimizer,  # Optimizer of version 1, the base of ours
    saver,  # Saver of version 1
    session_run_hook,  # SessionRunHook, the base of ours
    training_util,  # the global step
)


def create_slots(an_optimizer: optimizer.Optimizer, variables: Iterable[Any]) -> None:
    """Makes an optimizer's slots before its first update."""
    an_optimizer._create_slots(list(variables))
