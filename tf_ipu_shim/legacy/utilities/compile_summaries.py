"""Adds a tensor summary of trace events to a graph, as `ipu_compile_summary` of SDK 2.3 and older does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as v1

from tf_ipu_shim import plugin

_PLUGIN = "ipu"


def add(name: str, op_list: Any, collections: Sequence[str] | None = None) -> Any:
    """Adds a summary of the trace events since they were last read.

    Args:
        name: the name of the summary.
        op_list: a tensor or operation, or several, after which the events are read.
        collections: the collections of the graph that the summary is added to; by default the ones that `merge_all`
            reads.

    Returns:
        The summary: a string tensor with a `Summary`, whose value is a tensor of serialised `IpuTraceEvent`s.
    """
    after = op_list if isinstance(op_list, (list, tuple)) else [op_list]
    metadata = v1.SummaryMetadata(plugin_data=v1.SummaryMetadata.PluginData(plugin_name=_PLUGIN))
    with v1.device("/device:CPU:0"), v1.control_dependencies(v1.nest.flatten(list(after))):
        events = plugin.load().ops.ipu_event_trace()
        return v1.summary.tensor_summary(name, events, collections=collections, summary_metadata=metadata)
