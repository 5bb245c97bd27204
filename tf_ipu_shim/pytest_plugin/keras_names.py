"""Reads the counters behind Keras' automatic names, such as `dense_2`, which count all layers of a process."""

from __future__ import annotations

import sys
from typing import Any

from tf_ipu_shim import keras2


def name_counts() -> dict[str, int]:
    """Returns the number of layers of each automatic name so far; empty if nothing has loaded Keras."""
    # Keras 3, which may be loaded next to Keras 2, has other counters in a module of the same name.
    loaded = (sys.modules.get(f"{root}.backend") for root in keras2.ROOTS[:2])
    backend: Any = next((module for module in loaded if hasattr(module, "get_default_graph_uid_map")), None)
    if backend is None:
        return {}
    return {name: count for (_, name), count in backend.get_default_graph_uid_map().items()}


def counts_before_test(before: dict[str, int]) -> dict[str, int]:
    """Returns the counts at the start of a test, without counts that the test has reset."""
    now = name_counts()
    return {name: count for name, count in before.items() if now.get(name, 0) >= count}
