"""Accepts the TensorFlow 1.15 arguments of `CollectiveKeys`, which numbers a process's collective ops.

Since then each group of devices numbers its own, from one counter. Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches


def install() -> None:
    """Accepts `op_instance_key_start` and `variable_instance_key_start` in `CollectiveKeys`."""
    from tf_ipu_shim.tf_private.distribute import cross_device_utils

    why = "where scripts of TensorFlow 1.15 begin to number collective ops"
    keys = cross_device_utils.CollectiveKeys
    patches.replace(keys, "__init__", _with_starts, why=why)
    patches.replace(keys, "_get_new_group_key", _from_start, why=why)


def _with_starts(stock: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def __init__(
        self: Any,
        group_key_start: int = 1,
        op_instance_key_start: int | None = None,
        variable_instance_key_start: int | None = None,
    ) -> None:
        stock(self, group_key_start)
        start_keys = [start for start in (op_instance_key_start, variable_instance_key_start) if start is not None]
        if start_keys:
            self._ipu_instance_key_start = max(start_keys)  # one counter is for both: past what either leaves out

    return __init__


def _from_start(stock: Callable[..., int]) -> Callable[..., int]:
    @functools.wraps(stock)
    def _get_new_group_key(self: Any, devices: Any) -> int:
        group = stock(self, devices)
        start = getattr(self, "_ipu_instance_key_start", None)
        if start is not None:
            self._instance_key_table[group] = dict.fromkeys(devices, start)
        return group

    return _get_new_group_key
