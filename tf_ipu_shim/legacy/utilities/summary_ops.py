"""`tensorflow.python.ipu.ops.summary_ops`: IPU reports as TensorFlow summaries, superseded by profiles."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import sdk
from tf_ipu_shim.legacy.utilities import compile_summaries
from tf_ipu_shim.names.not_supported_marker import not_supported

_GONE_IN = (2, 4)
_REASON = (
    "is deprecated, is no longer functional. Use tf_ipu_shim.memory_report(), which takes the place of the PopVision "
    "tools."
)


def ipu_compile_summary(name: str, op_list: Any, collections: Any = None) -> Any:
    """Adds a summary of compilations and runs; of SDK 2.3 and older.

    The summary is a tensor of the trace events since they were last read, each a serialised `IpuTraceEvent`. Options of
    the configuration choose the events.

    Args:
        name: the name of the summary.
        op_list: an op, or several, after which the events are read.
        collections: the graph's collections that it is added to.

    Returns:
        The summary, for a `FileWriter`.

    Raises:
        NotImplementedError: another SDK is emulated.

    Source: `tensorflow.python.ipu.ops.summary_ops.ipu_compile_summary`.
    """
    if sdk.current() >= _GONE_IN:
        raise NotImplementedError(
            f"ipu_compile_summary {_REASON} With --sdk 2.3 or older there are trace events in it."
        )
    return compile_summaries.add(name, op_list, collections)


@not_supported(_REASON, NotImplementedError)
def get_ipu_reports() -> None:
    """Not functional since Graphcore's SDK 2.4.

    Raises:
        ValueError: in graph mode.
        NotImplementedError: otherwise.

    Source: `tensorflow.python.ipu.ops.summary_ops.get_ipu_reports`.
    """
    if not tf.executing_eagerly():
        raise ValueError(
            "summary_ops.get_ipu_reports was called in graph mode: Eager execution mode should be used. "
            "Call it eagerly."
        )
