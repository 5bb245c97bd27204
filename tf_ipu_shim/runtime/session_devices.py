"""Creates one more IPU device if a session's graph names the next after those configured.

Graphcore's TensorFlow has a second device if one is configured, and a session whose graph names it uses it. Here a
session has the devices that exist when it is made, so its graph is inspected before. A number beyond the next one is a
mistake, which TensorFlow reports.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.runtime import devices, forks

_ORDINAL = re.compile(r"/device:IPU:(\d+)$", re.IGNORECASE)


def install() -> None:
    """Makes sessions create IPU devices that their graphs name."""
    from tf_ipu_shim.tf_private.sessions import session

    why = "sessions have the IPU device that their graphs name"
    patches.replace(session.BaseSession, "__init__", _finding, why=why)


def _finding(stock: Callable[..., None]) -> Callable[..., None]:
    """Returns a session's constructor that makes the device first."""

    @functools.wraps(stock)
    def construct(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        if not target and devices.active() and devices.configured() is not None:
            from tf_ipu_shim.tf_private.graphs import ops

            highest = _highest(ops.get_default_graph() if graph is None else graph)
            if highest == devices.count():
                devices.named(highest)
        stock(self, target, graph, config)
        forks.note(self, config)

    return construct


def _highest(graph: Any) -> int:
    """Returns the highest IPU device ordinal in a graph, or -1."""
    if not hasattr(graph, "get_operations"):
        return -1  # what it is instead, TensorFlow says
    device_names = {operation.device for operation in graph.get_operations()}
    return max((int(match[1]) for match in map(_ORDINAL.search, device_names) if match), default=-1)
